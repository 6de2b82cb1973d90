import Glibc
import Pipeline
import PipelineSupport
import Synchronization

/// Distinguishes the files that a batch has written, in this run or an earlier run, from its sources.
///
/// A file in the output folder or its subfolders is an output if it has the bytes of a variant of one of the batch's
/// recipes and the cache still contains the variant. To save time, only files with the length of such a variant are
/// read, and the cache is queried only when a file in the output folder is found. Digests are kept as 8-byte hashes.
/// Objects in a bucket are treated in the same way.
final class OwnOutputs: Sendable {
    /// The length and SHA-256 of a variant.
    typealias Fingerprint = (length: Int, digest: String)

    private struct State {
        /// Whether the cache has been queried.
        var isLoaded = false
        /// Hashes of digests.
        var digests: Set<Int> = []
        var lengths: Set<Int> = []
        /// The folder of the last source, and whether it is the output folder or within it.
        var folder: (path: ByteString, isInside: Bool)?

        mutating func add(_ fingerprint: Fingerprint) {
            lengths.insert(fingerprint.length)
            digests.insert(fingerprint.digest.hashValue)
        }
    }

    private let outputFolder: String
    private let bucket: BucketOutput?
    private let stored: @Sendable () -> [Fingerprint]
    private let state = Mutex(State())

    /// - Parameter stored: A closure that returns the variants of the batch's recipes in the cache.
    init(in outputFolder: String, _ bucket: BucketOutput? = nil, stored: @escaping @Sendable () -> [Fingerprint]) {
        self.outputFolder = outputFolder
        self.bucket = bucket
        self.stored = stored
    }

    /// Adds a variant that is about to be written.
    func add(_ fingerprint: Fingerprint) { state.withLock { $0.add(fingerprint) } }

    /// Whether a source is an output of the batch. Blocks on disk or network I/O.
    func contains(_ source: BatchSource) -> Bool {
        if let length = source.length { return contains(object: source.source, length) }
        guard case .file(let path) = ImageSource(source.source) else { return false }
        var status = stat()
        guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_size > 0 else { return false }
        let folder = path.splitAtLastSlash.map { $0.folder.isEmpty ? "/" : $0.folder } ?? "."
        let length = Int(status.st_size)
        let isLikely = state.withLock { state in
            if state.folder?.path != ByteString(folder) {
                state.folder = (ByteString(folder), BatchInput.contains(outputFolder, folder))
            }
            return state.folder?.isInside == true && hasLength(length, &state)
        }
        // A file that cannot be read is treated as a source, and fails later.
        guard isLikely, let bytes = try? LocalFile.open(path, byteLimit: length).bytes() else { return false }
        return isMade(bytes)
    }

    private func contains(object: String, _ length: Int) -> Bool {
        guard let bucket, object.utf8.starts(with: bucket.folder.normalized.utf8), length > 0,
            state.withLock({ hasLength(length, &$0) }), let url = try? SourceURL(named: object)
        else { return false }
        // An object that cannot be read is not an output.
        let request = FetchRequest(url: url, maxBytes: length)
        return waitOutside { try? await bucket.store.fetch(request, onProgress: nil) }.map { isMade($0.body) } ?? false
    }

    private func isMade(_ bytes: [UInt8]) -> Bool {
        let digest = sha256Hex(bytes).hashValue
        return state.withLock { $0.digests.contains(digest) }
    }

    private func hasLength(_ length: Int, _ state: inout State) -> Bool {
        load(&state)
        return state.lengths.contains(length)
    }

    private func load(_ state: inout State) {
        if state.isLoaded { return }
        state.isLoaded = true
        for fingerprint in stored() { state.add(fingerprint) }
    }
}
