@testable import PipelineFetching
import PipelineSupport
import Synchronization
import TestSupport
import Testing

@testable import Pipeline

/// The order of transfers that are waiting for a slot.
struct TransferUrgencyTests {
    /// The paths in the order in which an origin with one slot is asked for them.
    ///
    /// - Parameters:
    ///   - loads: path and priority, in the order in which they come.
    ///   - change: called while all of them wait.
    private func order(
        _ loads: [(String, TaskPriority)], change: ([Task<Void, Never>]) -> Void = { _ in }
    ) async throws -> [String] {
        let gate = BlockingGate()
        var order: [String] = []
        try await withOrigin {
            $0.maxConcurrentTransfers = 1
            // A load that has begun is not slow, so that only its end makes a slot free.
            $0.stallRate = 0
        } handler: { request in
            if request.path == "/first" { gate.pass() }
            return .response(200)
        } _: { origin, transport in
            // The origin ends only when the gate is open, also after a failure.
            defer { gate.open() }
            let first = FetchRequest(url: try SourceURL(origin.url("/first")))
            let holding = Task { _ = try? await transport.fetch(first) }
            try await waitWhile { origin.requests.isEmpty }
            var tasks: [Task<Void, Never>] = []
            for (path, priority) in loads {
                let request = FetchRequest(url: try SourceURL(origin.url(path)))
                let task = Task(priority: priority) { _ = try? await transport.fetch(request) }
                tasks.append(task)
                try await waitWhile { transport.waiting < tasks.count }
            }
            change(tasks)
            gate.open()
            await holding.value
            // Waiting for a task would raise it.
            try await waitWhile { origin.requests.count <= loads.count }
            order = origin.requests.dropFirst().map(\.path)
            for task in tasks { await task.value }
        }
        return order
    }

    @Test func `the most urgent goes first`() async throws {
        let order = try await order([("/low", .low), ("/normal", .medium), ("/high", .high), ("/last", .medium)])
        #expect(order == ["/high", "/normal", "/last", "/low"])
    }

    @Test func `what becomes more urgent while it waits overtakes the others`() async throws {
        let order = try await order([("/a", .low), ("/b", .low), ("/c", .medium)]) { tasks in
            tasks[1].escalatePriority(to: .high)
        }
        #expect(order == ["/b", "/c", "/a"])
    }
}
