import Glibc

/// A redis-server on loopback with its own folder. The server stops when this object is released.
package final class RedisTestServer: Sendable {
    package static let isInstalled = (try? HelperProgram(["redis-server", "--version"]).waitForEnd()) == 0

    package struct NotStarted: Error {}

    package let port: Int
    private let folder = ScratchFolder()
    private let program: HelperProgram

    /// The server's URL, `redis://127.0.0.1:PORT`.
    package var url: String { "redis://127.0.0.1:\(port)" }

    /// - Parameter port: The port; nil to use a free port.
    package init(_ settings: String..., tls: (certificate: String, key: String)? = nil, port: Int? = nil) throws {
        var started: (HelperProgram, Int)?
        // Redis cannot let the system choose a port. Try a port that was free just before, several times if necessary.
        for _ in 0..<8 where started == nil {
            let port = try port ?? RefusingPort().port
            var words = ["redis-server", "--bind", "127.0.0.1", "--save", "", "--dir", folder.path]
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

    deinit { stop() }

    /// Kills the server and waits until it has exited.
    package func stop() { program.stop() }
}
