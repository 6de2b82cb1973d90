import Glibc

/// A certificate authority in its own folder, which uses the `openssl` command.
public final class TestAuthority: Sendable {
    /// The folder with the authority's files and with the files that a `TLSOrigin` serves.
    public let files = ScratchFolder()
    /// The path of the folder. The folder is removed when the authority is released.
    public var folder: String { files.path }
    /// The authority's own certificate, which clients must trust.
    public var certificate: String { folder + "/authority.pem" }

    /// Creates the authority.
    public init() throws(ProgramError) {
        try key("authority")
        try openssl(
            "req", "-x509", "-new", "-key", folder + "/authority.key", "-subj", "/CN=Test Authority", "-days", "2",
            "-out", certificate)
    }

    /// Issues a certificate and returns the paths of the certificate and its key.
    ///
    /// - Parameters:
    ///   - names: Subject alternative names, for example `DNS:localhost` or `IP:127.0.0.1`.
    ///   - days: The validity in days from now. A negative number issues an expired certificate.
    public func issue(
        _ name: String, names: String = "IP:127.0.0.1,DNS:localhost", days: Int = 2
    ) throws(ProgramError) -> (certificate: String, key: String) {
        let base = folder + "/" + name
        try key(name)
        try openssl(
            "req", "-new", "-key", base + ".key", "-subj", "/CN=\(name)", "-addext", "subjectAltName=" + names,
            "-out", base + ".csr")
        try openssl(
            "x509", "-req", "-in", base + ".csr", "-CA", certificate, "-CAkey", folder + "/authority.key",
            "-copy_extensions", "copy", "-days", String(days), "-out", base + ".pem")
        return (base + ".pem", base + ".key")
    }

    private func key(_ name: String) throws(ProgramError) {
        try openssl("ecparam", "-genkey", "-name", "prime256v1", "-noout", "-out", "\(folder)/\(name).key")
    }

    private func openssl(_ arguments: String...) throws(ProgramError) {
        let program = try HelperProgram(["openssl"] + arguments)
        let status = program.waitForEnd()
        guard status == 0 else {
            throw ProgramError("openssl \(arguments.joined(separator: " ")) ended with \(status): \(program.text)")
        }
    }
}

/// A real TLS server on 127.0.0.1: `openssl s_server` for HTTP/1.1, `nghttpd` for HTTP/2.
public final class TLSOrigin: Sendable {
    /// The port on which the server listens.
    public let port: Int
    private let program: HelperProgram

    /// Starts a server that responds to `GET /NAME` with the file NAME in `folder`.
    ///
    /// Over HTTP/1.1, the file is the complete response, including its header section. Over HTTP/2, the file is the
    /// body.
    public init(
        _ identity: (certificate: String, key: String), folder: String, http2: Bool = false
    ) throws(ProgramError) {
        guard http2 else {
            program = try HelperProgram(
                [
                    "openssl", "s_server", "-accept", "127.0.0.1:0", "-cert", identity.certificate, "-key",
                    identity.key, "-HTTP",
                ], folder: folder)
            guard let line = program.line(startingWith: "ACCEPT "),
                let port = Int(line.split(separator: ":").last ?? "")
            else { throw ProgramError("openssl s_server did not start: \(program.text)") }
            self.port = port
            return
        }
        // nghttpd cannot let the system choose a port. Try a port that was free just before, several times if
        // necessary.
        for _ in 0..<8 {
            let port = Self.freePort()
            let program = try HelperProgram(
                [
                    "nghttpd", "-v", "--address=127.0.0.1", "-d", folder, String(port), identity.key,
                    identity.certificate,
                ], folder: folder)
            if program.line(startingWith: "IPv4: listen") != nil {
                self.program = program
                self.port = port
                return
            }
            program.stop()
        }
        throw ProgramError("nghttpd did not start; Debian's package nghttp2-server has it")
    }

    deinit { stop() }

    /// Returns the URL of a file.
    public func url(_ name: String) -> String { "https://127.0.0.1:\(port)/\(name)" }

    /// Kills the server.
    public func stop() { program.stop() }

    private static func freePort() -> Int {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        defer { close(descriptor) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                _ = bind(descriptor, pointer, length)
                _ = getsockname(descriptor, pointer, &length)
            }
        }
        return Int(UInt16(bigEndian: address.sin_port))
    }
}
