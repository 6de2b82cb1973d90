import CRedis
import Glibc
import PipelineFleet
import PipelineSupport
import TestSupport
import Testing

extension Trait where Self == ConditionTrait {
    /// Skips tests that need a real server.
    static var needsRedis: Self {
        .enabled(
            if: credis_load() && RedisTestServer.isInstalled,
            "redis-server or hiredis is missing (scripts/install-dependencies redis)")
    }
}

extension RedisTestServer {
    func configuration(
        _ credentials: String = "", scheme: String = "redis", host: String = "127.0.0.1", path: String = ""
    ) throws -> RedisConnection.Configuration {
        var configuration = RedisConnection.Configuration(
            try RedisURL("\(scheme)://\(credentials)\(host):\(port)\(path)"))
        // Generous, since the machine may be busy; tests of deadlines choose their own.
        configuration.timeoutSeconds = 60
        configuration.firstBackoffSeconds = 0.01
        configuration.maxBackoffSeconds = 0.05
        return configuration
    }

    func connection(_ credentials: String = "", path: String = "") throws -> RedisConnection {
        RedisConnection(try configuration(credentials, path: path))
    }
}

extension RedisConnection {
    /// The reply to one command.
    @discardableResult func reply(to command: RedisWord...) async throws -> RedisReply {
        try #require(try await send([command]).first)
    }

    /// A line of INFO.
    func info(_ name: String) async throws -> String {
        guard case .bytes(let bytes) = try await reply(to: "INFO") else { return "" }
        let lines = String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isNewline)
        return String(try #require(lines.first { $0.hasPrefix(name + ":") }).dropFirst(name.count + 1))
    }
}

/// A server that answers each connection's first bytes with the same bytes, whatever they ask for.
final class BabblingServer: Sendable {
    let port: Int
    private let listener: Int32

    init(_ answer: [UInt8], thenCloses: Bool = false) throws {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                _ = bind(listener, pointer, length)
                _ = listen(listener, 8)
                _ = getsockname(listener, pointer, &length)
            }
        }
        self.listener = listener
        port = Int(UInt16(bigEndian: address.sin_port))
        let isStarted = startThread {
            while true {
                let client = accept(listener, nil, nil)
                if client < 0 { break }
                var buffer = [UInt8](repeating: 0, count: 4096)
                if read(client, &buffer, buffer.count) > 0 {
                    _ = Glibc.send(client, answer, answer.count, Int32(MSG_NOSIGNAL))
                    if !thenCloses { while read(client, &buffer, buffer.count) > 0 {} }
                }
                close(client)
            }
            // Closed earlier, the descriptor could already be another server's while this thread still accepts on it.
            close(listener)
        }
        try #require(isStarted)
    }

    deinit { shutdown(listener, Int32(SHUT_RDWR)) }
}
