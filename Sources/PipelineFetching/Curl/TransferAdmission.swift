import PipelineSupport

/// Decides which transfer begins next, and which transfer must be stopped to make room.
///
/// Invariants, in order of precedence:
///
/// 1. At most `limit` transfers are in progress. At most `perHost` of these belong to one origin, and at most
///    `networkLimit` belong to one network. A network is the /24 or /48 of the connected address. Until an origin has
///    an address, the origin counts as a network.
/// 2. A transfer begins if fewer than `slots` transfers are receiving. Slow transfers do not count. A transfer is slow
///    if it received less than ten times the stall rate in one second, whether it is connecting, waiting for the
///    response header or receiving the body. A slow transfer that speeds up counts again, even if more than `slots`
///    transfers then count, because it cannot be interrupted.
/// 3. The first transfer of an origin without transfers in progress begins after `graceSeconds` even if all slots are
///    taken. Further transfers of a quick origin also begin if fewer than `slots` transfers are younger than one
///    second.
/// 4. The upper half of the range between `slots` and `limit` is reserved for the first transfers of origins.
/// 5. A transfer is stopped only if `limit` transfers are in progress and rule 3 would let the first transfer of an
///    origin begin. The stopped transfer has been slow for at least `maxSlowSeconds` seconds. The search starts with the
///    network and the origin that have the most transfers in progress.
///
/// Silent origins, and origins that send slowly at any rate, therefore delay others by at most `graceSeconds`.
///
/// The type does not use a lock or a clock. Times are parameters, in seconds of any monotonic clock.
struct TransferAdmission<Transfer>: ~Copyable {
    /// The result of a search for the next transfer.
    enum Next {
        case begin(Transfer)
        /// No transfer may begin now. The value is the number of seconds until the rate limit lets a transfer begin, or
        /// nil if no transfer is waiting only for the rate limit.
        case wait(seconds: Double?)
    }

    /// The position of an origin in the queue if fewer than `slots` transfers are receiving. The lowest rank comes
    /// first.
    private struct Rank: Comparable {
        let urgency: UInt8
        let underWay: Int
        let lastTurn: Int
        let oldest: UInt64

        static func < (left: Self, right: Self) -> Bool {
            if left.urgency != right.urgency { return left.urgency > right.urgency }
            return (left.underWay, left.lastTurn, left.oldest) < (right.underWay, right.lastTurn, right.oldest)
        }
    }

    /// An origin with transfers that are waiting or in progress.
    private final class Origin {
        let name: String
        let number: UInt64
        /// The network of the origin's addresses, or nil until it is known.
        var network: IPAddress?
        var waiting = UrgencyQueue<Waiting>(oldestEvery: 1)
        var underWay = 0
        /// The number of transfers in progress that have lasted at least one second.
        var lingering = 0
        /// Whether the last finished transfer took less than one second.
        var isQuick = false
        /// The serial number of the origin's last start, so that origins take turns.
        var lastTurn: Int
        /// Whether the origin is waiting for the rate limit, in `delayed`, or for its network, in `parked`.
        var isSetAside = false

        init(_ name: String, _ number: UInt64, lastTurn: Int) {
            (self.name, self.number, self.lastTurn) = (name, number, lastTurn)
        }
    }

    private struct Network {
        var underWay = 0
        /// Origins that are waiting until the network has room.
        var parked = IndexedHeap<UInt64>()
    }

    private struct Waiting {
        var transfer: Transfer
        var mayGiveWay: Bool
        var since: Double
    }

    private struct UnderWay {
        let origin: Origin
        var network: IPAddress?
        let waited: Waiting
        let began: Double
        var isLingering = false
        /// The time when the current window began, and the bytes received before it.
        var windowStart: Double
        var windowBytes = 0
        var slowSince: Double?
    }

    private let slots: Int
    private let perHost: Int
    private let maxSlowSeconds: Double
    /// The rate in bytes per second below which a transfer is slow.
    private let minRate: Double
    private var limiter: RateLimiter
    private var origins: [String: Origin] = [:]
    private var numbered: [UInt64: Origin] = [:]
    private var lastNumber: UInt64 = 0
    private var networks: [IPAddress: Network] = [:]
    /// The origins of the waiting transfers.
    private var waiting: [UInt64: Origin] = [:]
    /// Origins with a transfer that may begin, in the order of their turns.
    private var byRank = IndexedHeap<Rank>()
    /// The origins in `byRank`, ordered by their oldest waiting transfer: all origins, origins with no transfer in
    /// progress, and quick origins.
    private var (byAge, idle, quick) = (IndexedHeap<UInt64>(), IndexedHeap<UInt64>(), IndexedHeap<UInt64>())
    /// Origins that the rate limit delays, with the end of the delay.
    private var delayed = IndexedHeap<Double>()
    private var underWay: [UInt64: UnderWay] = [:]
    private var (slow, lingering) = (0, 0)
    private var turns = 0

    /// The maximum number of transfers in progress.
    let limit: Int
    /// The maximum number of transfers in progress per network.
    var networkLimit: Int { max(1, limit / 4) }
    /// The number of transfers in progress at which only the first transfer from an origin may still begin, up to
    /// `limit`.
    private var commonLimit: Int { slots + (limit - slots) / 2 }

    /// The length of a window. A window ends early once it has received as many bytes as a quick transfer receives in
    /// that time. A transfer that has lasted longer than a window lingers.
    private static var windowSeconds: Double { 1 }
    /// The number of seconds that a transfer waits for a slot before it begins without a slot.
    static var graceSeconds: Double { 0.5 }
    /// The interval, in turns, at which the oldest transfer goes first.
    private static var oldestEvery: Int { 8 }

    init(_ configuration: FetchConfiguration) {
        slots = max(configuration.maxConcurrentTransfers, 1)
        limit = FetchConfiguration.transferLimit(slots: slots)
        perHost = max(configuration.maxConcurrentTransfersPerHost, 1)
        maxSlowSeconds = configuration.headerSeconds / 4
        minRate = max(1, 10 * Double(configuration.stallRate))
        limiter = RateLimiter(rate: configuration.maxRequestsPerSecond)
    }

    /// The number of waiting transfers.
    var waitingCount: Int { waiting.count }
    var underWayCount: Int { underWay.count }

    // MARK: Waiting

    /// - Parameters:
    ///   - id: the number that identifies the transfer in other calls. IDs ascend, so the transfer with the lower ID
    ///     came first.
    ///   - address: the address in the URL, or nil if the URL names a host.
    ///   - priority: the priority of the transfer. A higher number is more urgent.
    ///   - mayGiveWay: whether the transfer may be stopped for another. False if the request may change state, because
    ///     a client cannot repeat it.
    mutating func add(
        _ transfer: Transfer, id: UInt64, origin name: String, address: IPAddress? = nil, priority: UInt8,
        mayGiveWay: Bool = true, now: Double
    ) {
        let origin = origins[name] ?? newOrigin(name)
        origin.network = origin.network ?? address?.network
        wait(Waiting(transfer: transfer, mayGiveWay: mayGiveWay, since: now), id, origin, priority)
    }

    private mutating func wait(_ next: Waiting, _ id: UInt64, _ origin: Origin, _ priority: UInt8) {
        waiting[id] = origin
        origin.waiting.push(next, id: id, priority: priority)
        update(origin)
    }

    private mutating func newOrigin(_ name: String) -> Origin {
        lastNumber += 1
        // A new origin ranks ahead of origins that hold slots and behind origins that have waited longer.
        let origin = Origin(name, lastNumber, lastTurn: turns - slots)
        (origins[name], numbered[lastNumber]) = (origin, origin)
        return origin
    }

    /// Raises the priority of a waiting transfer to at least `priority`.
    mutating func raise(_ id: UInt64, to priority: UInt8) {
        guard let origin = waiting[id] else { return }
        origin.waiting.raise(id: id, to: priority)
        update(origin)
    }

    /// Removes a waiting transfer. Returns false if the transfer is not waiting.
    mutating func remove(_ id: UInt64) -> Bool {
        guard let origin = waiting.removeValue(forKey: id) else { return false }
        _ = origin.waiting.remove(id: id)
        update(origin)
        return true
    }

    /// Removes and returns all waiting transfers.
    mutating func removeAll() -> [Transfer] {
        waiting.keys.sorted().compactMap { id in
            let transfer = waiting[id]?.waiting[id]?.transfer
            return remove(id) ? transfer : nil
        }
    }

    /// Updates the position of an origin after a change. Removes the origin if it has no transfers.
    private mutating func update(_ origin: Origin) {
        if origin.waiting.isEmpty {
            (origin.isSetAside, delayed[origin.number]) = (false, nil)
            change(origin.network) { $0.parked[origin.number] = nil }
            if origin.underWay == 0 { (origins[origin.name], numbered[origin.number]) = (nil, nil) }
        }
        sort(origin)
        release(origin.network)
    }

    private mutating func sort(_ origin: Origin) {
        let first = origin.isSetAside || origin.underWay >= perHost ? nil : origin.waiting.mostUrgent
        let oldest = first.flatMap { _ in origin.waiting.oldest }
        byRank[origin.number] = first.map {
            Rank(
                urgency: $0.priority, underWay: origin.underWay, lastTurn: origin.lastTurn, oldest: oldest ?? $0.id)
        }
        byAge[origin.number] = oldest
        idle[origin.number] = origin.underWay == 0 ? oldest : nil
        quick[origin.number] = origin.isQuick && origin.lingering == 0 ? oldest : nil
    }

    private func hasRoom(_ network: IPAddress) -> Bool { networks[network]?.underWay ?? 0 < networkLimit }

    /// Lets one parked origin compete again if its network has room. If it does not begin a transfer, its next change
    /// releases the next parked origin.
    private mutating func release(_ network: IPAddress?) {
        guard let network, hasRoom(network) else { return }
        var number: UInt64?
        change(network) { number = $0.parked.popFirst() }
        guard let number, let origin = numbered[number] else { return }
        origin.isSetAside = false
        sort(origin)
    }

    /// Changes the state of a network. Removes the network if it has no transfers.
    private mutating func change(_ network: IPAddress?, _ change: (inout Network) -> Void) {
        guard let network else { return }
        var changed = networks.removeValue(forKey: network) ?? Network()
        change(&changed)
        if changed.underWay > 0 || !changed.parked.isEmpty { networks[network] = changed }
    }

    // MARK: Beginning

    private var receiving: Int { underWay.count - slow }

    /// Removes the next transfer from the queue and counts it as in progress until `end`.
    ///
    /// If a slot is free, transfers rank first by priority, then by the number of transfers that their origin has in
    /// progress. The next criterion is the last turn of their origin, so that no long queue monopolizes the slots. The
    /// last criterion is age. Every eighth turn goes to the oldest transfer. If no slot is free, the origin that has
    /// waited longest is next.
    mutating func next(now: Double) -> Next {
        guard !waiting.isEmpty else { return .wait(seconds: nil) }
        while let due = delayed.first, due.key <= now, let origin = numbered[due.id] {
            (origin.isSetAside, delayed[due.id]) = (false, nil)
            update(origin)
        }
        let isOldests = (turns + 1) % Self.oldestEvery == 0
        let isCommon = underWay.count < commonLimit
        if isCommon, receiving < slots {
            while let number = isOldests ? byAge.first?.id : byRank.first?.id, let origin = numbered[number] {
                if setsAside(origin, now: now) { continue }
                return begin(origin, isOldests ? origin.waiting.oldest : origin.waiting.mostUrgent?.id, now: now)
            }
        }
        let first = underWay.count < limit ? claimant(isFirst: true, now: now) : nil
        let mayBeQuick = first == nil && isCommon && underWay.count - lingering < slots
        guard let origin = first ?? (mayBeQuick ? claimant(isFirst: false, now: now) : nil) else {
            return .wait(seconds: delayed.first.map { $0.key - now })
        }
        return begin(origin, origin.waiting.mostUrgent?.id, now: now)
    }

    private mutating func begin(_ origin: Origin, _ id: UInt64?, now: Double) -> Next {
        guard let id, let next = origin.waiting.remove(id: id) else { return .wait(seconds: nil) }
        limiter.take(origin.name, now: now)
        waiting[id] = nil
        turns += 1
        origin.lastTurn = turns
        origin.underWay += 1
        change(origin.network) { $0.underWay += 1 }
        underWay[id] = UnderWay(origin: origin, network: origin.network, waited: next, began: now, windowStart: now)
        update(origin)
        return .begin(next.transfer)
    }

    /// Returns the idle or quick origin that has waited longest, if it has waited long enough to begin without a slot.
    private mutating func claimant(isFirst: Bool, now: Double) -> Origin? {
        while let first = isFirst ? idle.first : quick.first, let origin = numbered[first.id],
            let since = origin.waiting[first.key]?.since, now - since >= Self.graceSeconds
        {
            if !setsAside(origin, now: now) { return origin }
        }
        return nil
    }

    /// Returns whether the rate limit or the network delays an origin. The origin is then set aside until that changes.
    private mutating func setsAside(_ origin: Origin, now: Double) -> Bool {
        let seconds = limiter.wait(origin.name, now: now)
        if seconds > 0 {
            delayed[origin.number] = now + seconds
        } else if let network = origin.network, !hasRoom(network) {
            change(network) { $0.parked[origin.number] = origin.waiting.oldest }
        } else {
            return false
        }
        origin.isSetAside = true
        update(origin)
        return true
    }

    // MARK: Under way

    /// Records the address that a transfer in progress connects to. Other transfers of the same origin are expected to
    /// connect to the same network.
    ///
    /// - Returns: false if the network has reached its limit. The caller must not connect, and must call `putBack`.
    mutating func connect(_ id: UInt64, to address: IPAddress) -> Bool {
        guard let transfer = underWay[id], transfer.network != address.network else { return true }
        let network = address.network
        let hasRoom = hasRoom(network)
        if hasRoom {
            change(transfer.network) { $0.underWay -= 1 }
            change(network) { $0.underWay += 1 }
            underWay[id]?.network = network
        }
        let origin = transfer.origin
        if delayed[origin.number] == nil { origin.isSetAside = false }
        change(origin.network) { $0.parked[origin.number] = nil }
        origin.network = network
        update(origin)
        release(transfer.network)
        return hasRoom
    }

    /// Returns a transfer that has sent nothing to its old position in the queue.
    mutating func putBack(_ id: UInt64, priority: UInt8) {
        guard let transfer = underWay[id] else { return }
        wait(transfer.waited, id, transfer.origin, priority)
        end(id)
    }

    /// Records the bytes that a transfer in progress has received, which determine whether the transfer is slow. Called
    /// a few times per second.
    ///
    /// - Parameter received: the number of bytes since the transfer began, including response headers and body.
    mutating func note(_ id: UInt64, received: Int, now: Double) {
        guard var transfer = underWay[id] else { return }
        if !transfer.isLingering, now - transfer.began >= Self.windowSeconds {
            transfer.isLingering = true
            lingering += 1
            transfer.origin.lingering += 1
            update(transfer.origin)
        }
        let seconds = now - transfer.windowStart
        if Double(received - transfer.windowBytes) >= minRate * max(seconds, Self.windowSeconds) {
            if transfer.slowSince != nil { slow -= 1 }
            transfer.slowSince = nil
            (transfer.windowStart, transfer.windowBytes) = (now, received)
        } else if seconds >= Self.windowSeconds {
            if transfer.slowSince == nil { slow += 1 }
            transfer.slowSince = transfer.slowSince ?? now
            (transfer.windowStart, transfer.windowBytes) = (now, received)
        }
        underWay[id] = transfer
    }

    /// Returns the transfer that must end now so that another can begin, and the seconds for which it has been slow, or
    /// nil if no transfer must end.
    mutating func givingWay(now: Double) -> (id: UInt64, seconds: Double)? {
        guard underWay.count >= limit, claimant(isFirst: true, now: now) != nil else { return nil }
        var most: (id: UInt64, share: (Int, Int, Double, UInt64))?
        for (id, transfer) in underWay where transfer.waited.mayGiveWay {
            guard let since = transfer.slowSince, now - since >= maxSlowSeconds else { continue }
            let inNetwork = transfer.network.flatMap { networks[$0] }?.underWay ?? 0
            let share = (inNetwork, transfer.origin.underWay, now - since, UInt64.max - id)
            if most.map({ $0.share < share }) ?? true { most = (id, share) }
        }
        return most.map { ($0.id, $0.share.2) }
    }

    /// Ends a transfer that is in progress.
    mutating func end(_ id: UInt64) {
        guard let transfer = underWay.removeValue(forKey: id) else { return }
        if transfer.slowSince != nil { slow -= 1 }
        let origin = transfer.origin
        if transfer.isLingering { (lingering, origin.lingering) = (lingering - 1, origin.lingering - 1) }
        origin.isQuick = !transfer.isLingering
        origin.underWay -= 1
        change(transfer.network) { $0.underWay -= 1 }
        release(transfer.network)
        update(origin)
    }
}
