import PipelineCaching
import Synchronization

/// Repeats purges that tiers behind the folder have not confirmed, including after a restart.
final class UnconfirmedPurges: Sendable {
    private let waiting: WaitingPurges
    private let repeating = Mutex<Task<Void, Never>?>(nil)
    private static let pauseSeconds = 1.0

    init(_ tiers: Tiers) {
        let waiting = WaitingPurges("tiers.waiting.", warn: tiers.warn)
        waiting.folder.withLock { $0 = tiers.folder }
        self.waiting = waiting
        guard tiers.hasFartherTiers else { return }
        repeating.withLock { task in
            task = Task {
                waiting.load((try? await tiers.folder?.texts().byName) ?? [:])
                repeat {
                    await waiting.send { await tiers.purgeFarther($0.selection) }
                } while (try? await Task.sleep(for: .seconds(Self.pauseSeconds))) != nil
            }
        }
    }

    deinit { repeating.withLock { $0?.cancel() } }

    func add(_ selections: [EntrySelection]) async {
        for selection in selections { await waiting.add(Purge(selection))() }
    }

    func close() async {
        let task = repeating.withLock { $0 }
        task?.cancel()
        await task?.value
    }
}

extension Purge {
    fileprivate init(_ selection: EntrySelection) {
        sources = selection.sources.union(selection.digests.map { "bytes:" + $0 })
        (prefixes, mode) = (Set(selection.matching?.prefixes ?? []), selection.mode)
    }

    /// The sources and prefixes of the purge. An unknown purge covers everything, since every name begins with a
    /// scheme.
    var selection: EntrySelection {
        let all = isUnknown ? Set("abcdefghijklmnopqrstuvwxyz".map { String($0) }) : prefixes
        // Bytes supplied by a caller have no record, but their source name contains their digest.
        let digests = sources.filter { $0.hasPrefix("bytes:") }.map { String($0.dropFirst(6)) }
        return EntrySelection(
            sources: sources, matching: all.isEmpty ? nil : SourceSelection(prefixes: all.sorted()),
            digests: Set(digests), mode: mode)
    }
}
