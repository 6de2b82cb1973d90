import Synchronization
import TestSupport
import Testing

@testable import Pipeline

/// A door that work waits at until a test opens it; cancelled work is let out with an error.
final class Gate: Sendable {
    private let (stream, continuation) = AsyncStream<Void>.makeStream()
    private let (arrivals, arrived) = AsyncStream<Void>.makeStream()

    /// Returns once `open()` was called, or throws when cancelled before.
    func pass() async throws(PipelineError) {
        arrived.yield()
        for await _ in stream {}
        if Task.isCancelled { throw .cancelled }
    }

    func open() { continuation.finish() }

    /// Returns when a task waits at the gate.
    func somebody() async { for await _ in arrivals { return } }
}

/// Counts across tasks.
private final class Runs: Sendable {
    private let value = Atomic<Int>(0)
    var count: Int { value.load(ordering: .relaxed) }
    func add() -> Int { value.add(1, ordering: .relaxed).newValue }
}

struct SharedWorkTests {
    @Test func `one piece of work answers everybody once, and a later call starts again`() async throws {
        let work = SharedWork<Int, PipelineError>()
        let runs = Runs()
        let gate = Gate()
        let answers = try await withThrowingTaskGroup(of: (value: Int, isCoalesced: Bool).self) { group in
            for _ in 0..<50 {
                group.addTask {
                    try await work.value(for: "k", priority: .medium, finishWhenAbandoned: false) {
                        () async throws(PipelineError) -> Int in
                        try await gate.pass()
                        return runs.add()
                    }
                }
            }
            await gate.somebody()
            gate.open()
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(answers.count == 50)
        // Tasks that came after the end started again; tasks that came before shared.
        #expect(answers.count { !$0.isCoalesced } == runs.count)
        let later = Task {
            try await work.value(for: "k", priority: .utility, finishWhenAbandoned: false) {
                () async throws(PipelineError) -> Int in 77
            }
        }
        let (again, isCollapsed) = try await later.value
        #expect(again == 77 && !isCollapsed)
    }

    @Test(arguments: 0..<1000)
    func `in any schedule no caller that leaves or fails fails another, and no work is left`(seed: Int) async {
        let random = Mutex(FuzzRandom(seed: UInt64(seed)))
        func below(_ limit: Int) -> Int { random.withLock { $0.below(limit) } }
        let work = SharedWork<Int, PipelineError>()
        let (begun, ended) = (Runs(), Runs())
        let mayFail = seed % 2 == 1
        var callers: [(task: Task<PipelineError.Code?, Never>, isCancelled: Bool)] = []
        for _ in 0..<20 {
            switch below(4) {
            case 0 where !callers.isEmpty:
                let at = below(callers.count)
                callers[at].isCancelled = true
                callers[at].task.cancel()
            case 1 where !callers.isEmpty: callers[below(callers.count)].task.escalatePriority(to: .high)
            default:
                let (key, turns, goesOn) = ("\(below(2))", below(12), below(4) == 0)
                let fails = mayFail && below(2) == 0
                let task = Task { () -> PipelineError.Code? in
                    do throws(PipelineError) {
                        _ = try await work.value(for: key, priority: .medium, finishWhenAbandoned: goesOn) {
                            () async throws(PipelineError) -> Int in
                            let number = begun.add()
                            defer { _ = ended.add() }
                            for _ in 0..<turns {
                                await Task.yield()
                                if Task.isCancelled { throw .cancelled }
                            }
                            if fails { throw PipelineError(.notFound, "gone") }
                            return number
                        }
                        return nil
                    } catch { return error.code }
                }
                callers.append((task, false))
            }
            for _ in 0..<below(6) { await Task.yield() }
        }
        for caller in callers {
            let code = await caller.task.value
            #expect(code == nil || code == .notFound && mayFail || code == .cancelled && caller.isCancelled)
        }
        await work.drain()
        // Cancelled work ends.
        await waitOrRecord { ended.count < begun.count }
        #expect(work.waiting == 0)
    }

    @Test func `an error is everybody's`() async throws {
        let work = SharedWork<Int, PipelineError>()
        let waiter = Task {
            try await work.value(for: "k", priority: .high, finishWhenAbandoned: false) {
                () async throws(PipelineError) -> Int in throw PipelineError(.notFound, "gone")
            }
        }
        let error = await #expect(throws: PipelineError.self) { try await waiter.value }
        #expect(error?.code == .notFound)
    }

    @Test(arguments: 0..<50) func `the last waiter leaving cancels the work, whenever it leaves`(round: Int) async {
        let work = SharedWork<Int, PipelineError>()
        let gate = Gate()
        let (ends, ended) = AsyncStream<Bool>.makeStream()
        let waiter = Task {
            try await work.value(for: "k", priority: .medium, finishWhenAbandoned: false) {
                () async throws(PipelineError) -> Int in
                defer { ended.yield(Task.isCancelled) }
                try await gate.pass()
                return 1
            }
        }
        // Even rounds cancel while the work is being started.
        if round.isMultiple(of: 2) { await Task.yield() } else { await gate.somebody() }
        waiter.cancel()
        let error = await #expect(throws: PipelineError.self) { try await waiter.value }
        #expect(error?.code == .cancelled)
        guard !round.isMultiple(of: 2) else { return }
        for await wasCancelled in ends {
            #expect(wasCancelled)
            break
        }
    }

    @Test func `work that finishes when abandoned is not cancelled`() async {
        let work = SharedWork<Int, PipelineError>()
        let gate = Gate()
        let (ends, ended) = AsyncStream<Bool>.makeStream()
        let waiter = Task {
            try await work.value(for: "k", priority: .medium, finishWhenAbandoned: true) {
                () async throws(PipelineError) -> Int in
                try await gate.pass()
                ended.yield(Task.isCancelled)
                return 1
            }
        }
        await gate.somebody()
        waiter.cancel()
        await #expect(throws: PipelineError.self) { try await waiter.value }
        gate.open()
        for await wasCancelled in ends {
            #expect(!wasCancelled)
            break
        }
    }

    /// Work that reports the priorities it is raised to until the gate opens.
    private func raised(
        _ gate: Gate, _ raises: AsyncStream<TaskPriority>.Continuation
    ) -> @Sendable () async throws(PipelineError) -> Int {
        { () async throws(PipelineError) in
            let result: Result<Void, PipelineError> = await withTaskPriorityEscalationHandler {
                raises.yield(Task.currentPriority)
                return await Result { () async throws(PipelineError) in try await gate.pass() }
            } onPriorityEscalated: { _, priority in
                raises.yield(priority)
            }
            try result.get()
            return 1
        }
    }

    @Test func `a more urgent caller raises what it joins, and what that waits for in its turn`() async throws {
        let (outer, inner) = (SharedWork<Int, PipelineError>(), SharedWork<Int, PipelineError>())
        let gate = Gate()
        let (raises, raise) = AsyncStream<TaskPriority>.makeStream()
        let work = raised(gate, raise)
        let ask = { @Sendable (priority: TaskPriority) async throws(PipelineError) in
            try await outer.value(for: "k", priority: priority, finishWhenAbandoned: false) {
                () async throws(PipelineError) in
                try await inner.value(for: "k", priority: .low, finishWhenAbandoned: false, make: work).value
            }.value
        }
        // Both from the same priority: what counts is the one they ask for.
        let low = Task(priority: .low) { try await ask(.low) }
        var next = raises.makeAsyncIterator()
        #expect(await next.next() == .low)
        let high = Task(priority: .low) { try await ask(.high) }
        #expect(await next.next() == .high)
        gate.open()
        _ = try await (low.value, high.value)
    }

    @Test(arguments: 0..<20) func `a caller that joins before the work has begun raises it`(round: Int) async throws {
        let work = SharedWork<Int, PipelineError>()
        let gate = Gate()
        let (raises, raise) = AsyncStream<TaskPriority>.makeStream()
        let make = raised(gate, raise)
        let tasks = [TaskPriority.low, .high].map { priority in
            Task(priority: .low) {
                try await work.value(for: "k", priority: priority, finishWhenAbandoned: false, make: make).value
            }
        }
        for await priority in raises where priority == .high { break }
        gate.open()
        for task in tasks { #expect(try await task.value == 1) }
    }

    @Test func `a caller whose task becomes more urgent raises what it waits for`() async throws {
        let work = SharedWork<Int, PipelineError>()
        let gate = Gate()
        let (raises, raise) = AsyncStream<TaskPriority>.makeStream()
        let make = raised(gate, raise)
        let task = Task(priority: .low) {
            try await work.value(for: "k", priority: .low, finishWhenAbandoned: false, make: make).value
        }
        var next = raises.makeAsyncIterator()
        #expect(await next.next() == .low)
        task.escalatePriority(to: .high)
        #expect(await next.next() == .high)
        gate.open()
        #expect(try await task.value == 1)
    }

    @Test func `a refusal for lack of urgency is for those who are no more urgent`() async throws {
        let work = SharedWork<TaskPriority, PipelineError>()
        let gate = Gate()
        let ask = { @Sendable (priority: TaskPriority) in
            Task {
                try await work.value(for: "k", priority: priority, finishWhenAbandoned: false) {
                    () async throws(PipelineError) in
                    try await gate.pass()
                    if priority < .high { throw .overloaded("too much", retryAfter: 1) }
                    return priority
                }
            }
        }
        let low = [ask(.low)]
        await waitOrRecord { work.waiting < 1 }
        let others = [ask(.low), ask(.medium), ask(.high), ask(.high)]
        await waitOrRecord { work.waiting < 5 }
        gate.open()
        for task in [low[0], others[0]] {
            let error = await #expect(throws: PipelineError.self) { try await task.value }
            #expect(error?.code == .overloaded)
        }
        for task in others[2...] { #expect(try await task.value.value == .high) }
        // It asks again, too: it is refused if it starts the work, and has the value if it joins a high one.
        do {
            #expect(try await others[1].value.value == .high)
        } catch {
            #expect((error as? PipelineError)?.code == .overloaded)
        }
        await work.drain()
    }
}
