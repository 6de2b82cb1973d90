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
/// A later run finds the outputs that have lost their sources: files that do not exist any more, and URLs that the same
/// arguments no longer name. It ignores outputs with other bytes than a batch wrote.
struct OutputRecord: ~Copyable {
    private let options: RecordOptions
    private let file: AtomicFile
    /// Hashes of the names written in this run, and the sources it read.
    private var names: Set<Int> = []
    private var sources: Set<Int> = []
    private var failure: FileError?

    private struct Line {
        var output: String
        var digest: String
        /// The absolute path of a file, or the hash of another source, which may have credentials.
        var source: String
        var inputs: String?

        var isFile: Bool { source.utf8.first == UInt8(ascii: "/") }

        var text: String {
            var json = JSONText()
            json.add("output", output)
            json.add("digest", digest)
            json.add("source", source)
            json.add("inputs", inputs)
            return json.closed + "\n"
        }

        init(output: String, digest: String, source: String) {
            (self.output, self.digest) = (output, digest)
            if case .file(let path) = ImageSource(source) {
                self.source = absolutePath(path)
            } else {
                self.source = String(sha256Hex(source).prefix(16))
            }
        }

        /// nil for what is no line of a record.
        init?(_ text: String) {
            guard let json = try? JSONParser.parse(text), let output = json["output"]?.text,
                let digest = json["digest"]?.text, let source = json["source"]?.text
            else { return nil }
            (self.output, self.digest, self.source) = (output, digest, source)
            inputs = json["inputs"]?.text
        }
    }

    /// - Parameter folder: the output folder, which is there.
    init(of folder: String, _ options: RecordOptions) throws(FileError) {
        self.options = options
        // As the other folders of a cache. A failure shows below.
        mkdir(options.folder, 0o700)
        let name = sha256Hex(AtomicOutput.resolved(folder) ?? folder).prefix(32)
        file = try AtomicFile(path: "\(options.folder)/\(name).jsonl", makeFolders: true)
    }

    mutating func add(_ output: BatchOutput) {
        let item = output.line
        var line = Line(output: output.name ?? "", digest: item.digest ?? "", source: item.source)
        if !line.isFile { sources.insert(line.source.hashValue) }
        guard item.error == nil, item.digest != nil, output.name != nil else { return }
        line.inputs = options.inputs
        if names.insert(ByteString(line.output).hashValue).inserted { write(line) }
    }

    private mutating func write(_ line: Line) {
        guard failure == nil else { return }
        do throws(FileError) { try file.write(Array(line.text.utf8)) } catch { failure = error }
    }

    /// Takes over what earlier runs wrote, and finds the outputs without a source.
    ///
    /// - Parameters:
    ///   - isWhole: whether the run read all of its inputs. Otherwise no output is removed.
    ///   - refusal: why a file must not be removed; nil if it may be.
    consuming func finish(
        in folder: String, isWhole: Bool, refusal: (String) -> String?
    ) -> (orphans: [String], pruned: Int, problems: [String]) {
        var result = (orphans: [String](), pruned: 0, problems: [String]())
        let earlier = open(file.path, O_RDONLY | O_CLOEXEC)
        let lines = LineReader(descriptor: earlier, name: file.path, ownsDescriptor: true)
        while earlier >= 0, let text = try? lines.nextLine() {
            guard let line = Line(text), !names.contains(ByteString(line.output).hashValue) else { continue }
            let path = folder + "/" + line.output
            guard access(path, F_OK) == 0 else { continue }
            if isWhole, isGone(line), Self.digest(path) == line.digest, refusal(path) == nil {
                if options.prunes, unlink(path) == 0 {
                    result.pruned += 1
                    continue
                }
                if options.prunes { result.problems.append("\(FileError("remove", path))") }
                result.orphans.append(path)
            }
            write(line)
        }
        if options.prunes, !isWhole {
            result.problems.append("no output was removed, since the inputs were not read to their end")
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

    private func isGone(_ line: Line) -> Bool {
        if line.isFile { return access(line.source, F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR) }
        return line.inputs != nil && line.inputs == options.inputs && !sources.contains(line.source.hashValue)
    }

    /// nil for what is no regular file, or cannot be read.
    private static func digest(_ path: String) -> String? {
        var status = stat()
        guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
        return (try? LocalFile.open(path, byteLimit: Int(status.st_size)).bytes()).map { sha256Hex($0) }
    }
}
