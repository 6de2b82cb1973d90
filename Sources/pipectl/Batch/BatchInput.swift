import Glibc
import Pipeline
import PipelineSupport

struct BatchSource: Sendable, Hashable {
    /// The source as given, or DIR/relative path for a file found in a folder.
    var source: String
    /// The folder of the file or object relative to the folder argument. Empty if the source is not from a folder.
    var folder = ""
    /// The output name that a manifest sets for this source.
    var name: String?
    /// The recipes that a manifest sets instead of `-r`, or nil if the manifest sets no recipes.
    var recipes: [String]?
    /// Whether the source was found while reading a folder rather than named by the user.
    var isFound = false
    /// The size of an object in bytes, if the object was found by listing a bucket.
    var length: Int?
}

/// An entry of the input: a source, or a line or folder that cannot be used. Such a line or folder becomes a failed
/// item and does not stop the batch.
enum BatchEntry: Sendable, Hashable {
    case source(BatchSource)
    /// `source` names the line, for example `list.csv:12`.
    case failure(source: String, BatchFailure)
    /// A name in a folder that is skipped.
    case leftOut(source: String, SkipReason)
    /// An output of this batch, written by this run or an earlier run.
    case ownOutput
}

/// The reason why a name in a folder is skipped, as shown in the report.
enum SkipReason: String, Sendable, CaseIterable {
    case hidden = "its name begins with a dot; use --hidden to include it"
    case otherPrograms = "another program created this folder; to include it, name it as a source"
    case excluded = "it matches an --exclude pattern"
    case link = "it is a symbolic link; use --follow-links to include it"
    case deadLink = "the target of the link does not exist"
    case knownFolder = "it links to a folder that has already been read"

    init(_ reason: FolderRule.Reason) {
        self =
            switch reason {
            case .hidden: .hidden
            case .otherPrograms: .otherPrograms
            case .excluded: .excluded
            }
    }
}

/// The sources of a batch, read one at a time. Lists and manifests are never completely loaded into memory.
///
/// An argument is interpreted as the first of these that applies:
/// - `-`: standard input, with its format detected from the first line
/// - a folder in a bucket (`s3://BUCKET/PREFIX/`, in which the slash is optional if the last segment has no dot and
///   there are objects below it)
/// - a URL
/// - an existing folder, read recursively in natural order of names
/// - an existing file: JSON Lines (`.jsonl`, `.ndjson`), CSV (`.csv`), one source per line (`.txt`, `.list`, `.urls`),
///   or a picture (other extensions)
/// - a glob (`*`, `?`, `[`)
/// - a source, which the pipeline reports as not found
struct BatchInput: Sequence {
    var arguments: [String]
    /// The folders to skip within folder arguments. They are the output folder and the cache, so that a run does not
    /// read its own results.
    var excludedFolders: [String] = []
    /// The rule that decides which names in folders, globs and buckets are skipped. If nil, none is skipped.
    var rule: FolderRule? = FolderRule()
    /// Whether symbolic links in folders are followed. A link to a folder that has already been entered is skipped,
    /// which ends loops.
    var followsLinks = false
    /// Returns whether a source is an output of the batch. Outputs are skipped.
    var isOwnOutput: @Sendable (BatchSource) -> Bool = { _ in false }
    /// Lists buckets. If nil, each URL is a source.
    var buckets: (any FolderStore)?
    /// Polled while waiting for standard input. If it returns true, the input ends.
    var isInterrupted: @Sendable () -> Bool = { false }

    /// Whether an argument may specify recipes, so that `-r` is optional.
    var mayCarryRecipes: Bool {
        arguments.contains { argument in
            argument == "-" || InputKind.glob(argument)
                || [.jsonLines, .csv].contains(InputKind.ofFile(named: argument))
        }
    }

    /// Returns the number of items. A source without recipes counts as `defaultRecipes` items. Reads the complete
    /// input. Returns nil if the arguments include standard input, which can be read only once, or a bucket, which
    /// takes a long time to list.
    func itemCount(defaultRecipes: Int) -> Int? {
        if arguments.contains(where: { $0 == "-" || BucketReader.folder($0) != nil }) { return nil }
        return reduce(0) { total, entry in
            switch entry {
            case .source(let source): total + (source.recipes?.count ?? defaultRecipes)
            case .failure: total + 1
            case .ownOutput, .leftOut: total
            }
        }
    }

    /// A message that explains why the input contains no items.
    var whyNothing: String {
        let reasons = arguments.map { argument in
            switch InputKind.of(path: argument) {
            case .folder:
                let isOutputInside = excludedFolders.contains { Self.contains(argument, $0) }
                return "\(argument) contains no files"
                    + (isOutputInside ? " except in the output folder and the cache folder, which are skipped" : "")
            case .lines, .jsonLines, .csv: return "\(argument) lists no sources"
            case _ where BucketReader.folder(argument) != nil: return "\(argument) contains no objects"
            default: return argument == "-" ? "standard input lists no sources" : "\(argument) contains no files"
            }
        }
        return "nothing to do: " + reasons.joined(separator: "; ")
    }

    /// Whether `other` is `folder` itself or is contained in it.
    static func contains(_ folder: String, _ other: String) -> Bool {
        guard let folder = AtomicOutput.resolved(folder), let other = AtomicOutput.resolved(other) else { return false }
        return (other + "/").utf8.starts(with: (folder == "/" ? folder : folder + "/").utf8)
    }

    func makeIterator() -> Iterator { Iterator(self) }

    struct Iterator: IteratorProtocol {
        private let input: BatchInput
        private var position = 0
        /// The unread paths that matched the last glob.
        private var matches: ArraySlice<String> = []
        private var current: (any EntryReader)?
        private let excluded: [FileIdentity]

        fileprivate init(_ input: BatchInput) {
            self.input = input
            excluded = input.excludedFolders.compactMap { FileIdentity(path: $0) }
        }

        mutating func next() -> BatchEntry? {
            guard let entry = nextOfAll() else { return nil }
            if case .source(let source) = entry, input.isOwnOutput(source) { return .ownOutput }
            return entry
        }

        private mutating func nextOfAll() -> BatchEntry? {
            while true {
                if let entry = current?.next() { return entry }
                current = nil
                if let path = matches.popFirst() {
                    if let folder = FileIdentity(path: path), excluded.contains(folder) { continue }
                    let name = path.splitAtLastSlash?.name ?? path
                    // If a pattern matches a hidden name, the pattern itself begins with a dot.
                    if let reason = input.rule?.reason(toLeaveOut: name, at: path), reason != .hidden {
                        return .leftOut(source: path, SkipReason(reason))
                    }
                    if !input.followsLinks, FileIdentity.isLink(path) { return .leftOut(source: path, .link) }
                    if let entry = open(path) { return entry }
                    continue
                }
                guard position < input.arguments.count, !input.isInterrupted() else { return nil }
                let argument = input.arguments[position]
                position += 1
                if let entry = start(argument) { return entry }
            }
        }

        /// If the argument is a single entry, returns that entry. Otherwise, sets `current` or `matches` and returns
        /// nil.
        private mutating func start(_ argument: String) -> BatchEntry? {
            if argument == "-" {
                let lines = LineReader(descriptor: STDIN_FILENO, name: "stdin", isInterrupted: input.isInterrupted)
                current = SniffingReader(lines)
                return nil
            }
            if let buckets = input.buckets, let folder = BucketReader.folder(argument) {
                current = BucketReader(
                    folder, in: buckets, named: argument, excluding: input.excludedFolders, rule: input.rule,
                    isInterrupted: input.isInterrupted)
                return nil
            }
            if argument.firstRange(of: "://") != nil { return .source(BatchSource(source: argument)) }
            guard InputKind.of(path: argument) == .glob else { return open(argument) }
            matches = InputKind.expand(argument)[...]
            guard matches.isEmpty else { return nil }
            return .failure(
                source: argument, BatchFailure(code: .notFound, message: "no file matches the pattern \(argument)"))
        }

        /// Opens a path. Folders are walked, manifests are parsed, and other files are sources.
        private mutating func open(_ path: String) -> BatchEntry? {
            switch InputKind.of(path: path) {
            case .folder:
                current = FolderReader(path, excluding: excluded, rule: input.rule, followsLinks: input.followsLinks)
            case .lines, .jsonLines, .csv:
                do {
                    current = try InputKind.manifestReader(path)
                } catch {
                    return .failure(source: path, BatchFailure(code: .notFound, message: error.description))
                }
            default: return .source(BatchSource(source: path))
            }
            return nil
        }
    }
}

/// Reads entries from one argument. Returns nil at the end.
protocol EntryReader: AnyObject {
    func next() -> BatchEntry?
}

/// A file's device and inode, which identify the file regardless of its path.
struct FileIdentity: Hashable {
    var device: UInt
    var inode: UInt

    init?(path: String) {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        self.init(status)
    }

    static func isLink(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFLNK
    }

    init(_ status: stat) {
        device = UInt(status.st_dev)
        inode = UInt(status.st_ino)
    }
}

enum InputKind: Hashable {
    case folder, picture, lines, jsonLines, csv, glob, absent

    static func of(path: String) -> InputKind {
        var status = stat()
        if stat(path, &status) == 0 {
            return status.st_mode & S_IFMT == S_IFDIR ? .folder : ofFile(named: path)
        }
        return glob(path) ? .glob : .absent
    }

    static func ofFile(named path: String) -> InputKind {
        guard let dot = path.lastIndex(of: ".") else { return .picture }
        switch path[dot...].lowercased() {
        case ".jsonl", ".ndjson": return .jsonLines
        case ".csv": return .csv
        case ".txt", ".list", ".urls": return .lines
        default: return .picture
        }
    }

    static func glob(_ text: String) -> Bool {
        text.firstRange(of: "://") == nil && text.contains { "*?[".contains($0) }
    }

    /// Returns the paths that match a glob, in natural order.
    static func expand(_ pattern: String) -> [String] {
        var matches = glob_t()
        defer { globfree(&matches) }
        guard Glibc.glob(pattern, 0, nil, &matches) == 0 else { return [] }
        return (0..<Int(matches.gl_pathc)).compactMap { matches.gl_pathv[$0].map { String(cString: $0) } }
            .sorted { NaturalOrder.precedes($0.utf8, $1.utf8) }
    }

    static func manifestReader(_ path: String) throws(FileError) -> any EntryReader {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { throw FileError("open", path) }
        let lines = LineReader(descriptor: file, name: path, ownsDescriptor: true)
        let reader: any EntryReader =
            switch ofFile(named: path) {
            case .jsonLines: SourceLinesReader(lines, SourceLinesReader.fromJSON)
            case .csv: CSVReader(lines)
            default: SourceLinesReader(lines)
            }
        return path.splitAtLastSlash != nil ? RelativeReader(reader, manifest: path) : reader
    }
}

/// The entries of a manifest, with relative paths resolved against the manifest's folder.
final class RelativeReader: EntryReader {
    private let reader: any EntryReader
    private let manifest: String

    init(_ reader: any EntryReader, manifest: String) {
        self.reader = reader
        self.manifest = manifest
    }

    func next() -> BatchEntry? {
        guard let entry = reader.next() else { return nil }
        guard case .source(var source) = entry, ImageSource(source.source) == .file(source.source) else { return entry }
        let path = source.source.relative(toFolderOf: manifest)
        // This is probably a URL without its scheme. The error message suggests a URL based on the original string.
        if SourceHint.looksLikeHost(source.source), access(path, F_OK) != 0 { return entry }
        source.source = path
        return .source(source)
    }
}
