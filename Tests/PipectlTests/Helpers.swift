import Pipeline
import Glibc
import Synchronization

@testable import pipectl

/// A folder of its own for one test, removed with the value.
final class ScratchFolder: Sendable {
    let path: String

    init() {
        var template = Array("/tmp/pipectl-tests-XXXXXX".utf8CString)
        path = template.withUnsafeMutableBufferPointer {
            $0.baseAddress.flatMap { mkdtemp($0) }.map { String(cString: $0) } ?? ""
        }
        precondition(!path.isEmpty, "no temporary folder")
    }

    deinit { Self.remove(path) }

    func callAsFunction(_ name: String) -> String { path + "/" + name }

    @discardableResult
    func write(_ text: String, to name: String) -> String {
        write(Array(text.utf8), to: name)
    }

    @discardableResult
    func write(_ bytes: [UInt8], to name: String) -> String {
        let target = self(name)
        if let slash = target.lastIndex(of: "/") { makeFolders(String(target[..<slash])) }
        let file = open(target, O_WRONLY | O_CREAT | O_TRUNC, 0o644)
        precondition(file >= 0, "cannot write \(target)")
        _ = bytes.withUnsafeBytes { Glibc.write(file, $0.baseAddress, $0.count) }
        close(file)
        return target
    }

    private func makeFolders(_ folder: String) {
        if mkdir(folder, 0o755) == 0 || errno == EEXIST { return }
        if let slash = folder.lastIndex(of: "/") { makeFolders(String(folder[..<slash])) }
        mkdir(folder, 0o755)
    }

    /// Bytes of a file; nil when there is none.
    func bytes(_ name: String) -> [UInt8]? { Self.bytes(at: self(name)) }

    /// Bytes of any file; nil when there is none.
    static func bytes(at path: String) -> [UInt8]? {
        let file = open(path, O_RDONLY)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var all: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while case let count = read(file, &buffer, buffer.count), count > 0 { all += buffer[..<count] }
        return all
    }

    func text(_ name: String) -> String? { bytes(name).map { String(decoding: $0, as: UTF8.self) } }

    /// Names in the folder, sorted.
    func names(_ folder: String = "") -> [String] {
        guard let names = try? FolderNames(path + "/" + folder) else { return [] }
        return (0..<names.count).compactMap { names[$0] }.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    }

    private static func remove(_ path: String) {
        var status = stat()
        guard lstat(path, &status) == 0 else { return }
        if status.st_mode & S_IFMT == S_IFDIR {
            chmod(path, 0o755)
            if let names = try? FolderNames(path) {
                for position in 0..<names.count { remove(path + "/" + names.repaired(position)) }
            }
            rmdir(path)
        } else {
            unlink(path)
        }
    }
}

/// Answers by the source's name: `bad` fails, everything else is its own text as bytes.
struct ScriptedRenderer: BatchRendering {
    let log = Log()

    final class Log: Sendable {
        struct State {
            var seen: [String] = []
            var running = 0
            var mostRunning = 0
        }
        let state = Mutex(State())
    }

    func render(source: BatchSource, recipe: String) async -> BatchOutcome {
        log.state.withLock { state in
            state.seen.append(source.source + "|" + recipe)
            state.running += 1
            state.mostRunning = max(state.mostRunning, state.running)
        }
        // Lets others start and finish in another order.
        for _ in 0..<(source.source.utf8.count % 7) { await Task.yield() }
        log.state.withLock { $0.running -= 1 }
        if source.source.contains("bad") {
            return .failure(BatchFailure(code: .notFound, message: "<404> for \(source.source)"))
        }
        let bytes = Array((source.source + "|" + recipe).utf8)
        let item = ItemJSON(
            source: source.source, recipe: recipe, key: sha256Hex(recipe),
            outcome: source.source.contains("cached") ? .disk : .rendered, originalOutcome: .network, collapsed: false,
            bytes: bytes.count, width: 30, height: 20, format: "png", digest: sha256Hex(source.source),
            milliseconds: Timings())
        return .variant(BatchVariant(bytes: bytes, fileExtension: "png", mediaType: "image/png", item: item))
    }
}
