/// The baseline: evicts the object that was requested least recently, whatever its size and cost.
struct LeastRecent {
    private let capacity: Int
    private var held: [UInt64: (size: Int, turn: Int)] = [:]
    /// The requests in order. One is obsolete if its object was requested again later.
    private var turns: [UInt64] = []
    private var first = 0
    private(set) var bytes = 0
    private(set) var evictions = 0
    var count: Int { held.count }

    init(capacity: Int) { self.capacity = capacity }

    /// Replays one request and returns whether it was a hit; a miss is followed by an insertion.
    mutating func request(_ key: UInt64, size: Int) -> Bool {
        let known = held[key]
        guard known != nil || size <= capacity else { return false }
        held[key] = (known?.size ?? max(1, size), turns.count)
        turns.append(key)
        if known != nil { return true }
        bytes += max(1, size)
        while bytes > capacity {
            let key = turns[first]
            if let oldest = held[key], oldest.turn == first {
                held[key] = nil
                bytes -= oldest.size
                evictions += 1
            }
            first += 1
        }
        return false
    }
}
