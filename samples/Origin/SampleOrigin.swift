import Glibc
import TestSupport

/// A demonstration origin that serves a folder on 127.0.0.1 with validators and logs its responses.
@main
struct SampleOrigin {
    static let usage = "usage: sample-origin FOLDER --port-file FILE --log FILE [--max-age SECONDS]"

    static func main() {
        var folder: String?
        var values: [String: String] = [:]
        var arguments = CommandLine.arguments.dropFirst()
        while let argument = arguments.popFirst() {
            if ["--port-file", "--log", "--max-age"].contains(argument), let value = arguments.popFirst() {
                values[argument] = value
            } else if folder == nil, !argument.hasPrefix("-") {
                folder = argument
            } else {
                fail(usage, code: 2)
            }
        }
        guard let folder, let portFile = values["--port-file"], let log = values["--log"] else { fail(usage, code: 2) }
        let maxAge = values["--max-age"].flatMap { Int($0) }
        if let text = values["--max-age"], maxAge == nil { fail("--max-age: `\(text)` is not a number", code: 2) }
        let descriptor = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else { fail("cannot write \(log): \(String(cString: strerror(errno)))", code: 8) }

        // Block the signals before any thread starts, so that all threads inherit the mask and only `sigwait` sees
        // them.
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGTERM)
        sigaddset(&signals, SIGINT)
        pthread_sigmask(SIG_BLOCK, &signals, nil)
        do {
            let origin = try FolderOrigin(folder: folder, maxAge: maxAge) { line in
                // Append each line with a single write, so that lines of several connections never mix.
                let bytes = Array((line + "\n").utf8)
                _ = write(descriptor, bytes, bytes.count)
            }
            publish(origin.port, to: portFile)
            var signal: Int32 = 0
            sigwait(&signals, &signal)
            origin.stop()
        } catch {
            fail("\(error)", code: 1)
        }
    }

    /// Writes the port to a file atomically, so that readers see the complete number or no file.
    private static func publish(_ port: Int, to path: String) {
        let temporary = path + ".new"
        let descriptor = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
        let bytes = Array("\(port)\n".utf8)
        guard descriptor >= 0, write(descriptor, bytes, bytes.count) == bytes.count, close(descriptor) == 0,
            rename(temporary, path) == 0
        else { fail("cannot write \(path): \(String(cString: strerror(errno)))", code: 8) }
    }

    private static func fail(_ message: String, code: Int32) -> Never {
        let bytes = Array((message + "\n").utf8)
        _ = write(2, bytes, bytes.count)
        exit(code)
    }
}
