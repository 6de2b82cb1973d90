import Glibc

/// A redis-server of its own on loopback, with its folder; it ends with this value.
package final class RedisTestServer: Sendable {
    package static let isInstalled = (try? HelperProgram(["redis-server", "--version"]).waitForEnd()) == 0

    package struct NotStarted: Error {}

    package let port: Int
    private let folder: String
    private let program: HelperProgram

    /// `redis://127.0.0.1:PORT`
    package var url: String { "redis://127.0.0.1:\(port)" }

    /// - Parameter port: nil for one that is free.
    package init(_ settings: String..., tls: (certificate: String, key: String)? = nil, port: Int? = nil) throws {
        var name = Array("/tmp/redis-test-XXXXXX".utf8CString)
        guard mkdtemp(&name) != nil else { throw NotStarted() }
        folder = String(decoding: name.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
        var started: (HelperProgram, Int)?
        // Redis cannot let the system choose a port: try one that was free a moment ago, several times if needed.
        for _ in 0..<8 where started == nil {
            let port = try port ?? RefusingPort().port
            var words = ["redis-server", "--bind", "127.0.0.1", "--save", "", "--dir", folder]
            if let tls {
                words += ["--port", "0", "--tls-port", String(port), "--tls-auth-clients", "no"]
                words += ["--tls-cert-file", tls.certificate, "--tls-key-file", tls.key]
                words += ["--tls-ca-cert-file", tls.certificate]
            } else {
                words += ["--port", String(port)]
            }
            let program = try HelperProgram(words + settings)
            if program.line(after: "Ready to accept connections") != nil { started = (program, port) }
        }
        guard let started else { throw NotStarted() }
        (program, self.port) = started
    }

    deinit {
        stop()
        // Ignore errors: a leftover folder in /tmp does no harm.
        _ = try? HelperProgram(["rm", "-rf", folder]).waitForEnd()
    }

    /// Kills the server and waits for its end.
    package func stop() { program.stop() }
}
