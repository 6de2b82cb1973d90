import ImageServer
import NIOCore
import PipelineSupport
import Synchronization

/// The open connections of a server. If all connection slots are in use, an idle connection is closed. The number of
/// requests in progress per address is limited separately, as with nginx's `limit_conn`.
final class Connections: Sendable {
    private struct Address {
        var open = 0
        let account: AnswerBudget.Account
    }

    private struct State {
        var open: [ObjectIdentifier: OpenConnection] = [:]
        /// The number of connections with a slot.
        var admitted = 0
        /// The number of connections beyond the limit, which receive a 503.
        var refused = 0
        var addresses: [String: Address] = [:]
        var isDraining = false
        var waiting: [CheckedContinuation<Void, Never>] = []

        mutating func count(_ connection: OpenConnection, _ change: Int) {
            if connection.refusal == nil { admitted += change } else { refused += change }
            guard let name = connection.address else { return }
            var address = addresses[name] ?? Address(account: connection.account)
            address.open += change
            addresses[name] = address.open > 0 ? address : nil
        }
    }

    private let state = Mutex(State())
    private let limit: Int
    private let perAddress: Int
    /// The budget for the bodies that responses hold, over all connections.
    let budget: AnswerBudget
    /// The maximum number of connections beyond the limit that receive a 503.
    private let maxRefused: Int
    /// The number of open sockets, including connections that are closing.
    private let sockets = Atomic(0)
    /// The maximum number of open sockets. It includes connections with and without a slot, and a reserve for
    /// connections that are being opened or closed.
    private let socketLimit: Int

    init(_ configuration: ListenerConfiguration) {
        limit = configuration.connections
        perAddress = configuration.addressLimit
        maxRefused = min(256, max(8, configuration.connections / 4))
        socketLimit = configuration.connections + maxRefused + 16
        budget = AnswerBudget(limit: configuration.answerBytes)
    }

    /// Counts an accepted socket until it is closed. Returns whether another socket may be accepted now.
    func countSocket(_ channel: any Channel) -> Bool {
        channel.closeFuture.whenComplete { _ in self.sockets.subtract(1, ordering: .relaxed) }
        return sockets.add(1, ordering: .relaxed).newValue < socketLimit
    }

    var hasSocketsLeft: Bool { sockets.load(ordering: .relaxed) < socketLimit }

    /// Registers a connection until it closes. Returns nil if the caller must close it immediately. If all slots are in
    /// use, the connection of the same address that has been idle longest is closed. If that address has no idle
    /// connection, the longest idle connection of any address is closed.
    ///
    /// - Parameter address: The client's address, or nil if it is unknown or belongs to a proxy that serves many
    ///   clients.
    func admit(_ channel: any Channel, from address: String?) -> OpenConnection? {
        let id = ObjectIdentifier(channel)
        let (connection, leaving) = state.withLock { state -> (OpenConnection?, OpenConnection?) in
            guard !state.isDraining else { return (nil, nil) }
            var refusal: Problem?
            var leaving: OpenConnection?
            if state.admitted >= limit {
                leaving = Self.longestIdle(state, from: address)
                if leaving == nil {
                    refusal = Problem(
                        .overloaded,
                        "the maximum number of clients is connected (`server.connections`); try again later")
                }
            }
            if refusal != nil, state.refused >= maxRefused {
                leaving = Self.oneOfMost(state, from: address)
                guard leaving != nil else { return (nil, nil) }
            }
            if let leaving { state.count(leaving, -1) }
            let account = address.flatMap { state.addresses[$0]?.account } ?? AnswerBudget.Account(budget)
            let connection = OpenConnection(
                channel, address: address, account: account, requestLimit: perAddress, refusal: refusal)
            state.open[id] = connection
            state.count(connection, 1)
            return (connection, leaving)
        }
        leaving?.channel.close(promise: nil)
        if connection != nil { channel.closeFuture.whenComplete { _ in self.remove(id) } }
        return connection
    }

    /// Selects the connection that loses its slot, preferably an idle connection of this address. Returns nil if all
    /// connections are busy.
    private static func longestIdle(_ state: State, from address: String?) -> OpenConnection? {
        while true {
            var oldest: (connection: OpenConnection, isOther: Bool, since: UInt64)?
            for connection in state.open.values where connection.refusal == nil {
                guard let since = connection.idleTime else { continue }
                let isOther = address == nil || connection.address != address
                if let oldest, (oldest.isOther ? 1 : 0, oldest.since) <= (isOther ? 1 : 0, since) { continue }
                oldest = (connection, isOther, since)
            }
            guard let oldest else { return nil }
            // Otherwise, the connection has become busy in the meantime.
            if oldest.connection.giveUpSlot(idleSince: oldest.since) { return oldest.connection }
        }
    }

    /// Selects a connection without a slot, which is then closed. The connection belongs to the address with the most
    /// connections. Idle connections are preferred, longest idle first. Returns nil if all candidates belong to
    /// addresses with fewer connections than `address`. A client that opens many connections therefore does not affect
    /// the probes of other clients.
    private static func oneOfMost(_ state: State, from address: String?) -> OpenConnection? {
        func open(_ address: String?) -> Int { address.flatMap { state.addresses[$0]?.open } ?? 0 }
        let own = open(address)
        while true {
            var first: (connection: OpenConnection, key: (Int, Int, UInt64))?
            for connection in state.open.values where connection.refusal != nil && !connection.isLeaving {
                let (count, since) = (open(connection.address), connection.idleTime)
                guard count >= own, since != nil || count > own + 1 else { continue }
                let key = (-count, since == nil ? 1 : 0, since ?? 0)
                if first.map({ key < $0.key }) ?? true { first = (connection, key) }
            }
            guard let first else { return nil }
            // Otherwise, the connection has become busy or idle in the meantime.
            if first.connection.giveUpSlot(idleSince: first.key.2) { return first.connection }
        }
    }

    private func remove(_ id: ObjectIdentifier) {
        let waiting = state.withLock { state in
            if let connection = state.open.removeValue(forKey: id) {
                connection.endRequest()
                if !connection.isLeaving { state.count(connection, -1) }
            }
            guard state.open.isEmpty else { return [CheckedContinuation<Void, Never>]() }
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    /// Closes every connection after its current response, and admits no further connections.
    func drain() {
        let open = state.withLock { state in
            state.isDraining = true
            return Array(state.open.values)
        }
        for connection in open { connection.channel.pipeline.fireUserInboundEventTriggered(ServerEvent.drain) }
    }

    /// Closes every connection immediately.
    func closeAll() {
        for connection in state.withLock({ Array($0.open.values) }) { connection.channel.close(promise: nil) }
    }

    /// Waits until all connections are closed.
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

/// An open connection: whether it has a slot, whether it may give the slot to another connection, and how much its
/// responses hold.
final class OpenConnection: Sendable {
    let channel: any Channel
    /// The client's address, or nil if its connections are not limited.
    let address: String?
    /// The problem that is sent to all requests except probes, or nil if the connection has a slot.
    let refusal: Problem?
    let account: AnswerBudget.Account
    /// The maximum number of requests in progress per address.
    private let requestLimit: Int
    /// Whether the connection is included in `Account.requests`.
    private let isCounted = Atomic(false)
    /// When the connection became idle, in nanoseconds of a monotonic clock. The value is 0 while the connection is
    /// busy, and `leaving` after it has given its slot away.
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
        idleSince = Atomic(Self.now)
    }

    /// Returns how long the client may take to send a request, given the usual time. Clients without a slot get at most
    /// two seconds, which is enough for a probe.
    func requestTimeout(_ usual: TimeAmount) -> TimeAmount { refusal == nil ? usual : min(usual, .seconds(2)) }

    /// The current time in nanoseconds. With milliseconds, several connections could become idle at the same time.
    private static var now: UInt64 { max(1, UInt64(SystemClock.monotonic.seconds * 1e9)) }

    /// When the connection became idle, or nil if it is busy or has given its slot away.
    fileprivate var idleTime: UInt64? {
        let time = idleSince.load(ordering: .relaxed)
        return time == 0 || time == Self.leaving ? nil : time
    }

    fileprivate var isLeaving: Bool { idleSince.load(ordering: .relaxed) == Self.leaving }

    fileprivate func giveUpSlot(idleSince time: UInt64) -> Bool {
        idleSince.compareExchange(expected: time, desired: Self.leaving, ordering: .relaxed).exchanged
    }

    /// Marks the connection as busy. Returns false if its slot has already been given away.
    func markBusy() -> Bool {
        let time = idleSince.load(ordering: .relaxed)
        guard time != Self.leaving else { return false }
        return idleSince.compareExchange(expected: time, desired: 0, ordering: .relaxed).exchanged
    }

    /// Counts the request that has begun, until `markIdle` is called. Probes are not counted and are always allowed, so
    /// that no orchestrator restarts a busy server.
    ///
    /// - Parameter target: The request target, relative to the mount point.
    /// - Throws: a `Problem` with status 503 if the connection has no slot, or if its address has the maximum number of
    ///   requests in progress.
    func countRequest(_ target: String) throws(Problem) {
        guard !Site.isProbe(target) else { return }
        if let refusal { throw refusal }
        guard !isCounted.exchange(true, ordering: .relaxed) else { return }
        guard account.requests.add(1, ordering: .relaxed).newValue > requestLimit else { return }
        endRequest()
        throw Problem(
            .overloaded,
            "this client's address already has \(requestLimit) requests in progress, which is the maximum (`server.connectionsPerAddress`)"
        )
    }

    fileprivate func endRequest() {
        if isCounted.exchange(false, ordering: .relaxed) { account.requests.subtract(1, ordering: .relaxed) }
    }

    /// Marks the connection as idle after all of its requests have been answered.
    func markIdle() {
        endRequest()
        // A busy connection cannot lose its slot.
        if !isLeaving { idleSince.store(Self.now, ordering: .relaxed) }
    }
}

/// An event that the server sends to its connections.
enum ServerEvent: Sendable {
    /// Close after the current response.
    case drain
}
