import Glibc
import PipelineFleet
import PipelineSupport
import Synchronization
import TestSupport
import Testing

@Suite(.needsRedis) struct PurgeStreamTests {
    /// A node that follows the purges until it is stopped or the test ends.
    final class Node: Sendable {
        private final class Record: Sendable {
            let events = Mutex<[PurgeEvent]>([])
            let position = Mutex<PurgePosition?>(nil)
        }
        private let record = Record()
        private let task: Task<Void, any Error>

        init(_ server: RedisTestServer, from start: PurgeStart = .new, stream: PurgeStream = PurgeStream()) throws {
            var reader = PurgeReader(stream, try server.configuration())
            reader.blockSeconds = 0.2
            task = Task { [reader, record] in
                try await reader.run(from: start) { events in
                    record.events.withLock { $0 += events }
                } advance: { position in
                    record.position.withLock { $0 = position }
                }
            }
        }

        deinit { task.cancel() }

        var events: [PurgeEvent] { record.events.withLock { $0 } }
        var position: PurgePosition? { record.position.withLock { $0 } }
        var numbers: [Int] { events.compactMap { if case .purge(let number, _, _) = $0 { number } else { nil } } }
        var losses: [PurgeLoss] { events.compactMap { if case .lost(let loss) = $0 { loss } else { nil } } }

        /// Stops following and returns the place.
        func stop() async throws -> PurgePosition {
            task.cancel()
            try await task.value
            return try #require(position)
        }
    }

    private let stream = PurgeStream()

    @discardableResult private func publish(_ connection: RedisConnection) async throws -> Int {
        try await stream.publish([0x70], from: "a", on: connection)
    }

    @Test func `a node that follows gets each purge as it was published`() async throws {
        let server = try RedisTestServer()
        let connection = try server.connection()
        var stream = stream
        stream.name = "tests:purges"
        #expect(try await stream.publish([], from: "b", on: connection) == 1)
        let node = try Node(server, stream: stream)
        try await waitWhile { node.position == nil }
        let payload = (0...255).map { UInt8($0) }
        #expect(try await stream.publish(payload, from: "nœud", on: connection) == 2)
        #expect(try await stream.publish([], from: "b", on: connection) == 3)
        try await waitWhile { node.numbers.count < 2 }
        let expected: [PurgeEvent] = [
            .connected, .purge(number: 2, payload: payload, node: "nœud"), .purge(number: 3, payload: [], node: "b"),
        ]
        #expect(node.events == expected)
        #expect(try await connection.reply(to: "EXISTS", "tests:purges", "tests:purges:number") == .integer(2))
        try await waitWhile { node.position?.number != 3 }
    }

    @Test func `two publishers at once number without gaps`() async throws {
        let server = try RedisTestServer()
        let node = try Node(server)
        try await waitWhile { node.position == nil }
        let numbers = try await withThrowingTaskGroup(of: [Int].self) { group in
            for _ in 0..<2 {
                let connection = try server.connection()
                group.addTask {
                    var numbers: [Int] = []
                    for _ in 0..<500 { numbers.append(try await publish(connection)) }
                    return numbers
                }
            }
            return try await group.reduce(into: []) { $0 += $1 }
        }
        #expect(numbers.sorted() == Array(1...1000))
        try await waitWhile { node.numbers.count < 1000 }
        #expect(node.numbers == Array(1...1000))
        #expect(node.losses.isEmpty)
    }

    @Test func `a purge that cannot be added takes no number`() async throws {
        let server = try RedisTestServer()
        let connection = try server.connection()
        try await publish(connection)
        try await connection.reply(to: "RENAME", "image-pipeline:purges", "aside")
        try await connection.reply(to: "SET", "image-pipeline:purges", "x")
        let error = await #expect(throws: RedisError.self) { try await publish(connection) }
        #expect(error?.code == .server)
        #expect(error?.message.contains("WRONGTYPE") == true)
        try await connection.reply(to: "RENAME", "aside", "image-pipeline:purges")
        #expect(try await publish(connection) == 2)
        let large = [UInt8](repeating: 1, count: PurgeStream.maxPayloadBytes + 1)
        let refused = await #expect(throws: RedisError.self) {
            try await stream.publish(large, from: "a", on: connection)
        }
        #expect(refused?.code == .tooLarge)
    }

    @Test func `100,000 purges published while a node is away are applied in order`() async throws {
        let server = try RedisTestServer()
        let connection = try server.connection()
        let first = try Node(server)
        try await waitWhile { first.position == nil }
        let position = try await first.stop()
        for _ in 0..<100 {
            // Adds entries like `publish`, in fewer round trips.
            let script =
                "for i = 1, 1000 do local n = redis.call('INCR', KEYS[2]) "
                + "redis.call('XADD', KEYS[1], '*', 'number', n, 'payload', 'p', 'node', 'a') end"
            try await connection.reply(
                to: "EVAL", RedisWord(script), "2", "image-pipeline:purges", "image-pipeline:purges:number")
        }
        let second = try Node(server, from: .position(position))
        try await waitWhile { second.numbers.count < 100_000 }
        #expect(second.numbers == Array(1...100_000))
        #expect(second.losses.isEmpty)
        try await waitWhile { second.position?.number != 100_000 }
    }

    @Test func `a node whose place was trimmed while it was away has lost purges`() async throws {
        let server = try RedisTestServer()
        let connection = try server.connection()
        let first = try Node(server)
        try await waitWhile { first.position == nil }
        try await publish(connection)
        try await waitWhile { first.position?.number != 1 }
        let position = try await first.stop()
        var small = stream
        small.limit = 100
        // Redis trims whole nodes of its tree, of 100 entries each.
        for _ in 0..<400 { _ = try await small.publish([1], from: "a", on: connection) }
        let second = try Node(server, from: .position(position))
        try await waitWhile { second.position?.number != 401 }
        #expect(second.events == [.connected, .lost(.positionGone(1))])
        try await publish(connection)
        try await waitWhile { second.numbers != [402] }
    }

    @Test func `an emptied server is noticed while a node follows, whether or not more is published`() async throws {
        let server = try RedisTestServer()
        let connection = try server.connection()
        let node = try Node(server)
        try await waitWhile { node.position == nil }
        for _ in 0..<3 { try await publish(connection) }
        try await waitWhile { node.position?.number != 3 }
        try await connection.reply(to: "FLUSHALL")
        try await waitWhile { node.position?.number != 0 }
        #expect(node.losses == [.smallerNumber(0, position: 3)])
        for _ in 0..<3 { try await publish(connection) }
        try await waitWhile { node.position?.number != 3 }
        try await connection.reply(to: "FLUSHALL")
        for _ in 0..<5 { try await publish(connection) }
        try await waitWhile { node.losses.count < 2 || node.position?.number != 5 }
        #expect(node.losses.count == 2)
    }

    @Test func `a node that notices a loss makes the others notice it, once`() async throws {
        let server = try RedisTestServer()
        let connection = try server.connection()
        let (one, away) = (try Node(server), try Node(server))
        for node in [one, away] { try await waitWhile { node.position == nil } }
        let position = try await away.stop()
        try await publish(connection)
        try await waitWhile { one.position?.number != 1 }
        // A replica without the purge has taken over.
        try await connection.reply(to: "DEL", "image-pipeline:purges", "image-pipeline:purges:number")
        try await waitWhile { one.position?.number != 0 }
        let (back, new) = (try Node(server, from: .position(position)), try Node(server))
        for node in [back, new] {
            try await waitWhile { node.position == nil || node.position?.epoch == position.epoch }
        }
        #expect(one.losses == [.smallerNumber(0, position: 1)] && back.losses == [.otherEpoch] && new.losses == [])
        let positions = try await [one.stop(), back.stop(), new.stop()]
        #expect(Set(positions.map(\.epoch)).count == 1 && positions[0].epoch != position.epoch)
        // A node that knows the new epoch has lost nothing since.
        try await publish(connection)
        let again = try Node(server, from: .position(positions[1]))
        try await waitWhile { again.numbers != [1] }
        #expect(again.losses == [])
    }

    @Test func `a node of an earlier version's place takes the stream's epoch, or makes it`() async throws {
        let server = try RedisTestServer()
        let connection = try server.connection()
        try await publish(connection)
        var epochs: Set<String?> = []
        for _ in 0..<2 {
            let node = try Node(server, from: .position(PurgePosition(number: 0, streamID: .start)))
            try await waitWhile { node.position?.number != 1 }
            #expect(node.losses == [] && node.numbers == [1])
            epochs.insert(node.position?.epoch)
        }
        #expect(epochs.count == 1 && !epochs.contains("") && !epochs.contains(nil))
    }

    @Test func `a server that lost writes while a node was away is noticed, however far it has come since`()
        async throws
    {
        for later in [0, 2, 9] {
            let server = try RedisTestServer()
            let connection = try server.connection()
            let first = try Node(server)
            try await waitWhile { first.position == nil }
            for _ in 0..<3 { try await publish(connection) }
            try await waitWhile { first.position?.number != 3 }
            let position = try await first.stop()
            try await connection.reply(to: "FLUSHALL")
            for _ in 0..<later { try await publish(connection) }
            let second = try Node(server, from: .position(position))
            try await waitWhile { second.position?.number != later }
            #expect(second.losses == [later < 3 ? .smallerNumber(later, position: 3) : .positionGone(3)])
            #expect(second.numbers == [])
        }
    }

    @Test func `a counter that is set back is noticed`() async throws {
        let server = try RedisTestServer()
        let connection = try server.connection()
        let node = try Node(server)
        try await waitWhile { node.position == nil }
        for _ in 0..<3 { try await publish(connection) }
        try await waitWhile { node.position?.number != 3 }
        try await connection.reply(to: "SET", "image-pipeline:purges:number", "1")
        try await waitWhile { node.position?.number != 1 }
        #expect(node.losses == [.smallerNumber(1, position: 3)])
        #expect(try await publish(connection) == 2)
        try await waitWhile { node.numbers != [1, 2, 3, 2] }
        #expect(node.losses.count == 1)
    }

    @Test func `a foreign entry counts as a loss, and following goes on`() async throws {
        let server = try RedisTestServer()
        let connection = try server.connection()
        let node = try Node(server)
        try await waitWhile { node.position == nil }
        try await connection.reply(to: "XADD", "image-pipeline:purges", "*", "number", "x", "payload", "p")
        try await publish(connection)
        try await waitWhile { node.position?.number != 1 }
        #expect(node.losses.count == 1)
        #expect(node.numbers == [1])
    }

    @Test func `a node with a damaged place has lost purges and follows from the end`() async throws {
        let server = try RedisTestServer()
        let connection = try server.connection()
        try await publish(connection)
        let node = try Node(server, from: .damagedPosition)
        try await waitWhile { node.position == nil }
        #expect(node.events == [.connected, .lost(.damagedPosition)])
        try await publish(connection)
        try await waitWhile { node.numbers != [2] }
    }

    @Test func `a lost connection is reported once and made again`() async throws {
        let server = try RedisTestServer()
        let node = try Node(server)
        try await waitWhile { node.position == nil }
        server.stop()
        try await waitWhile { node.events.count < 2 }
        let restarted = try RedisTestServer(port: server.port)
        try await waitWhile { node.events.count < 4 }
        let kinds = node.events.map { event in
            switch event {
            case .connected: "connected"
            case .disconnected(let error): "\(error.code)"
            case .purge, .lost: "other"
            }
        }
        // It came back without the stream.
        #expect(kinds == ["connected", "unreachable", "connected", "other"] && node.losses == [.otherEpoch])
        restarted.stop()
    }

    @Test func `the place does not advance past a purge that was not applied`() async throws {
        struct Refused: Error {}
        let server = try RedisTestServer()
        let connection = try server.connection()
        for _ in 0..<3 { try await publish(connection) }
        let position = PurgePosition(number: 0, streamID: .start)
        let reader = PurgeReader(stream, try server.configuration())
        let advanced = Mutex<[PurgePosition]>([])
        await #expect(throws: Refused.self) {
            try await reader.run(from: .position(position)) { events in
                for case .purge(number: 2, payload: _, node: _) in events { throw Refused() }
            } advance: { position in
                advanced.withLock { $0.append(position) }
            }
        }
        #expect(advanced.withLock { $0 } == [])
    }
}
