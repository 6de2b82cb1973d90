import PipelineSupport
import Synchronization

/// Limits the cost of a tier: how long to wait for a call, how many calls may be in progress, and whether to call a
/// tier that keeps failing. Counts errors and logs each cause once.
final class TierGate: Sendable {
    private let name: TierName
    /// The limits, or nil if the tier is called without limits.
    private let placement: TierPlacement?
    private let breaker: Mutex<CircuitBreaker>?
    private let inProgress = Atomic<Int>(0)
    private let failed = Atomic<Int>(0)
    private let skipped = Atomic<Int>(0)
    private struct FailureNotice {
        var logged: Set<String> = []
        var latest: String?
    }
    private let trouble = Mutex(FailureNotice())
    private static let maxLogged = 32
    private let warn: @Sendable (String) -> Void
    private static let start = ContinuousClock.now

    init(name: TierName, placement: TierPlacement?, warn: @escaping @Sendable (String) -> Void) {
        (self.name, self.placement) = (name, placement)
        breaker = placement.map { Mutex(CircuitBreaker($0.breaker)) }
        self.warn = warn
    }

    /// The number of calls that failed, and of changes that could not be stored.
    var failures: Int { failed.load(ordering: .relaxed) }
    /// The number of calls that were skipped.
    var skips: Int { skipped.load(ordering: .relaxed) }
    /// The number of calls that have not returned.
    var calls: Int { inProgress.load(ordering: .relaxed) }

    /// The reason why the latest call failed, or nil if it succeeded.
    var problem: String? { trouble.withLock(\.latest) }

    /// Counts an error, and logs each cause once.
    func note(_ error: StoreError) {
        if error.code == .skipped { return }
        failed.add(1, ordering: .relaxed)
        // With other codes, the message contains the name of an entry.
        let cause = error.code == .unavailable ? error.description : error.code.description
        let isNew = trouble.withLock { trouble in
            trouble.latest = error.description
            return trouble.logged.count < Self.maxLogged && trouble.logged.insert(cause).inserted
        }
        if !isNew { return }
        warn("the cache tier \(name) failed and is skipped where necessary: \(error.description)")
    }

    /// Makes a call and waits for it until the deadline. If the call has not returned by then, cancels it and throws
    /// `timedOut`. A call that ignores the cancellation counts as in progress until it returns.
    ///
    /// Throws `skipped` without making a call if the tier keeps failing or too many calls are in progress.
    ///
    /// - Parameter deadline: which of the tier's deadlines applies.
    func call<Value: Sendable>(
        within deadline: any KeyPath<TierPlacement, Duration> & Sendable,
        _ body: @escaping @Sendable () async throws(StoreError) -> Value
    ) async throws(StoreError) -> Value {
        guard let placement else { return try await body() }
        let deadline = placement[keyPath: deadline]
        let isTrial = try admit(placement.maxConcurrentCalls)
        let race = Race<Value>()
        let call = Task { [self] in
            let result = await Result(of: body)
            inProgress.subtract(1, ordering: .relaxed)
            race.end(result)
        }
        let timer = Task { [name] in
            // The sleep is cancelled once the call has ended.
            guard (try? await Task.sleep(for: deadline)) != nil else { return }
            race.end(.failure(StoreError(.timedOut, "the tier \(name) did not respond within \(deadline)")))
        }
        let result = await withTaskCancellationHandler {
            await race.result()
        } onCancel: {
            race.end(.failure(StoreError(.skipped, "the request was cancelled")))
        }
        timer.cancel()
        call.cancel()
        let outcome: CircuitBreaker.Outcome =
            switch result {
            case .success: .answered
            case .failure(let error): error.code == .skipped ? .unknown : .failed
            }
        if case .success = result { trouble.withLock { $0.latest = nil } }
        breaker?.withLock { $0.record("", outcome, isTrial: isTrial, now: Self.now) }
        return try result.get()
    }

    private static var now: Double { start.duration(to: .now) / .seconds(1) }

    /// Counts a call as in progress. Returns whether its result decides if the breaker closes.
    private func admit(_ limit: Int) throws(StoreError) -> Bool {
        if inProgress.add(1, ordering: .relaxed).oldValue >= limit {
            inProgress.subtract(1, ordering: .relaxed)
            skipped.add(1, ordering: .relaxed)
            throw StoreError(.skipped, "the tier \(name) already has the maximum of \(limit) calls in progress")
        }
        switch breaker?.withLock({ $0.admit("", now: Self.now) }) {
        case nil: return false
        case .ask(let isTrial)?: return isTrial
        case .refuse(let failures, let seconds)?:
            inProgress.subtract(1, ordering: .relaxed)
            skipped.add(1, ordering: .relaxed)
            throw StoreError(.skipped, "the tier \(name) failed \(failures) times; retrying in \(seconds) s")
        }
    }
}

/// The first of several possible results, for the one caller that is waiting.
private final class Race<Value: Sendable>: Sendable {
    typealias Outcome = Result<Value, StoreError>

    private enum State {
        case running
        case waited(CheckedContinuation<Outcome, Never>)
        case ended(Outcome)
    }

    private let state = Mutex(State.running)

    func result() async -> Outcome {
        await withCheckedContinuation { continuation in
            let early = state.withLock { state -> Outcome? in
                if case .ended(let outcome) = state { return outcome }
                state = .waited(continuation)
                return nil
            }
            if let early { continuation.resume(returning: early) }
        }
    }

    func end(_ outcome: Outcome) {
        let waiter = state.withLock { state -> CheckedContinuation<Outcome, Never>? in
            defer { if case .ended = state {} else { state = .ended(outcome) } }
            if case .waited(let continuation) = state { return continuation }
            return nil
        }
        waiter?.resume(returning: outcome)
    }
}
