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

    /// An origin with transfers that wait or are under way. A reference, since each look at the queue compares the
    /// counts of all that wait.
    private final class Origin {
        let name: String
        var waiting = 0
        var underWay = 0
        /// Which of all beginnings its last one was, so that origins take turns.
        var lastTurn: Int

        /// The order among origins, the first to begin lowest. There are fewer turns than 2^40.
        var rank: Int { underWay << 40 + lastTurn }

        init(_ name: String, lastTurn: Int) { (self.name, self.lastTurn) = (name, lastTurn) }
    }

    private struct Waiting {
        var id: UInt64
        var transfer: Transfer
        var origin: Origin
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
    private var queue = UrgencyQueue<Waiting>(oldestEvery: 8)
    private var origins: [String: Origin] = [:]
    private var underWay: [UInt64: UnderWay] = [:]
    private var slow = 0
    private var turns = 0

    /// A window ends as soon as it has received what is enough for this many seconds, or is slow after them.
    private static var windowSeconds: Double { 1 }

    init(_ configuration: FetchConfiguration) {
        slots = max(configuration.slots, 1)
        slowLimit = 4 * slots
        perHost = max(configuration.perHost, 1)
        patience = configuration.headerSeconds / 4
        leastRate = max(1, 10 * Double(configuration.stallRate))
        limiter = RateLimiter(rate: configuration.rate)
    }

    /// Transfers that wait.
    var waitingCount: Int { queue.count }
    /// The most transfers that are ever under way.
    var limit: Int { slots + slowLimit }

    // MARK: Waiting

    /// - Parameters:
    ///   - id: the name for the other calls, unique among the transfers that wait or are under way.
    ///   - priority: higher is more urgent.
    ///   - mayGiveWay: false for requests that may change state, since a client cannot repeat them.
    mutating func add(_ transfer: Transfer, id: UInt64, origin name: String, priority: UInt8, mayGiveWay: Bool = true) {
        // One that is new comes before those that hold the slots now, and after those that have waited longer than they.
        let origin = origins[name] ?? Origin(name, lastTurn: turns - slots)
        origins[name] = origin
        origin.waiting += 1
        queue.push(
            Waiting(id: id, transfer: transfer, origin: origin, mayGiveWay: mayGiveWay), id: id, priority: priority)
    }

    /// Makes a transfer at least this urgent, if it still waits.
    mutating func raise(_ id: UInt64, to priority: UInt8) { queue.raise(id: id, to: priority) }

    /// Removes a transfer that waits; false if it does not.
    mutating func remove(_ id: UInt64) -> Bool {
        guard let waiting = queue.remove(id: id) else { return false }
        waiting.origin.waiting -= 1
        forgetIfUnused(waiting.origin)
        return true
    }

    /// Removes all transfers that wait.
    mutating func removeAll() -> [Transfer] {
        defer { queue = UrgencyQueue(oldestEvery: 8) }
        return queue.elements.map(\.transfer)
    }

    // MARK: Beginning

    /// Whether every slot is taken, by a transfer that receives or by a slow one beyond the limit of those.
    private var isFull: Bool { receiving + max(0, slow - slowLimit) >= slots }

    private var receiving: Int { underWay.count - slow }

    /// Removes the next transfer from the queue and counts it as under way until `end`: the most urgent; of equally
    /// urgent ones that of the origin with the fewest under way; of such origins that whose last turn was longest ago, or
    /// each with a long queue would be next whenever it has ended one; then the oldest. Each eighth is the oldest of all.
    mutating func next(now: Double) -> Next {
        guard !queue.isEmpty, !isFull else { return .wait(seconds: nil) }
        var pause: Double?
        // Taken out of `self`, which the closure reads.
        var waiting = UrgencyQueue<Waiting>(oldestEvery: 8)
        swap(&waiting, &queue)
        let found = waiting.pop { waiting in
            guard waiting.origin.underWay < perHost else { return nil }
            let seconds = limiter.wait(waiting.origin.name, now: now)
            guard seconds == 0 else {
                pause = min(pause ?? seconds, seconds)
                return nil
            }
            return waiting.origin.rank
        }
        swap(&waiting, &queue)
        guard let found else { return .wait(seconds: pause) }
        limiter.take(found.origin.name, now: now)
        found.origin.waiting -= 1
        found.origin.underWay += 1
        turns += 1
        found.origin.lastTurn = turns
        underWay[found.id] = UnderWay(origin: found.origin, mayGiveWay: found.mayGiveWay, windowStart: now)
        return .begin(found.transfer)
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
    func givingWay(now: Double) -> (id: UInt64, seconds: Double)? {
        // While as many receive as there are slots, no slow transfer holds a slot that it could free.
        guard isFull, receiving < slots,
            queue.elements.contains(where: {
                $0.origin.underWay < perHost && limiter.wait($0.origin.name, now: now) == 0
            })
        else { return nil }
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
        forgetIfUnused(transfer.origin)
    }

    private mutating func forgetIfUnused(_ origin: Origin) {
        if origin.waiting == 0, origin.underWay == 0 { origins[origin.name] = nil }
    }
}
