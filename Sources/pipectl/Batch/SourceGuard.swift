import Glibc
import PipelineSupport
import Synchronization

/// Keeps a batch from overwriting its own sources.
///
/// Only a file about to be replaced by different bytes is looked up, so a batch into a separate folder pays nothing.
/// The first look-up walks the input once and remembers a hash of each local source's device and inode, 8 bytes each.
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
    private let state = Mutex(State())

    init(_ input: BatchInput, outputFolder: String) {
        self.input = input
        self.outputFolder = outputFolder
    }

    /// Records whether a source that standard input may have named lies in or below the output folder.
    func note(_ source: BatchSource) {
        guard input.arguments.contains("-"), source.source.firstRange(of: "://") == nil else { return }
        let folder = source.source.splitAtLastSlash?.folder ?? "."
        guard BatchInput.contains(outputFolder, folder.isEmpty ? "/" : folder) else { return }
        state.withLock { $0.mixesWithOutput = true }
    }

    /// Why the existing file at `path` must not be replaced; nil if it may be.
    func refusal(replacing path: String) -> String? {
        guard let identity = FileIdentity(path: path) else { return nil }
        return state.withLock { state in
            let known = state.identities ?? sources()
            state.identities = known
            if known.contains(identity.hashValue) {
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
        for path in known.arguments where !input.isOwnOutput(path) {
            if let identity = FileIdentity(path: path) { found.insert(identity.hashValue) }
        }
        for case .source(let source) in known where source.source.firstRange(of: "://") == nil {
            if let identity = FileIdentity(path: source.source) { found.insert(identity.hashValue) }
        }
        return found
    }
}
