import PipelineSupport

/// Decides which transfer begins next, which are slow, and which one has to give way.
///
/// `slots` bounds the transfers that receive. A transfer is slow once a second has brought less than ten times the stall
/// rate, whether it connects, waits for its head or receives its body. It then gives its slot back and counts against
/// `slowLimit` instead; slow transfers beyond that limit hold slots again. One that speeds up counts against `slots`
/// again, even if that makes more than `slots`: it cannot be interrupted, and until enough others have ended none
/// begins. So no more than `slots + slowLimit` are ever under way, and origins that accept and stay silent hold up
/// others for about a second.
///
/// If slow transfers hold slots and another transfer could begin, the one that has been slow longest gives way. No
/// transfer gives way before it has been slow for `patience` seconds, nor if that would free no slot.
///
/// Without a lock and a clock; time comes in as a parameter, in seconds of any monotonic clock.
struct TransferAdmission<Transfer>: ~Copyable {
    /// The outcome of looking for a transfer to begin.
    enum Next {
        case begin(Transfer)
        /// None may begin now; the seconds until the rate limit lets one begin, nil if none waits for that alone.
        case wait(seconds: Double?)
    }

    /// An origin with transfers that wait or are under way.
    private final class Origin {
        let name: String
        let number: UInt64
        var waiting = UrgencyQueue<Waiting>(oldestEvery: 1)
        var underWay = 0
        /// Which of all beginnings its last one was, so that origins take turns.
        var lastTurn: Int
        /// Whether the rate holds it back until the time in `delayed`.
        var isDelayed = false

        init(_ name: String, _ number: UInt64, lastTurn: Int) {
            (self.name, self.number, self.lastTurn) = (name, number, lastTurn)
        }
    }

    /// The order among origins, the first to begin lowest.
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

    private struct Waiting {
        var transfer: Transfer
        var mayGiveWay: Bool
    }

    private struct UnderWay {
        var origin: Origin
        var mayGiveWay: Bool
        /// When the current window began, and the bytes that had arrived by then.
        var windowStart: Double
        var windowBytes = 0
        var slowSince: Double?
    }

    private let slots: Int
    private let slowLimit: Int
    private let perHost: Int
    private let patience: Double
    /// Bytes a second below which a transfer is slow.
    private let leastRate: Double
    private var limiter: RateLimiter
    private var origins: [String: Origin] = [:]
    private var numbered: [UInt64: Origin] = [:]
    private var lastNumber: UInt64 = 0
    /// The origins of the transfers that wait.
    private var waiting: [UInt64: Origin] = [:]
    /// Origins of which a transfer may begin now, by number.
    private var ready = IndexedHeap<Rank>()
    /// The same origins by their oldest waiting transfers.
    private var readyByAge = IndexedHeap<UInt64>()
    /// Origins that the rate holds back, and until when.
    private var delayed = IndexedHeap<Double>()
    private var underWay: [UInt64: UnderWay] = [:]
    private var slow = 0
    private var turns = 0

    /// A window ends as soon as it has received what is enough for this many seconds, or is slow after them.
    private static var windowSeconds: Double { 1 }
    /// How often the oldest transfer of all has its turn.
    private static var oldestEvery: Int { 8 }

    init(_ configuration: FetchConfiguration) {
        slots = max(configuration.slots, 1)
        slowLimit = 4 * slots
        perHost = max(configuration.perHost, 1)
        patience = configuration.headerSeconds / 4
        leastRate = max(1, 10 * Double(configuration.stallRate))
        limiter = RateLimiter(rate: configuration.rate)
    }

    /// Transfers that wait.
    var waitingCount: Int { waiting.count }
    /// The most transfers that are ever under way.
    var limit: Int { slots + slowLimit }

    // MARK: Waiting

    /// - Parameters:
    ///   - id: the name for the other calls. Names ascend: of two transfers, the one with the lower name came first.
    ///   - priority: higher is more urgent.
    ///   - mayGiveWay: false for requests that may change state, since a client cannot repeat them.
    mutating func add(_ transfer: Transfer, id: UInt64, origin name: String, priority: UInt8, mayGiveWay: Bool = true) {
        let origin = origins[name] ?? newOrigin(name)
        waiting[id] = origin
        origin.waiting.push(Waiting(transfer: transfer, mayGiveWay: mayGiveWay), id: id, priority: priority)
        update(origin)
    }

    private mutating func newOrigin(_ name: String) -> Origin {
        lastNumber += 1
        // It ranks ahead of origins that hold slots and behind origins that have waited longer.
        let origin = Origin(name, lastNumber, lastTurn: turns - slots)
        origins[name] = origin
        numbered[lastNumber] = origin
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
        let ids = waiting.keys.sorted()
        return ids.compactMap { id in
            let transfer = waiting[id]?.waiting[id]?.transfer
            return remove(id) ? transfer : nil
        }
    }

    /// Sorts an origin after a change. Forgets it if it has no transfer.
    private mutating func update(_ origin: Origin) {
        let number = origin.number
        var rank: Rank?
        if !origin.isDelayed, origin.underWay < perHost, let first = origin.waiting.mostUrgent,
            let oldest = origin.waiting.oldest
        {
            rank = Rank(
                urgency: first.priority, underWay: origin.underWay, lastTurn: origin.lastTurn, oldest: oldest)
        }
        ready[number] = rank
        readyByAge[number] = rank?.oldest
        if origin.waiting.isEmpty { (origin.isDelayed, delayed[number]) = (false, nil) }
        if origin.waiting.isEmpty, origin.underWay == 0 { (origins[origin.name], numbered[number]) = (nil, nil) }
    }

    // MARK: Beginning

    /// Whether every slot is taken, by a transfer that receives or by a slow one beyond the limit of those.
    private var isFull: Bool { receiving + max(0, slow - slowLimit) >= slots }

    private var receiving: Int { underWay.count - slow }

    /// Removes the next transfer from the queue and counts it as under way until `end`: the most urgent; of equally
    /// urgent ones that of the origin with the fewest under way; of such origins that whose last turn was longest ago, or
    /// each with a long queue would be next whenever it has ended one; then the oldest. Each eighth is the oldest of all.
    mutating func next(now: Double) -> Next {
        guard !waiting.isEmpty, !isFull else { return .wait(seconds: nil) }
        let isOldests = (turns + 1) % Self.oldestEvery == 0
        guard let origin = readyOrigin(isOldests: isOldests, now: now),
            let id = isOldests ? origin.waiting.oldest : origin.waiting.mostUrgent?.id,
            let next = origin.waiting.remove(id: id)
        else { return .wait(seconds: delayed.first.map { $0.key - now }) }
        limiter.take(origin.name, now: now)
        waiting[id] = nil
        origin.underWay += 1
        turns += 1
        origin.lastTurn = turns
        underWay[id] = UnderWay(origin: origin, mayGiveWay: next.mayGiveWay, windowStart: now)
        update(origin)
        return .begin(next.transfer)
    }

    /// The origin whose transfer begins next. Sets aside the origins that the rate holds back, until their time.
    private mutating func readyOrigin(isOldests: Bool = false, now: Double) -> Origin? {
        while let due = delayed.first, due.key <= now, let origin = numbered[due.id] {
            (origin.isDelayed, delayed[due.id]) = (false, nil)
            update(origin)
        }
        while let number = isOldests ? readyByAge.first?.id : ready.first?.id, let origin = numbered[number] {
            let seconds = limiter.wait(origin.name, now: now)
            if seconds == 0 { return origin }
            (origin.isDelayed, delayed[number]) = (true, now + seconds)
            update(origin)
        }
        return nil
    }

    // MARK: Under way

    /// Notes what a transfer under way has received, and so whether it is slow. Called a few times a second.
    ///
    /// - Parameter received: bytes since it began, of heads and body.
    mutating func note(_ id: UInt64, received: Int, now: Double) {
        guard var transfer = underWay[id] else { return }
        let seconds = now - transfer.windowStart
        if Double(received - transfer.windowBytes) >= leastRate * max(seconds, Self.windowSeconds) {
            if transfer.slowSince != nil { slow -= 1 }
            transfer.slowSince = nil
        } else if seconds >= Self.windowSeconds {
            if transfer.slowSince == nil { slow += 1 }
            transfer.slowSince = transfer.slowSince ?? now
        } else {
            return
        }
        transfer.windowStart = now
        transfer.windowBytes = received
        underWay[id] = transfer
    }

    /// The transfer under way that has to end now, so that another one can begin, and the seconds it has been slow; nil if
    /// none has to.
    mutating func givingWay(now: Double) -> (id: UInt64, seconds: Double)? {
        // While as many receive as there are slots, no slow transfer holds a slot that it could free.
        guard isFull, receiving < slots, readyOrigin(now: now) != nil else { return nil }
        var longest: (id: UInt64, seconds: Double)?
        for (id, transfer) in underWay where transfer.mayGiveWay {
            guard let since = transfer.slowSince, now - since >= max(patience, longest?.seconds ?? 0) else { continue }
            longest = (id, now - since)
        }
        return longest
    }

    /// Ends a transfer that was under way.
    mutating func end(_ id: UInt64) {
        guard let transfer = underWay.removeValue(forKey: id) else { return }
        if transfer.slowSince != nil { slow -= 1 }
        transfer.origin.underWay -= 1
        update(transfer.origin)
    }
}
