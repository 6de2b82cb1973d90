import ImageServer
import NIOCore
import PipelineSupport
import Synchronization

/// The open connections of a server. If all places are taken, an idle one gives way. The requests in progress of one
/// address have a limit of their own, as with nginx's `limit_conn`.
final class Connections: Sendable {
    private struct Address {
        var open = 0
        let account: AnswerBudget.Account
    }

    private struct State {
        var open: [ObjectIdentifier: ConnectionPlace] = [:]
        /// Connections that have a place.
        var admitted = 0
        /// Connections beyond the limit, which get a 503.
        var refused = 0
        var addresses: [String: Address] = [:]
        var isDraining = false
        var waiting: [CheckedContinuation<Void, Never>] = []

        mutating func count(_ place: ConnectionPlace, _ change: Int) {
            if place.refusal == nil { admitted += change } else { refused += change }
            guard let name = place.address else { return }
            var address = addresses[name] ?? Address(account: place.account)
            address.open += change
            addresses[name] = address.open > 0 ? address : nil
        }
    }

    private let state = Mutex(State())
    private let limit: Int
    private let perAddress: Int
    /// Bytes that the answers on all connections hold.
    let budget: AnswerBudget
    /// The most connections beyond the limit that get a 503.
    private let mostRefused: Int
    /// Open sockets, including connections that are closing.
    private let sockets = Atomic(0)
    /// The most open sockets: connections that were admitted, and a few that are about to be admitted or closed.
    private let socketLimit: Int

    init(_ configuration: ListenerConfiguration) {
        limit = configuration.connections
        perAddress = configuration.addressLimit
        mostRefused = min(256, max(8, configuration.connections / 4))
        socketLimit = configuration.connections + mostRefused + 16
        budget = AnswerBudget(limit: configuration.answerBytes)
    }

    /// Counts an accepted socket until it is closed; returns whether another one may be accepted now.
    func countSocket(_ channel: any Channel) -> Bool {
        channel.closeFuture.whenComplete { _ in self.sockets.subtract(1, ordering: .relaxed) }
        return sockets.add(1, ordering: .relaxed).newValue < socketLimit
    }

    var hasSocketsLeft: Bool { sockets.load(ordering: .relaxed) < socketLimit }

    /// Enters a connection until it closes; nil if the caller must close it at once. If all places are taken, the longest
    /// idle connection of the same address is closed for it, or else the longest idle one of any address.
    ///
    /// - Parameter address: the client's; nil if it is not known, or is a proxy's that is asked by many clients.
    func admit(_ channel: any Channel, from address: String?) -> ConnectionPlace? {
        let id = ObjectIdentifier(channel)
        let (place, leaving) = state.withLock { state -> (ConnectionPlace?, ConnectionPlace?) in
            guard !state.isDraining else { return (nil, nil) }
            var refusal: Problem?
            var leaving: ConnectionPlace?
            if state.admitted >= limit {
                leaving = Self.longestIdle(state, from: address, hasPlace: true)
                if leaving == nil {
                    refusal = Problem(.overloaded, "as many clients as this server takes are connected")
                }
            }
            if refusal != nil, state.refused >= mostRefused {
                // Those that have said nothing for longer are no probes.
                leaving = Self.longestIdle(state, from: address, hasPlace: false)
                guard leaving != nil else { return (nil, nil) }
            }
            if let leaving { state.count(leaving, -1) }
            let account = address.flatMap { state.addresses[$0]?.account } ?? AnswerBudget.Account(budget)
            let place = ConnectionPlace(
                channel, address: address, account: account, requestLimit: perAddress, refusal: refusal)
            state.open[id] = place
            state.count(place, 1)
            return (place, leaving)
        }
        leaving?.channel.close(promise: nil)
        if place != nil { channel.closeFuture.whenComplete { _ in self.remove(id) } }
        return place
    }

    /// The connection that gives way from now on, of this address if it has an idle one; nil if all are busy.
    ///
    /// - Parameter hasPlace: false to search the connections that get a 503.
    private static func longestIdle(_ state: State, from address: String?, hasPlace: Bool) -> ConnectionPlace? {
        while true {
            var oldest: (place: ConnectionPlace, isOther: Bool, since: UInt64)?
            for place in state.open.values where (place.refusal == nil) == hasPlace {
                guard let since = place.idleTime else { continue }
                let isOther = address == nil || place.address != address
                if let oldest, (oldest.isOther ? 1 : 0, oldest.since) <= (isOther ? 1 : 0, since) { continue }
                oldest = (place, isOther, since)
            }
            guard let oldest else { return nil }
            // Otherwise it has begun to work meanwhile.
            if oldest.place.leaves(idleSince: oldest.since) { return oldest.place }
        }
    }

    private func remove(_ id: ObjectIdentifier) {
        let waiting = state.withLock { state in
            if let place = state.open.removeValue(forKey: id) {
                place.endRequest()
                if !place.isLeaving { state.count(place, -1) }
            }
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
        for place in open { place.channel.pipeline.fireUserInboundEventTriggered(ServerEvent.drain) }
    }

    /// Ends every connection now.
    func closeAll() {
        for place in state.withLock({ Array($0.open.values) }) { place.channel.close(promise: nil) }
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

/// A connection among the others: whether it has a place, whether it may give it to another one, and what its answers hold.
final class ConnectionPlace: Sendable {
    let channel: any Channel
    /// The client's, if the connections of one address are limited for it.
    let address: String?
    /// Why the client gets no answer but this, and those about health; nil if it has a place.
    let refusal: Problem?
    let share: AnswerBudget.Share
    fileprivate let account: AnswerBudget.Account
    /// Requests that one address may have in progress.
    private let requestLimit: Int
    /// Whether the connection counts in `Account.requests`.
    private let isCounted = Atomic(false)
    /// Nanoseconds of a monotonic clock; 0 while it works, `leaving` once it has given its place away.
    private let idleSince: Atomic<UInt64>

    private static let leaving = UInt64.max

    fileprivate init(
        _ channel: any Channel, address: String?, account: AnswerBudget.Account, requestLimit: Int, refusal: Problem?
    ) {
        self.channel = channel
        self.address = address
        self.account = account
        self.requestLimit = requestLimit
        self.refusal = refusal
        share = AnswerBudget.Share(account)
        idleSince = Atomic(Self.now)
    }

    /// How long the client may take to ask, given what is usual: without a place it asks for health at once or not at all.
    func patience(_ usual: TimeAmount) -> TimeAmount { refusal == nil ? usual : min(usual, .seconds(2)) }

    /// A clock of milliseconds would not tell apart who asked in the same one.
    private static var now: UInt64 { max(1, UInt64(SystemClock.monotonic.seconds * 1e9)) }

    /// Since when it has had nothing to do; nil if it works, or leaves.
    fileprivate var idleTime: UInt64? {
        let time = idleSince.load(ordering: .relaxed)
        return time == 0 || time == Self.leaving ? nil : time
    }

    fileprivate var isLeaving: Bool { idleSince.load(ordering: .relaxed) == Self.leaving }

    fileprivate func leaves(idleSince time: UInt64) -> Bool {
        idleSince.compareExchange(expected: time, desired: Self.leaving, ordering: .relaxed).exchanged
    }

    /// A request has come; false if the place was given away before it.
    func begins() -> Bool {
        let time = idleSince.load(ordering: .relaxed)
        guard time != Self.leaving else { return false }
        return idleSince.compareExchange(expected: time, desired: 0, ordering: .relaxed).exchanged
    }

    /// Counts the request that has begun, until every request is answered. Probes do not count and are always admitted,
    /// so that no orchestrator restarts a busy server.
    ///
    /// - Parameter target: below the mount point.
    /// - Throws: `Problem`: 503 if the connection has no place, or its address has as many requests in progress as it may.
    func admits(_ target: String) throws(Problem) {
        guard !Site.isProbe(target) else { return }
        if let refusal { throw refusal }
        guard !isCounted.exchange(true, ordering: .relaxed) else { return }
        guard account.requests.add(1, ordering: .relaxed).newValue > requestLimit else { return }
        endRequest()
        throw Problem(
            .overloaded,
            "one address may have \(requestLimit) requests in progress (`server.connectionsPerAddress`)")
    }

    fileprivate func endRequest() {
        if isCounted.exchange(false, ordering: .relaxed) { account.requests.subtract(1, ordering: .relaxed) }
    }

    /// Every request is answered.
    func rests() {
        endRequest()
        // While it works no other connection takes its place.
        if !isLeaving { idleSince.store(Self.now, ordering: .relaxed) }
    }
}

/// What the server tells its connections.
enum ServerEvent: Sendable {
    /// End after the answer that is being given.
    case drain
}
