import Glibc
import Pipeline
import PipelineSupport
import Synchronization

/// Prevents a batch from overwriting its own sources.
///
/// To save time, a file is looked up only if it is about to be replaced with different bytes. The first lookup reads
/// the complete input and stores a hash of each local source's device and inode, 8 bytes each. If the output is a
/// bucket, it also stores hashes of object names. Standard input cannot be read ahead. If standard input has named a
/// file in the output folder or its subfolders, no file there is replaced.
final class SourceGuard: Sendable {
    private struct State {
        /// Hashes of the sources' identities, or nil before the first lookup.
        var identities: Set<Int>?
        var mixesWithOutput = false
    }

    private let input: BatchInput
    private let outputFolder: String
    private let bucket: BucketOutput?
    private let state = Mutex(State())

    init(_ input: BatchInput, outputFolder: String, _ bucket: BucketOutput? = nil) {
        self.input = input
        self.outputFolder = outputFolder
        self.bucket = bucket
    }

    /// Records whether a source from standard input is in the output folder or its subfolders.
    func note(_ source: BatchSource) {
        guard input.arguments.contains("-") else { return }
        if let bucket {
            guard let url = try? SourceURL(named: source.source), bucket.contains(url) else { return }
            return state.withLock { $0.mixesWithOutput = true }
        }
        guard source.source.firstRange(of: "://") == nil else { return }
        let folder = source.source.splitAtLastSlash?.folder ?? "."
        guard BatchInput.contains(outputFolder, folder.isEmpty ? "/" : folder) else { return }
        state.withLock { $0.mixesWithOutput = true }
    }

    /// Returns the reason why the existing file or object at `path` must not be replaced, or nil if it may be.
    func refusal(replacing path: String) -> String? {
        guard let identity = Self.identity(path) else { return nil }
        return state.withLock { state in
            let known = state.identities ?? sources()
            state.identities = known
            if known.contains(identity) {
                return "it is one of the sources; write to a different folder, or choose different names with --name"
            }
            guard state.mixesWithOutput else { return nil }
            return
                "standard input may still list it as a source, because it has listed other files in the output folder; "
                + "write to a different folder"
        }
    }

    private func sources() -> Set<Int> {
        var found: Set<Int> = []
        var known = input
        known.arguments.removeAll { $0 == "-" }
        // Protects manifests and other file arguments in addition to the sources that they name. If the output is a
        // folder, no bucket needs to be listed.
        if bucket == nil { known.buckets = nil }
        // Names that the batch skips must not be replaced either.
        known.rule = nil
        for path in known.arguments where !input.isOwnOutput(BatchSource(source: path)) {
            if let identity = Self.identity(path) { found.insert(identity) }
        }
        for case .source(let source) in known {
            if let identity = Self.identity(source.source) { found.insert(identity) }
        }
        return found
    }

    /// Returns a hash that identifies a file or an object, regardless of how its name is written. Returns nil if the
    /// source is neither.
    private static func identity(_ source: String) -> Int? {
        guard source.firstRange(of: "://") != nil else { return FileIdentity(path: source)?.hashValue }
        // A name that does not parse does not identify an object.
        guard let object = try? SourceURL(stored: source) else { return nil }
        return ByteString(object.normalized).hashValue
    }
}
