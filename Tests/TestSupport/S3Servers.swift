import Glibc

/// An S3 server with empty buckets. The server stops when this object is released.
public final class BucketServer: Sendable {
    /// The server's URL, `http://127.0.0.1:PORT`.
    public let endpoint: String
    /// The folder with the buckets of rclone.
    public let folder = ScratchFolder()
    private let program: HelperProgram

    /// Starts a server.
    ///
    /// - Parameters:
    ///   - name: `rclone` or `moto`.
    ///   - buckets: The names of the buckets.
    ///   - isShared: As in `S3Servers.rclone`.
    public init(_ name: String = "rclone", _ buckets: String..., isShared: Bool = false) throws(ProgramError) {
        for bucket in buckets { mkdir(folder(bucket), 0o700) }
        (program, endpoint) =
            name == "moto" ? try S3Servers.moto() : try S3Servers.rclone(folder.path, isShared: isShared)
        program.readOn()
        guard name == "moto" else { return }
        for bucket in buckets {
            let put = try HelperProgram(["curl", "-sSf", "-X", "PUT", endpoint + "/" + bucket])
            guard put.waitForEnd() == 0 else { throw ProgramError("no bucket \(bucket): \(put.text)") }
        }
    }

    deinit { stop() }

    /// Kills the server.
    public func stop() { program.stop() }
}

/// Third-party S3 servers from PyPI (`scripts/install-s3-servers`).
public enum S3Servers {
    private static let folder = FuzzPlan.root + "/.build/s3-servers/bin"

    /// Whether the script has installed them.
    public static var areInstalled: Bool {
        access(folder + "/rclone", X_OK) == 0 && access(folder + "/moto_server", X_OK) == 0
    }

    /// Starts a program that prints the port on which it listens. The program also prints a line for many of the
    /// requests and blocks when the pipe is full. If there are more than a few requests, call `readOn`, and then
    /// `stop`, too.
    public static func start(_ words: [String]) throws(ProgramError) -> (HelperProgram, endpoint: String) {
        let program = try HelperProgram(["\(folder)/\(words[0])"] + words.dropFirst())
        guard let rest = program.line(after: "http://127.0.0.1:") else {
            throw ProgramError("\(words[0]) does not start: \(program.text)")
        }
        return (program, "http://127.0.0.1:\(rest.prefix { $0.isNumber })")
    }

    /// Starts moto, which responds as Amazon S3 does and does not check signatures.
    public static func moto() throws(ProgramError) -> (HelperProgram, endpoint: String) {
        try start(["moto_server", "-H", "127.0.0.1", "-p", "0"])
    }

    /// Starts rclone, which checks signatures (access key `ACCESSKEY`, secret `SECRETKEY`). Its buckets are the folders
    /// in `folder`.
    ///
    /// - Parameter isShared: Whether the test also writes into the folders. rclone may then hang under load.
    public static func rclone(
        _ folder: String, isShared: Bool = true
    ) throws(ProgramError) -> (HelperProgram, endpoint: String) {
        try start(
            [
                "rclone", "serve", "s3", "--auth-key", "ACCESSKEY,SECRETKEY", "--addr", "127.0.0.1:0", "--config",
                "/dev/null", "--vfs-cache-mode", "off", folder,
            ] + (isShared ? ["--dir-cache-time", "0s"] : []))
    }
}
