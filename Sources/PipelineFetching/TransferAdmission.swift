import PipelineSupport

/// Decides which transfer begins next, and which one has to give way.
///
/// Invariants, in the order in which they are decided:
///
/// 1. At most `limit` transfers are under way, of them `perHost` of one origin and `networkLimit` of one network: the
///    /24 or /48 of the address that is connected to. Until a transfer has one, its origin counts as a network.
/// 2. A transfer begins if fewer than `slots` receive. A transfer that has become slow does not count: a second brought
///    less than ten times the stall rate, whether it connects, waits for its head or receives its body. One that speeds
///    up counts again, even if that makes more than `slots`, since it cannot be interrupted.
/// 3. The first transfer of an origin that has none under way begins after `graceSeconds` even if the slots are taken.
///    Further transfers of a quick origin do the same if fewer than `slots` transfers are younger than a second.
/// 4. The upper half of the room between `slots` and `limit` is reserved for first transfers of origins.
/// 5. A transfer gives way only if `limit` are under way and rule 3 would let the first transfer of an origin begin. It
///    has been slow for `patience` seconds. Those of the network and the origin that have most under way come first.
///
/// Silent origins, and origins that drip at any rate, therefore delay others by at most `graceSeconds`.
///
/// Without a lock and a clock; time comes in as a parameter, in seconds of any monotonic clock.
struct TransferAdmission<Transfer>: ~Copyable {
    /// The outcome of looking for a transfer to begin.
    enum Next {
        case begin(Transfer)
        /// None may begin now; the seconds until the rate limit lets one begin, nil if none waits for that alone.
        case wait(seconds: Double?)
    }

    /// When a transfer of an origin begins, if fewer than `slots` receive; the least comes first.
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

    /// An origin with transfers that wait or are under way.
    private final class Origin {
        let name: String
        let number: UInt64
        /// The network of its addresses, once it is known.
        var network: IPAddress?
        var waiting = UrgencyQueue<Waiting>(oldestEvery: 1)
        var underWay = 0
        /// Those of them that have lasted for a second.
        var lingering = 0
        /// Whether the last transfer that ended took less than a second.
        var isQuick = false
        /// Which of all beginnings its last one was, so that origins take turns.
        var lastTurn: Int
        /// Whether it waits for its rate, in `delayed`, or for its network, in `parked`.
        var isSetAside = false

        init(_ name: String, _ number: UInt64, lastTurn: Int) {
            (self.name, self.number, self.lastTurn) = (name, number, lastTurn)
        }
    }

    private struct Network {
        var underWay = 0
        /// Origins that wait until it has room.
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
        /// When the current window began, and the bytes received before it.
        var windowStart: Double
        var windowBytes = 0
        var slowSince: Double?
    }

    private let slots: Int
    private let perHost: Int
    private let patience: Double
    /// Bytes a second below which a transfer is slow.
    private let leastRate: Double
    private var limiter: RateLimiter
    private var origins: [String: Origin] = [:]
    private var numbered: [UInt64: Origin] = [:]
    private var lastNumber: UInt64 = 0
    private var networks: [IPAddress: Network] = [:]
    /// The origins of the transfers that wait.
    private var waiting: [UInt64: Origin] = [:]
    /// Origins with a transfer that may begin, in the order of their turns.
    private var byRank = IndexedHeap<Rank>()
    /// These origins by their oldest waiting transfer: all, idle ones (none under way), and quick ones.
    private var (byAge, idle, quick) = (IndexedHeap<UInt64>(), IndexedHeap<UInt64>(), IndexedHeap<UInt64>())
    /// Origins that the rate holds back, and until when.
    private var delayed = IndexedHeap<Double>()
    private var underWay: [UInt64: UnderWay] = [:]
    private var (slow, lingering) = (0, 0)
    private var turns = 0

    /// The most transfers that are ever under way.
    let limit: Int
    /// The most of one network.
    var networkLimit: Int { max(1, limit / 4) }
    /// The most while the transfer that begins is not the first of its origin.
    private var commonLimit: Int { slots + (limit - slots) / 2 }

    /// The length of a window. A window ends early once it has received as much as a quick transfer does in that time. A
    /// transfer that has lasted longer lingers.
    private static var windowSeconds: Double { 1 }
    /// How long a transfer waits for a slot before it begins without one.
    static var graceSeconds: Double { 0.5 }
    /// How often the oldest transfer of all has its turn.
    private static var oldestEvery: Int { 8 }

    init(_ configuration: FetchConfiguration) {
        slots = max(configuration.slots, 1)
        limit = FetchConfiguration.transferLimit(slots: slots)
        perHost = max(configuration.perHost, 1)
        patience = configuration.headerSeconds / 4
        leastRate = max(1, 10 * Double(configuration.stallRate))
        limiter = RateLimiter(rate: configuration.rate)
    }

    /// Transfers that wait.
    var waitingCount: Int { waiting.count }
    var underWayCount: Int { underWay.count }

    // MARK: Waiting

    /// - Parameters:
    ///   - id: the name for the other calls. Names ascend: of two transfers, the one with the lower name came first.
    ///   - address: the address that the URL names; nil if it names a host.
    ///   - priority: higher is more urgent.
    ///   - mayGiveWay: false for requests that may change state, since a client cannot repeat them.
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
        // It ranks ahead of origins that hold slots and behind origins that have waited longer.
        let origin = Origin(name, lastNumber, lastTurn: turns - slots)
        (origins[name], numbered[lastNumber]) = (origin, origin)
        return origin
    }

    /// Makes a transfer at least this urgent, if it still waits.
    mutating func raise(_ id: UInt64, to priority: UInt8) {
        guard let origin = waiting[id] else { return }
        origin.waiting.raise(id: id, to: priority)
        update(origin)
    }

    /// Removes a transfer that waits; false if it does not.
    mutating func remove(_ id: UInt64) -> Bool {
        guard let origin = waiting.removeValue(forKey: id) else { return false }
        _ = origin.waiting.remove(id: id)
        update(origin)
        return true
    }

    /// Removes all transfers that wait.
    mutating func removeAll() -> [Transfer] {
        waiting.keys.sorted().compactMap { id in
            let transfer = waiting[id]?.waiting[id]?.transfer
            return remove(id) ? transfer : nil
        }
    }

    /// Sorts an origin after a change. Forgets it if it has no transfer.
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

    /// Lets one parked origin have a turn, if its network has room. If it does not begin, its next change releases the
    /// next one.
    private mutating func release(_ network: IPAddress?) {
        guard let network, hasRoom(network) else { return }
        var number: UInt64?
        change(network) { number = $0.parked.popFirst() }
        guard let number, let origin = numbered[number] else { return }
        origin.isSetAside = false
        sort(origin)
    }

    /// Changes what is known of a network. Forgets it if it has no transfer.
    private mutating func change(_ network: IPAddress?, _ change: (inout Network) -> Void) {
        guard let network else { return }
        var changed = networks.removeValue(forKey: network) ?? Network()
        change(&changed)
        if changed.underWay > 0 || !changed.parked.isEmpty { networks[network] = changed }
    }

    // MARK: Beginning

    private var receiving: Int { underWay.count - slow }

    /// Removes the next transfer from the queue and counts it as under way until `end`.
    ///
    /// If there is a slot, transfers rank by urgency, then by the number of transfers that their origin has under way, then
    /// by the last turn of their origin, so that no long queue monopolises the slots, then by age. Every eighth turn goes
    /// to the oldest transfer. Without a slot, the origin that has waited longest is next.
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

    /// The idle or quick origin that has waited longest, if that is long enough to begin without a slot.
    private mutating func claimant(isFirst: Bool, now: Double) -> Origin? {
        while let first = isFirst ? idle.first : quick.first, let origin = numbered[first.id],
            let since = origin.waiting[first.key]?.since, now - since >= Self.graceSeconds
        {
            if !setsAside(origin, now: now) { return origin }
        }
        return nil
    }

    /// Whether the rate or the network holds an origin back. It is then set aside until that has changed.
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

    /// Notes the address that a transfer under way connects to. Its origin's other transfers are expected to lead there.
    ///
    /// - Returns: false if the network has all it may have. The caller must not connect, and calls `putBack`.
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

    /// Lets a transfer under way that has sent nothing wait again, at its old place in the queue.
    mutating func putBack(_ id: UInt64, priority: UInt8) {
        guard let transfer = underWay[id] else { return }
        wait(transfer.waited, id, transfer.origin, priority)
        end(id)
    }

    /// Notes what a transfer under way has received, and so whether it is slow. Called a few times a second.
    ///
    /// - Parameter received: bytes since it began, of heads and body.
    mutating func note(_ id: UInt64, received: Int, now: Double) {
        guard var transfer = underWay[id] else { return }
        if !transfer.isLingering, now - transfer.began >= Self.windowSeconds {
            transfer.isLingering = true
            lingering += 1
            transfer.origin.lingering += 1
            update(transfer.origin)
        }
        let seconds = now - transfer.windowStart
        if Double(received - transfer.windowBytes) >= leastRate * max(seconds, Self.windowSeconds) {
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

    /// The transfer under way that has to end now, so that another one can begin, and the seconds it has been slow; nil if
    /// none has to.
    mutating func givingWay(now: Double) -> (id: UInt64, seconds: Double)? {
        guard underWay.count >= limit, claimant(isFirst: true, now: now) != nil else { return nil }
        var most: (id: UInt64, share: (Int, Int, Double, UInt64))?
        for (id, transfer) in underWay where transfer.waited.mayGiveWay {
            guard let since = transfer.slowSince, now - since >= patience else { continue }
            let inNetwork = transfer.network.flatMap { networks[$0] }?.underWay ?? 0
            let share = (inNetwork, transfer.origin.underWay, now - since, UInt64.max - id)
            if most.map({ $0.share < share }) ?? true { most = (id, share) }
        }
        return most.map { ($0.id, $0.share.2) }
    }

    /// Ends a transfer that was under way.
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
