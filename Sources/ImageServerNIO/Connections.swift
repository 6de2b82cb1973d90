import NIOCore
import Synchronization

/// The open connections of a server: how many may be, and how all of them end.
final class Connections: Sendable {
    /// What becomes of a connection that was just accepted.
    enum Admission: Sendable { case welcome, turnedAway, dropped }

    private struct State {
        var open: [ObjectIdentifier: any Channel] = [:]
        var isDraining = false
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())
    private let limit: Int
    /// Connections beyond the limit that are told so; further ones are closed without a word.
    private static let told = 256

    init(limit: Int) { self.limit = limit }

    /// Enters a connection until it closes.
    func admit(_ channel: any Channel) -> Admission {
        let id = ObjectIdentifier(channel)
        let admission: Admission = state.withLock { state in
            guard !state.isDraining, state.open.count < limit + Self.told else { return .dropped }
            state.open[id] = channel
            return state.open.count <= limit ? .welcome : .turnedAway
        }
        if admission != .dropped { channel.closeFuture.whenComplete { _ in self.remove(id) } }
        return admission
    }

    private func remove(_ id: ObjectIdentifier) {
        let waiting = state.withLock { state in
            state.open[id] = nil
            guard state.open.isEmpty else { return [CheckedContinuation<Void, Never>]() }
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    /// Asks every connection to end after the answer it is giving; lets no further one in.
    func drain() {
        let open = state.withLock { state in
            state.isDraining = true
            return Array(state.open.values)
        }
        for channel in open { channel.pipeline.fireUserInboundEventTriggered(ServerEvent.drain) }
    }

    /// Ends every connection now.
    func closeAll() {
        for channel in state.withLock({ Array($0.open.values) }) { channel.close(promise: nil) }
    }

    /// Returns when none is open.
    func allClosed() async {
        await withCheckedContinuation { continuation in
            let isEmpty = state.withLock { state in
                if !state.open.isEmpty { state.waiting.append(continuation) }
                return state.open.isEmpty
            }
            if isEmpty { continuation.resume() }
        }
    }
}

/// What the server tells its connections.
enum ServerEvent: Sendable {
    /// End after the answer that is being given.
    case drain
}
