import Glibc

/// A file that a batch writes in addition to its outputs: the report, the contact sheet, the manifest, or the record of
/// outputs.
protocol BatchSink: AnyObject {
    /// The phrase that precedes the error in the summary if writing fails.
    var problem: String { get }
    /// Adds an item. Called in input order. After an error, the sink is no longer used.
    func add(_ output: BatchOutput) throws(FileError)
    /// Completes the file. The summary includes all items.
    func finish(_ summary: inout BatchSummary) throws(FileError)
}

/// The report: one line of JSON per item.
final class BatchReport: BatchSink {
    let problem = "the report is incomplete"
    private let path: String
    /// The file descriptor, or -1 after the file has been closed.
    private var file: Int32

    /// - Parameter resumes: Whether to keep the lines of an earlier run.
    init(_ path: String, resumes: Bool) throws(FileError) {
        self.path = path
        let flags = resumes ? O_RDWR : O_WRONLY | O_TRUNC
        file = path == "-" ? dup(STDOUT_FILENO) : open(path, flags | O_CREAT | O_CLOEXEC, 0o666)
        guard file >= 0 else { throw FileError("write", path) }
    }

    deinit { if file >= 0 { close(file) } }

    /// Calls `body` with each complete line of an earlier run's report, and truncates the file after the last one.
    func resume(_ body: (ItemJSON) -> Void) throws(FileError) {
        var info = stat()
        guard path != "-", fstat(file, &info) == 0, info.st_mode & S_IFMT == S_IFREG else { return }
        let lines = LineReader(descriptor: file, name: "report")
        var end = 0
        while let text = try? lines.nextLine(), end + text.utf8.count < Int(info.st_size),
            let line = ItemJSON(line: text)
        {
            end += text.utf8.count + 1
            body(line)
        }
        if ftruncate(file, end) != 0 || lseek(file, end, SEEK_SET) < 0 { throw FileError("write", path) }
    }

    func add(_ output: BatchOutput) throws(FileError) {
        try AtomicOutput.write(Array((output.line.line + "\n").utf8), toDescriptor: file, named: path)
    }

    func finish(_ summary: inout BatchSummary) throws(FileError) {
        defer { file = -1 }
        if close(file) != 0 { throw FileError("write", path) }
    }
}
