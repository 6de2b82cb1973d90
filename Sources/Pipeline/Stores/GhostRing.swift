/// Hashes of the keys evicted last, oldest dropped first.
struct GhostRing: Sendable {
    private var ring: [UInt64] = []
    private var start = 0
    private(set) var count = 0
    /// The latest position of each hash in the ring.
    private var positions = SlotTable()

    /// Bytes of memory the ring takes.
    var memory: Int { ring.capacity * MemoryLayout<UInt64>.stride + positions.memory }

    func contains(_ hash: UInt64) -> Bool { position(of: hash) != nil }

    private func position(of hash: UInt64) -> UInt32? {
        positions.find(UInt32(truncatingIfNeeded: hash)) { ring[Int($0)] == hash }
    }

    /// Adds the newest, and drops the oldest until at most `limit` are left.
    mutating func append(_ hash: UInt64, limit: Int) {
        trim(to: max(0, limit - 1))
        if limit <= 0 { return }
        if count == ring.count { grow() }
        let at = UInt32((start + count) & (ring.count - 1))
        if let earlier = position(of: hash) { positions.remove(earlier, hash: UInt32(truncatingIfNeeded: hash)) }
        ring[Int(at)] = hash
        count += 1
        positions.insert(at, hash: UInt32(truncatingIfNeeded: hash))
    }

    private mutating func trim(to limit: Int) {
        while count > limit {
            // Not found when the hash has come again since: the later position counts.
            positions.remove(UInt32(start), hash: UInt32(truncatingIfNeeded: ring[start]))
            start = (start + 1) & (ring.count - 1)
            count -= 1
        }
    }

    private mutating func grow() {
        let kept = (0..<count).map { ring[(start + $0) & (ring.count - 1)] }
        ring = kept + [UInt64](repeating: 0, count: max(8, ring.count * 2) - count)
        start = 0
        positions = SlotTable()
        for (at, hash) in kept.enumerated() {
            if let earlier = position(of: hash) { positions.remove(earlier, hash: UInt32(truncatingIfNeeded: hash)) }
            positions.insert(UInt32(at), hash: UInt32(truncatingIfNeeded: hash))
        }
    }
}
