import Glibc
import Pipeline
import PipelineSupport
import Synchronization

/// Tells what a batch has written, in this run or an earlier one, from its sources.
///
/// An output is a file in or below the output folder whose bytes are those of a variant that one of the batch's recipes
/// made, as far as the cache still has it. Only files as long as such a variant are read, and the cache is asked when the
/// first file of the output folder turns up, so that a batch into a separate folder pays nothing. Digests are remembered
/// as 8-byte hashes. The same holds for the objects of a bucket.
final class OwnOutputs: Sendable {
    /// The length and SHA-256 of a variant.
    typealias Made = (length: Int, digest: String)

    private struct State {
        /// Whether the cache was asked.
        var isLoaded = false
        /// Hashes of digests.
        var digests: Set<Int> = []
        var lengths: Set<Int> = []
        /// The folder looked at last, and whether it is the output folder or below it.
        var folder: (path: ByteString, isInside: Bool)?

        mutating func add(_ made: Made) {
            lengths.insert(made.length)
            digests.insert(made.digest.hashValue)
        }
    }

    private let outputFolder: String
    private let bucket: BucketOutput?
    private let stored: @Sendable () -> [Made]
    private let state = Mutex(State())

    /// - Parameter stored: reads the variants of the batch's recipes from the cache.
    init(in outputFolder: String, _ bucket: BucketOutput? = nil, stored: @escaping @Sendable () -> [Made]) {
        self.outputFolder = outputFolder
        self.bucket = bucket
        self.stored = stored
    }

    /// Adds a variant that is about to be written.
    func add(_ made: Made) { state.withLock { $0.add(made) } }

    /// Whether a source is such an output. Blocks on the disk, or on the store.
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
        // A file that cannot be read fails as the source that it then is.
        guard isLikely, let bytes = try? LocalFile.open(path, byteLimit: length).bytes() else { return false }
        return isMade(bytes)
    }

    private func contains(object: String, _ length: Int) -> Bool {
        guard let bucket, object.utf8.starts(with: bucket.folder.normalised.utf8), length > 0,
            state.withLock({ hasLength(length, &$0) }), let url = try? SourceURL(named: object)
        else { return false }
        // As above.
        let request = FetchRequest(url: url, byteLimit: length)
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
        for made in stored() { state.add(made) }
    }
}
