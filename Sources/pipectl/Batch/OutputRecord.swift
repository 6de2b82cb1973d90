import Glibc
import Pipeline
import PipelineSupport

struct RecordOptions: Sendable {
    /// Where the records of all output folders are.
    var folder: String
    /// A hash of the batch's arguments; nil if it reads standard input, which differs from run to run.
    var inputs: String?
    /// Whether to remove outputs that have lost their sources.
    var prunes = false
}

/// The outputs that batches have written into a folder: one line of JSON for each, kept in the cache folder.
///
/// A later run with the same arguments finds the outputs that have lost their sources. It considers a file only if a batch
/// wrote it and it is unchanged: bytes and modification time are as recorded, no link leads to it, and this run has not
/// written it. Outputs in the folder of their source are never considered, since they may replace the source.
struct OutputRecord: ~Copyable {
    private let options: RecordOptions
    private let file: AtomicFile
    /// Hashes of the lines of earlier runs, the names of this run, and the sources that it read.
    private var known: Set<Int> = []
    private var names: Set<Int> = []
    private var sources: Set<Int> = []
    private var written: Set<FileIdentity> = []
    private var failure: FileError?

    private struct Line {
        var output: String
        var digest: String
        /// Unix nanoseconds.
        var modified: Int
        /// The absolute path of a file, or the hash of another source, which may have credentials.
        var source: String
        var inputs: String

        var isFile: Bool { source.utf8.first == UInt8(ascii: "/") }

        var text: String {
            var json = JSONText()
            json.add("output", output)
            json.add("digest", digest)
            json.add("modified", modified)
            json.add("source", source)
            json.add("inputs", inputs)
            return json.closed + "\n"
        }

        /// Equal for the same output with the same bytes and time.
        var fileHash: Int {
            var hasher = Hasher()
            hasher.combine(ByteString(output))
            hasher.combine(digest)
            hasher.combine(modified)
            return hasher.finalize()
        }

        init(output: String, digest: String, modified: Int, source: String, inputs: String) {
            (self.output, self.digest, self.modified) = (output, digest, modified)
            (self.source, self.inputs) = (source, inputs)
        }

        /// nil if the text is not a line of a record.
        init?(_ text: String) {
            guard let json = try? JSONParser.parse(text), let output = json["output"]?.text,
                let digest = json["digest"]?.text, let modified = json["modified"]?.whole,
                let source = json["source"]?.text, let inputs = json["inputs"]?.text
            else { return nil }
            self.init(output: output, digest: digest, modified: modified, source: source, inputs: inputs)
        }
    }

    /// - Parameter folder: the output folder, which exists.
    init(of folder: String, _ options: RecordOptions) throws(FileError) {
        self.options = options
        // Created as the other folders of a cache. The next call reports a failure.
        mkdir(options.folder, 0o700)
        let name = sha256Hex(AtomicOutput.resolved(folder) ?? folder).prefix(32)
        file = try AtomicFile(path: "\(options.folder)/\(name).jsonl", makeFolders: true)
        Self.forEachLine(of: file.path) { known.insert($0.fileHash) }
    }

    private static func forEachLine(of path: String, _ body: (Line) -> Void) {
        let earlier = open(path, O_RDONLY | O_CLOEXEC)
        guard earlier >= 0 else { return }
        let lines = LineReader(descriptor: earlier, name: path, ownsDescriptor: true)
        while let text = try? lines.nextLine() { if let line = Line(text) { body(line) } }
    }

    mutating func add(_ output: BatchOutput) {
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
        // A file that had these bytes already may be the user's.
        if item.written == true || known.contains(line.fileHash) { write(line) }
    }

    private mutating func write(_ line: Line) {
        guard failure == nil else { return }
        do throws(FileError) { try file.write(Array(line.text.utf8)) } catch { failure = error }
    }

    /// Takes over the lines of earlier runs, and finds the outputs without a source.
    ///
    /// - Parameters:
    ///   - isWhole: whether the run read all of its inputs. Otherwise no output is removed.
    ///   - refusal: returns why a file must not be removed; nil if it may be.
    consuming func finish(
        in folder: String, isWhole: Bool, refusal: (String) -> String?
    ) -> (orphans: [String], pruned: [String], problems: [String]) {
        var result = (orphans: [String](), pruned: [String](), problems: [String]())
        let root = AtomicOutput.resolved(folder)
        var lines: [Line] = []
        Self.forEachLine(of: file.path) { if !names.contains(ByteString($0.output).hashValue) { lines.append($0) } }
        for line in lines {
            let path = folder + "/" + line.output
            guard access(path, F_OK) == 0 else { continue }
            if isWhole, isGone(line), isUntouched(line, below: root), refusal(path) == nil {
                if options.prunes, unlink(path) == 0 {
                    result.pruned.append(path)
                    continue
                }
                if options.prunes { result.problems.append("\(FileError("remove", path))") }
                result.orphans.append(path)
            }
            write(line)
        }
        if options.prunes, !isWhole {
            result.problems.append("no output was removed: the run made no output, or could not read all of its inputs")
        }
        do throws(FileError) {
            if let failure { throw failure }
            try file.commit()
        } catch {
            // The next run knows less, and removes less.
            if options.prunes { result.problems.append("the record of outputs was not kept: \(error)") }
        }
        return result
    }

    /// Whether the same arguments no longer name the source. A file is not gone if its folder is there and empty, as where a
    /// disk is not mounted.
    private func isGone(_ line: Line) -> Bool {
        guard line.inputs == options.inputs else { return false }
        guard line.isFile else { return !sources.contains(line.source.hashValue) }
        guard access(line.source, F_OK) != 0, errno == ENOENT || errno == ENOTDIR else { return false }
        var folder = Self.parent(of: line.source)
        while access(folder, F_OK) != 0, folder != "/" { folder = Self.parent(of: folder) }
        guard let stream = opendir(folder) else { return false }
        defer { closedir(stream) }
        // Apart from `.` and `..`.
        return (0..<3).allSatisfy { _ in readdir(stream) != nil }
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
