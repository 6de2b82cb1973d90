import PipelineCaching
import PipelineSupport
import Synchronization
import Variants

/// Counters of the second pass (`ImagePipeline.secondPassStatistics`).
package struct SecondPassCounters: Sendable, Hashable {
    /// The number of variants that were replaced by a smaller version.
    package var improved = 0
    /// The number of variants for which no version was at least 5 % smaller.
    package var kept = 0
    /// The number of second versions found in a shared folder or bucket.
    package var adopted = 0
    /// The number of second passes that failed.
    package var failed = 0
    /// The bytes that responses with a second version have saved.
    package var savedBytes = 0
    /// The CPU time in milliseconds.
    package var milliseconds = 0.0
}

/// Decides which variants get a second pass, and when.
///
/// Candidates are variants in the memory tier. Their access counts, which the eviction policy uses, are the expectation of
/// further requests. The candidate that is expected to save most bytes for its CPU time is next.
final class SecondPass: Sendable {
    /// A variant that a second pass may replace.
    struct Candidate: Sendable {
        var admitted: AdmittedRequest
        /// The original, without its body.
        var original: Original
        var plan: RenderStage.Plan
        var first: VariantEntry
        var pixels: Int
    }

    /// The result of one second pass.
    struct Result: Sendable {
        /// The CPU time in seconds. Zero if the second pass was not needed or not possible.
        var seconds = 0.0
        /// The length of the new version, or nil if no version was stored.
        var length: Int?
        /// Whether the new version was found in a tier behind memory.
        var isAdopted = false
        /// Whether the render failed. If not, the variant was purged, evicted or replaced in the meantime.
        var hasFailed = false
    }

    /// The expected results for one format.
    private struct Expectation {
        var savedShare = 0.3
        var secondsPerPixel = 1.5e-6

        mutating func learn(_ result: Result, _ candidate: Candidate) {
            func mean(_ old: Double, _ new: Double) -> Double { old + (new - old) / 8 }
            secondsPerPixel = mean(secondsPerPixel, result.seconds / Double(max(1, candidate.pixels)))
            guard let length = result.length else { return }
            savedShare = mean(savedShare, 1 - Double(length) / Double(max(1, candidate.first.length)))
        }
    }

    private struct State {
        var candidates: [String: Candidate] = [:]
        /// The keys of variants with a failed second pass, which is not tried again.
        var failed: Set<String> = []
        var expectations: [ImageFormat: Expectation] = [:]
        /// The CPU time in seconds that may be used now. It is negative after a long second pass.
        var credit: Double
        var credited = ContinuousClock.now
        var counters = SecondPassCounters()
        var task: Task<Void, Never>?
        var isClosed = false
    }

    /// The bytes that a second of CPU time must save, which is what both cost at large cloud providers.
    static let bytesPerSecond = 100_000.0
    private static let candidateLimit = 2000

    /// Whether a new version is at least 5 % smaller.
    static func isWorthwhile(_ length: Int, insteadOf first: Int) -> Bool { length * 100 <= first * 95 }

    let configuration: SecondPassConfiguration
    private let accesses: @Sendable (_ key: String) -> Int?
    private let isIdle: @Sendable () -> Bool
    private let state: Mutex<State>
    private let savedBytes = Atomic<Int>(0)

    /// - Parameters:
    ///   - accesses: returns the number of accesses of the variant with a key, or nil if it is not in memory.
    ///   - isIdle: whether no render is in progress or waiting.
    init(
        _ configuration: SecondPassConfiguration, accesses: @escaping @Sendable (String) -> Int?,
        isIdle: @escaping @Sendable () -> Bool
    ) {
        self.configuration = configuration
        self.accesses = accesses
        self.isIdle = isIdle
        state = Mutex(State(credit: configuration.cpuShare * 60))
    }

    var counters: SecondPassCounters {
        var counters = state.withLock { $0.counters }
        counters.savedBytes = savedBytes.load(ordering: .relaxed)
        return counters
    }

    /// Whether the second pass of the variant with a key has failed.
    func hasFailed(_ key: String) -> Bool { state.withLock { $0.failed.contains(key) } }

    /// Counts the bytes that a response with a second version saves.
    func countSaved(_ bytes: Int) {
        if bytes > 0 { savedBytes.add(bytes, ordering: .relaxed) }
    }

    /// Adds a candidate, and starts the checks.
    ///
    /// - Parameter run: makes the second pass of a candidate.
    func note(_ candidate: Candidate, run: @escaping @Sendable (Candidate) async -> Result) {
        state.withLock { state in
            let key = candidate.plan.key
            if state.isClosed || state.candidates[key] != nil || state.failed.contains(key) { return }
            if state.candidates.count >= Self.candidateLimit { dropFew(&state) }
            state.candidates[key] = candidate
            guard state.task == nil, let interval = configuration.interval else { return }
            state.task = Task(priority: .background) { [weak self] in
                // The sleep throws once the task is cancelled.
                while (try? await Task.sleep(for: interval)) != nil {
                    guard let self else { return }
                    await self.runAll(run)
                }
            }
        }
    }

    /// Drops candidates that are no longer in memory, and the half with the fewest accesses if this is not enough.
    private func dropFew(_ state: inout State) {
        let counted = state.candidates.keys.map { (key: $0, accesses: accesses($0) ?? 0) }
        for (key, _) in counted.sorted(by: { $0.accesses < $1.accesses }).prefix(Self.candidateLimit / 2) {
            state.candidates[key] = nil
        }
    }

    /// Makes second passes, one after another, as long as renders and the CPU share allow.
    func runAll(_ run: @Sendable (Candidate) async -> Result) async {
        while !Task.isCancelled, let candidate = next() {
            let result = await run(candidate)
            state.withLock { state in
                state.credit -= result.seconds
                state.counters.milliseconds += result.seconds * 1000
                if result.seconds > 0, !result.hasFailed {
                    state.expectations[candidate.plan.output.format, default: Expectation()].learn(result, candidate)
                }
                guard let length = result.length else {
                    guard result.hasFailed else { return }
                    state.counters.failed += 1
                    if state.failed.count >= Self.candidateLimit { state.failed = [] }
                    state.failed.insert(candidate.plan.key)
                    // Requests may have added it again in the meantime.
                    state.candidates[candidate.plan.key] = nil
                    return
                }
                if result.isAdopted {
                    state.counters.adopted += 1
                } else if length < candidate.first.length {
                    state.counters.improved += 1
                } else {
                    state.counters.kept += 1
                }
            }
        }
    }

    /// Removes and returns the candidate for the next second pass. Returns nil if no second pass may begin now.
    private func next() -> Candidate? {
        guard isIdle() else { return nil }
        return state.withLock { state in
            let now = ContinuousClock.now
            let accrued = state.credited.duration(to: now).inSeconds * configuration.cpuShare
            (state.credit, state.credited) = (min(state.credit + accrued, configuration.cpuShare * 60), now)
            guard state.credit > 0, !state.isClosed else { return nil }
            var best: (key: String, worth: Double)?
            for (key, candidate) in state.candidates {
                guard let accesses = accesses(key) else {
                    state.candidates[key] = nil
                    continue
                }
                let worth = worth(candidate, accesses, state.expectations)
                let isEnough = configuration.requests.map { accesses >= $0 } ?? (worth >= Self.bytesPerSecond)
                if isEnough, worth > best?.worth ?? -1 { best = (key, worth) }
            }
            return best.flatMap { state.candidates.removeValue(forKey: $0.key) }
        }
    }

    /// Returns the bytes that as many further requests are expected to save for each second of CPU time.
    private func worth(
        _ candidate: Candidate, _ accesses: Int, _ expectations: [ImageFormat: Expectation]
    ) -> Double {
        let expected = expectations[candidate.plan.output.format] ?? Expectation()
        let saved = Double(accesses) * Double(candidate.first.length) * max(0.01, expected.savedShare)
        return saved / max(1e-3, expected.secondsPerPixel * Double(candidate.pixels))
    }

    /// Starts no more second passes, and returns when no second pass is running.
    func close() async {
        let task = state.withLock { state in
            state.isClosed = true
            state.candidates = [:]
            return state.task
        }
        task?.cancel()
        await task?.value
    }
}
