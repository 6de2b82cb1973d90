import CRedis
import Glibc
import PipelineFleet
import TestSupport
import Testing

@Suite struct MissingRedisTests {
    @Test(.enabled(if: !credis_load(), "hiredis is installed"))
    func `says which library is missing, and tries again later`() async throws {
        let connection = RedisConnection(.init(try RedisURL("redis://127.0.0.1")))
        let error = try await #require(throws: RedisError.self) { try await connection.reply(to: "PING") }
        #expect(error.code == .libraryUnavailable)
        #expect(error.message.contains("install libhiredis"))
        #expect(error.retrySeconds != nil)
    }
}

@Suite(.needsRedis) struct RedisConnectionTests {
    @Test func `sends commands and reads every kind of reply`() async throws {
        let server = try RedisTestServer()
        let connection = try server.connection()
        #expect(try await connection.reply(to: "PING") == .status("PONG"))
        #expect(try await connection.reply(to: "SET", "a", "") == .status("OK"))
        #expect(try await connection.reply(to: "GET", "a") == .bytes([]))
        #expect(try await connection.reply(to: "GET", "b") == .null)
        #expect(try await connection.reply(to: "INCRBY", "n", "-5") == .integer(-5))
        #expect(try await connection.reply(to: "MGET", "n", "b") == .array([.bytes(Array("-5".utf8)), .null]))
        let replies = try await connection.send([["INCR", "a"], ["LRANGE", "l", "0", "1"]])
        #expect(replies == [.error("ERR value is not an integer or out of range"), .array([])])
        #expect(try await connection.send([]) == [])
    }

    @Test func `pipelines many commands in one write, in order, and keeps every byte`() async throws {
        let server = try RedisTestServer()
        let connection = try server.connection()
        let all = (0...255).map { UInt8($0) }
        let large = (0..<4 << 20).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        let words = (0..<2_000).map { RedisWord([UInt8(truncatingIfNeeded: $0)] + all) }
        let replies = try await connection.send(
            words.map { ["ECHO", $0] } + [["SET", RedisWord(all), RedisWord(large)], ["GET", RedisWord(all)]])
        #expect(replies.count == words.count + 2)
        for (index, reply) in replies.prefix(words.count).enumerated() {
            #expect(reply == .bytes([UInt8(truncatingIfNeeded: index)] + all))
        }
        #expect(replies.last == .bytes(large))
    }

    @Test func `calls at the same time get their own replies`() async throws {
        let server = try RedisTestServer()
        let connection = try server.connection()
        try await withThrowingTaskGroup { group in
            for number in 0..<200 {
                group.addTask {
                    let reply = try await connection.reply(to: "ECHO", RedisWord(number))
                    #expect(reply == .bytes(Array("\(number)".utf8)))
                }
            }
            try await group.waitForAll()
        }
        #expect(try await connection.info("total_connections_received") == "1")
    }

    @Test func `authenticates and chooses the database`() async throws {
        let server = try RedisTestServer("--requirepass", "s@crét/1")
        let connection = try server.connection(":s%40cr%C3%A9t%2F1@", path: "/3")
        try await connection.reply(to: "SET", "key", "3")
        try await connection.reply(to: "ACL", "SETUSER", "node", "on", ">other", "~key", "+get", "+select")
        let other = try server.connection("node:other@", path: "/3")
        #expect(try await other.reply(to: "GET", "key") == .bytes([0x33]))
        let elsewhere = try server.connection("node:other@")
        #expect(try await elsewhere.reply(to: "GET", "key") == .null)
        let tooFar = try server.connection(":s%40cr%C3%A9t%2F1@", path: "/99")
        await fails(.server, "DB index is out of range") { try await tooFar.reply(to: "PING") }
    }

    @Test(arguments: [
        ("", "the server requires a password"), (":wrong-secret@", "rejected the user or the password"),
        ("stranger:wrong-secret@", "rejected the user or the password"),
    ])
    func `says which credentials are refused, without the password`(credentials: String, advice: String) async throws {
        let server = try RedisTestServer("--requirepass", "right-secret")
        let connection = try server.connection(credentials)
        await fails(.credentialsRefused, advice) { try await connection.reply(to: "PING") }
    }

    @Test func `does not show a password that a server repeats`() async throws {
        let server = try RedisTestServer("--rename-command", "AUTH", "")
        let connection = try server.connection(":wrong-secret@")
        await fails(.server, "the server answered: ERR") { try await connection.reply(to: "PING") }
    }

    @Test func `speaks TLS to a server whose authority it trusts`() async throws {
        let authority = try TestAuthority()
        let server = try RedisTestServer(tls: try authority.issue("server"))
        var configuration = try server.configuration(scheme: "rediss")
        let distrusting = RedisConnection(configuration)
        await fails(.tls, "issued by a trusted authority") {
            try await distrusting.reply(to: "PING")
        }
        configuration.authoritiesFile = authority.certificate
        let trusting = RedisConnection(configuration)
        let large = [UInt8](repeating: 7, count: 4 << 20)
        let replies = try await trusting.send([["SET", "a", RedisWord(large)], ["GET", "a"]])
        #expect(replies == [.status("OK"), .bytes(large)])
        configuration.authoritiesFile = "/nowhere.pem"
        let misconfigured = RedisConnection(configuration)
        await fails(.tls, "`/nowhere.pem`") { try await misconfigured.reply(to: "PING") }
    }

    @Test func `refuses a certificate for another name, and says what each side of TLS expects`() async throws {
        let authority = try TestAuthority()
        let secure = try RedisTestServer(tls: try authority.issue("other", names: "DNS:other.example"))
        var configuration = try secure.configuration(scheme: "rediss")
        configuration.authoritiesFile = authority.certificate
        let other = RedisConnection(configuration)
        await fails(.tls, "check that the certificate is valid for `127.0.0.1`") {
            try await other.reply(to: "PING")
        }
        let plain = try secure.connection()
        await fails(.unreachable, "use rediss://") { try await plain.reply(to: "PING") }
        let strict = try RedisTestServer("--tls-auth-clients", "yes", tls: try authority.issue("strict"))
        configuration = try strict.configuration(scheme: "rediss")
        configuration.authoritiesFile = authority.certificate
        let unknown = RedisConnection(configuration)
        await fails(.unreachable, "set `tls-auth-clients` to no") { try await unknown.reply(to: "PING") }
        let insecure = try RedisTestServer()
        // Redis takes the handshake for a command that has not ended yet.
        configuration = try insecure.configuration(scheme: "rediss")
        configuration.timeoutSeconds = 1
        let eager = RedisConnection(configuration)
        await fails(.timedOut, "does not use TLS on this port") { try await eager.reply(to: "PING") }
    }

    @Test func `connects again after the server was restarted`() async throws {
        let server = try RedisTestServer()
        let connection = try server.connection()
        try await connection.reply(to: "PING")
        server.stop()
        await fails(.unreachable, "cannot connect; check that the server is running") {
            try await connection.reply(to: "PING")
        }
        let restarted = try RedisTestServer(port: server.port)
        try await eventually { try await connection.reply(to: "PING") == .status("PONG") }
        restarted.stop()
        // An idle connection that the server has closed costs no call.
        let again = try RedisTestServer(port: server.port)
        #expect(try await connection.reply(to: "PING") == .status("PONG"))
        again.stop()
    }

    @Test func `calls during the backoff fail at once and say when the server is tried again`() async throws {
        let port = try RefusingPort().port
        var configuration = RedisConnection.Configuration(try RedisURL("redis://:secret@127.0.0.1:\(port)"))
        configuration.firstBackoffSeconds = 10_000
        configuration.maxBackoffSeconds = 10_000
        let connection = RedisConnection(configuration)
        let first = try await #require(throws: RedisError.self) { try await connection.reply(to: "PING") }
        #expect(first.code == .unreachable)
        #expect(try #require(first.retrySeconds) >= 5_000)
        let server = try RedisTestServer("--requirepass", "secret", port: port)
        let second = try await #require(throws: RedisError.self) { try await connection.reply(to: "PING") }
        #expect(second.code == .unreachable)
        #expect(try #require(second.retrySeconds) <= 10_000)
        #expect(second.message.contains("; retrying in "))
        #expect(!second.message.contains("secret"))
        server.stop()
    }

    @Test func `a server that does not answer fails the call at its deadline`() async throws {
        let server = try RedisTestServer()
        let connection = try server.connection()
        let process = try #require(pid_t(try await connection.info("process_id")))
        kill(process, SIGSTOP)
        defer { kill(process, SIGCONT) }
        await fails(.timedOut, "0 of 1 replies") {
            try await connection.send([["PING"]], timeoutSeconds: 0.2)
        }
        // The kernel accepts connections, but the server does not.
        let new = try server.connection()
        await fails(.timedOut, "the server may be overloaded") {
            try await new.send([["PING"]], timeoutSeconds: 0.2)
        }
        kill(process, SIGCONT)
        try await eventually { try await connection.reply(to: "PING") == .status("PONG") }
    }

    @Test(arguments: [false, true])
    func `a blocking read ends when its task is cancelled or the connection closed`(closes: Bool) async throws {
        let server = try RedisTestServer()
        let (blocked, observer) = (try server.connection(), try server.connection())
        let command: [RedisWord] = ["XREAD", "BLOCK", "0", "STREAMS", "s", "0"]
        let reading = Task { try await blocked.send([command], timeoutSeconds: 86_400) }
        try await eventually { try await observer.info("blocked_clients") == "1" }
        let waiting = Task { try await blocked.send([["PING"]], timeoutSeconds: 86_400) }
        if closes { blocked.close() } else { reading.cancel() }
        await fails(closes ? .closed : .cancelled, "") { try await reading.value }
        // The thread has left the connection too, and is free for the next call.
        try await eventually { try await observer.info("blocked_clients") == "0" }
        if closes {
            await fails(.closed, "the connection is closed") { try await waiting.value }
            await fails(.closed, "the connection is closed") { try await blocked.send([["PING"]]) }
        } else {
            #expect(try await waiting.value == [.status("PONG")])
        }
    }

    @Test func `a call of a cancelled task does not begin`() async throws {
        let server = try RedisTestServer()
        let connection = try server.connection()
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await connection.send([["SET", "a", "1"]])
        }
        await fails(.cancelled, "") { try await task.value }
        #expect(try await connection.reply(to: "GET", "a") == .null)
    }

    @Test func `a reply over the limit ends the connection`() async throws {
        let server = try RedisTestServer()
        var configuration = try server.configuration()
        configuration.maxReplyBytes = 1 << 20
        let connection = RedisConnection(configuration)
        try await connection.reply(to: "SET", "large", RedisWord([UInt8](repeating: 1, count: 2 << 20)))
        await fails(.protocolViolation, "exceeds the limit of 1048576 bytes") {
            try await connection.reply(to: "GET", "large")
        }
        // Replies together may be larger.
        let small = RedisWord([UInt8](repeating: 1, count: 1 << 19))
        try await eventually { try await connection.reply(to: "SET", "small", small) == .status("OK") }
        try await eventually { try await connection.send(Array(repeating: ["GET", "small"], count: 10)).count == 10 }
    }

    @Test(arguments: [
        ("HTTP/1.1 400 Bad Request\r\n\r\n", RedisError.Code.protocolViolation, "is not valid in the Redis protocol"),
        ("*1\r\n*1\r\n$-7\r\n", .protocolViolation, "is not valid in the Redis protocol"),
        ("+PONG\r\n+PONG\r\n", .protocolViolation, "more replies than it received commands"),
        ("-LOADING Redis is loading the dataset in memory\r\n", .server, "try again later"),
        ("-ERR max number of clients reached\r\n", .server, "max number of clients"),
        ("", .unreachable, "the server closed the connection"),
        ("$5\r\nab", .unreachable, "the server closed the connection"),
    ])
    func `malformed and cut replies are typed errors`(
        answer: String, code: RedisError.Code, message: String
    ) async throws {
        let server = try BabblingServer(Array(answer.utf8), thenCloses: code == .unreachable)
        let connection = RedisConnection(.init(try RedisURL("redis://127.0.0.1:\(server.port)")))
        await fails(code, message) { try await connection.reply(to: "PING") }
    }

    /// Expects an error of a kind that names the server and contains a text, and no password of these tests.
    private func fails(
        _ code: RedisError.Code, _ text: String, at location: SourceLocation = #_sourceLocation,
        _ body: () async throws -> Any
    ) async {
        let error = await #expect(throws: RedisError.self, sourceLocation: location) { try await body() }
        guard let error else { return }
        #expect(error.code == code, "\(error)", sourceLocation: location)
        #expect(error.message.contains(text), sourceLocation: location)
        #expect(error.message.contains("://127.0.0.1:"), sourceLocation: location)
        #expect(!error.message.contains("secret"), sourceLocation: location)
    }
}
