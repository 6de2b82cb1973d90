import Glibc
import Pipeline
import PipelineSupport

struct RecordOptions: Sendable {
    /// The folder with the records of all output folders.
    var folder: String
    /// A hash of the batch's arguments, or nil if the batch reads standard input, which differs from run to run.
    var inputs: String?
    /// Whether to remove outputs whose source no longer exists.
    var prunes = false
}

/// A record of the outputs that batches have written into a folder. It contains one line of JSON per output and is
/// stored in the cache folder.
///
/// A later run with the same arguments uses the record to find outputs whose source no longer exists. A file is
/// considered only if a batch wrote it and it is unchanged. This requires that its bytes and modification time match
/// the record, its path contains no symbolic links, and this run has not written it. Outputs in the same folder as
/// their source are never considered, because they may have replaced the source.
final class OutputRecord: BatchSink {
    let problem = "the record of outputs was not saved, so --prune cannot find them later"
    private let folder: String
    private let refusal: (String) -> String?
    private let options: RecordOptions
    private let file: AtomicFile
    /// Hashes of the lines of earlier runs, of this run's output names, and of the sources that this run read.
    private var known: Set<Int> = []
    private var names: Set<Int> = []
    private var sources: Set<Int> = []
    private var written: Set<FileIdentity> = []
    private var failure: FileError?

    private struct Line: JSONRecord {
        var output = ""
        var digest = ""
        /// The modification time in Unix nanoseconds.
        var modified = 0
        /// The absolute path of a file, or a hash of any other source, which may contain credentials.
        var source = ""
        var inputs = ""

        static var blank: Self { Line() }

        var isFile: Bool { source.utf8.first == UInt8(ascii: "/") }

        mutating func visit(_ members: inout JSONMembers) {
            members("output", &output)
            members("digest", &digest)
            members("modified", &modified)
            members("source", &source)
            members("inputs", &inputs)
        }

        /// A hash that is equal for the same output with the same bytes and modification time.
        var fileHash: Int {
            var hasher = Hasher()
            hasher.combine(ByteString(output))
            hasher.combine(digest)
            hasher.combine(modified)
            return hasher.finalize()
        }
    }

    /// - Parameters:
    ///   - folder: The output folder. Must exist.
    ///   - refusal: A closure that returns the reason why a file must not be removed, or nil if it may be.
    init(
        of folder: String, _ options: RecordOptions, refusal: @escaping (String) -> String?
    ) throws(FileError) {
        (self.folder, self.options, self.refusal) = (folder, options, refusal)
        // The folder gets the same permissions as the other cache folders. If it cannot be created, the next call
        // reports the failure.
        mkdir(options.folder, 0o700)
        let name = sha256Hex(AtomicOutput.resolved(folder) ?? folder).prefix(32)
        file = try AtomicFile(path: "\(options.folder)/\(name).jsonl", makeFolders: true)
        Self.forEachLine(of: file.path) { known.insert($0.fileHash) }
    }

    private static func forEachLine(of path: String, _ body: (Line) -> Void) {
        let earlier = open(path, O_RDONLY | O_CLOEXEC)
        guard earlier >= 0 else { return }
        let lines = LineReader(descriptor: earlier, name: path, ownsDescriptor: true)
        while let text = try? lines.nextLine() { if let line = Line(line: text) { body(line) } }
    }

    func add(_ output: BatchOutput) {
        let item = output.line
        let source = Self.source(item.source)
        if source.utf8.first != UInt8(ascii: "/") { sources.insert(source.hashValue) }
        var status = stat()
        guard item.error == nil, let digest = item.digest, let name = output.name, let path = item.output,
            lstat(path, &status) == 0
        else { return }
        written.insert(FileIdentity(status))
        guard names.insert(ByteString(name).hashValue).inserted, let inputs = options.inputs else { return }
        if let folder = FileIdentity(path: Self.parent(of: path)), folder == FileIdentity(path: Self.parent(of: source))
        {
            return
        }
        let line = Line(
            output: name, digest: digest, modified: Self.modified(status), source: source, inputs: inputs)
        // A file that already contained these bytes may belong to the user.
        if item.written == true || known.contains(line.fileHash) { write(line) }
    }

    private func write(_ line: Line) {
        guard failure == nil else { return }
        do throws(FileError) { try file.write(Array((line.json + "\n").utf8)) } catch { failure = error }
    }

    /// Copies the lines of earlier runs and finds the outputs whose source no longer exists. Such outputs are removed
    /// only if the run read all of its inputs.
    func finish(_ summary: inout BatchSummary) throws(FileError) {
        let isWhole = summary.readAll
        let root = AtomicOutput.resolved(folder)
        var lines: [Line] = []
        Self.forEachLine(of: file.path) { if !names.contains(ByteString($0.output).hashValue) { lines.append($0) } }
        for line in lines {
            let path = folder + "/" + line.output
            guard access(path, F_OK) == 0 else { continue }
            if isWhole, isGone(line), isUntouched(line, below: root), refusal(path) == nil {
                if options.prunes, unlink(path) == 0 {
                    summary.pruned.append(path)
                    continue
                }
                if options.prunes { summary.problems.append("\(FileError("remove", path))") }
                summary.orphans.append(path)
            }
            write(line)
        }
        if options.prunes, !isWhole {
            summary.problems.append(
                "--prune removed nothing, because the run wrote no output or could not read all of its inputs")
        }
        do throws(FileError) {
            if let failure { throw failure }
            try file.commit()
        } catch {
            // Without a record, the next run finds fewer outputs to remove.
            if options.prunes { summary.problems.append("the record of outputs was not saved: \(error)") }
        }
    }

    /// Whether the same arguments no longer include the source. A file is not considered missing if its folder exists
    /// but is empty, for example because a disk is not mounted.
    private func isGone(_ line: Line) -> Bool {
        guard line.inputs == options.inputs else { return false }
        guard line.isFile else { return !sources.contains(line.source.hashValue) }
        guard access(line.source, F_OK) != 0, errno == ENOENT || errno == ENOTDIR else { return false }
        var folder = Self.parent(of: line.source)
        while access(folder, F_OK) != 0, folder != "/" { folder = Self.parent(of: folder) }
        var isEmpty = true
        forEachName(in: folder) { _ in
            isEmpty = false
            return false
        }
        return !isEmpty
    }

    private func isUntouched(_ line: Line, below root: String?) -> Bool {
        guard let root else { return false }
        let path = root + "/" + line.output
        var status = stat()
        guard AtomicOutput.resolved(path) == path, lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG,
            Self.modified(status) == line.modified, !written.contains(FileIdentity(status))
        else { return false }
        let bytes = try? LocalFile.open(path, byteLimit: Int(status.st_size)).bytes()
        return bytes.map { sha256Hex($0) } == line.digest
    }

    private static func modified(_ status: stat) -> Int {
        status.st_mtim.tv_sec &* 1_000_000_000 &+ status.st_mtim.tv_nsec
    }

    private static func source(_ text: String) -> String {
        if case .file(let path) = ImageSource(text) { return absolutePath(path) }
        return String(sha256Hex(text).prefix(16))
    }

    private static func parent(of path: String) -> String {
        path.splitAtLastSlash.map { $0.folder.isEmpty ? "/" : $0.folder } ?? "."
    }
}
