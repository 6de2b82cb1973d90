import Glibc

/// S3 servers of PyPI, none of them ours (`scripts/install-s3-servers`).
public enum S3Servers {
    private static let folder =
        #filePath.split(separator: "/").dropLast(3).reduce("") { $0 + "/" + $1 } + "/.build/s3-servers/bin"

    /// Whether the script has installed them.
    public static var areInstalled: Bool {
        access(folder + "/rclone", X_OK) == 0 && access(folder + "/moto_server", X_OK) == 0
    }

    /// Starts a program that prints the port it has taken. It prints a line for many a request: `readOn` if there are more
    /// than a few, or it stops when the pipe is full; then `stop` it, too.
    public static func start(_ words: [String]) throws(ProgramError) -> (HelperProgram, endpoint: String) {
        let program = try HelperProgram(["\(folder)/\(words[0])"] + words.dropFirst())
        guard let rest = program.line(after: "http://127.0.0.1:") else {
            throw ProgramError("\(words[0]) does not start: \(program.text)")
        }
        return (program, "http://127.0.0.1:\(rest.prefix { $0.isNumber })")
    }

    /// moto, which answers as Amazon does and checks no signatures.
    public static func moto() throws(ProgramError) -> (HelperProgram, endpoint: String) {
        try start(["moto_server", "-H", "127.0.0.1", "-p", "0"])
    }

    /// rclone, which checks the signatures of `ACCESSKEY` with `SECRETKEY`; its buckets are the folders in `folder`.
    ///
    /// - Parameter isShared: whether the test writes into the folders as well; rclone may then hang under load.
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
