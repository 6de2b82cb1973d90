/// Ghost entries: the hashes of the most recently evicted keys. The oldest are dropped first.
struct GhostRing: Sendable {
    /// The serial number of each hash's last eviction.
    private var serials: [Int: Int] = [:]
    /// The hashes in the order of eviction. Hashes before `start` were dropped.
    private var hashes: [Int] = []
    private var start = 0
    /// The serial number of the first element of `hashes`.
    private var first = 0

    /// The number of remembered evictions.
    var count: Int { hashes.count - start }

    func contains(_ hash: Int) -> Bool { serials[hash] != nil }

    /// Adds a hash, and drops the oldest until at most `limit` are left.
    mutating func append(_ hash: Int, limit: Int) {
        while count > max(0, limit - 1) {
            // A hash that was evicted again in the meantime stays.
            if serials[hashes[start]] == first + start { serials[hashes[start]] = nil }
            start += 1
        }
        if start > hashes.count / 2 + 16 {
            hashes.removeFirst(start)
            first += start
            start = 0
        }
        if limit <= 0 { return }
        serials[hash] = first + hashes.count
        hashes.append(hash)
    }
}
