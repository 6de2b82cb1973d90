import Glibc
import Pipeline
import PipelineSupport
import Synchronization

/// Keeps a batch from overwriting its own sources.
///
/// Only a file about to be replaced by different bytes is looked up, so a batch into a separate folder pays nothing.
/// The first look-up walks the input once and remembers a hash of each local source's device and inode, 8 bytes each; if
/// the output is a bucket, also of the names of the objects.
/// Standard input cannot be read ahead: once it has named a file in or below the output folder, no file there is
/// replaced at all.
final class SourceGuard: Sendable {
    private struct State {
        /// Hashes of the sources' identities; nil before the first look-up.
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

    /// Records whether a source that standard input may have named lies in or below the output folder.
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

    /// Why the existing file or object at `path` must not be replaced; nil if it may be.
    func refusal(replacing path: String) -> String? {
        guard let identity = Self.identity(path) else { return nil }
        return state.withLock { state in
            let known = state.identities ?? sources()
            state.identities = known
            if known.contains(identity) {
                return "it is one of the sources; write to another folder, or choose other names with --name"
            }
            guard state.mixesWithOutput else { return nil }
            return "standard input may still name it as a source, since it has named others in the output folder; "
                + "write to another folder"
        }
    }

    private func sources() -> Set<Int> {
        var found: Set<Int> = []
        var known = input
        known.arguments.removeAll { $0 == "-" }
        // Protect manifests and other file arguments too, not only the sources they name.
        // If files are written, no bucket needs to be listed.
        if bucket == nil { known.buckets = nil }
        // Names that the batch leaves out are not replaced either.
        known.rule = nil
        for path in known.arguments where !input.isOwnOutput(BatchSource(source: path)) {
            if let identity = Self.identity(path) { found.insert(identity) }
        }
        for case .source(let source) in known {
            if let identity = Self.identity(source.source) { found.insert(identity) }
        }
        return found
    }

    /// A hash of what a file or an object is, whatever its name is written like; nil for other sources.
    private static func identity(_ source: String) -> Int? {
        guard source.firstRange(of: "://") != nil else { return FileIdentity(path: source)?.hashValue }
        // What cannot be parsed is no object.
        guard let object = try? SourceURL(s3: source) else { return nil }
        return ByteString(object.normalised).hashValue
    }
}
