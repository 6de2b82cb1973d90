import PipelineCaching
import PipelineFleet
import Synchronization

/// Purges that are waiting to be sent to a server. The index of the cache folder keeps them, so that they survive a
/// restart of the process.
final class WaitingPurges: Sendable {
    private struct State {
        var purges: [(name: String, purge: Purge)] = []
        var isSending = false
    }

    private let state = Mutex(State())
    private let prefix: String
    /// The folder that keeps the purges. If nil, the default, they are lost when the process exits.
    let folder = Mutex<DiskTier?>(nil)
    private let warn: @Sendable (String) -> Void
    /// The maximum number of purges. If there are more, a single unknown purge replaces them all and covers everything.
    private static let most = 10_000

    /// - Parameter prefix: the prefix of the names in the folder.
    init(_ prefix: String, warn: @escaping @Sendable (String) -> Void) { (self.prefix, self.warn) = (prefix, warn) }

    var isSending: Bool { state.withLock(\.isSending) }
    var count: Int { state.withLock(\.purges.count) }

    /// Loads the purges that an earlier process has kept.
    func load(_ texts: [String: String]) {
        let kept = texts.filter { $0.key.hasPrefix(prefix) }.map { ($0.key, Purge(Array($0.value.utf8)) ?? .unknown) }
        state.withLock { $0.purges = kept + $0.purges }
    }

    /// Adds a purge. The caller must run the returned closure to keep the purge in the folder.
    func add(_ purge: Purge) -> @Sendable () async -> Void {
        let name = prefix + String(UInt64.random(in: .min ... .max), radix: 16)
        let changes = state.withLock { state in
            var changes: [String: String?] = [:]
            state.purges.append((name, purge))
            if state.purges.count > Self.most {
                for (name, _) in state.purges { changes.updateValue(nil, forKey: name) }
                state.purges = [(name, .unknown)]
            }
            changes[name] = state.purges.last?.purge.text
            return changes
        }
        return { await self.store(changes) }
    }

    /// Sends the purges in order until one fails. Returns at once if another task is sending.
    func send(_ send: (Purge) async -> Bool) async {
        let begins = state.withLock { state in
            if state.isSending || state.purges.isEmpty { return false }
            state.isSending = true
            return true
        }
        guard begins else { return }
        while let next = state.withLock(\.purges.first) {
            guard await send(next.purge) else { break }
            state.withLock { if $0.purges.first?.name == next.name { $0.purges.removeFirst() } }
            await store([next.name: nil])
        }
        state.withLock { $0.isSending = false }
    }

    private func store(_ changes: [String: String?]) async {
        do throws(StoreError) { try await folder.withLock(\.self)?.store(texts: changes) } catch {
            warn(
                "purges that wait for the Redis server cannot be stored, and are lost if this process exits: \(error.description)"
            )
        }
    }
}
