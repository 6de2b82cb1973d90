import Synchronization
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

    /// Returns when somebody stands at the gate.
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
        // Whoever came after the end started anew; whoever came before shared.
        #expect(answers.count { !$0.isCoalesced } == runs.count)
        let later = Task {
            try await work.value(for: "k", priority: .utility, finishWhenAbandoned: false) {
                () async throws(PipelineError) -> Int in 77
            }
        }
        let (again, isCollapsed) = try await later.value
        #expect(again == 77 && !isCollapsed)
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
}
