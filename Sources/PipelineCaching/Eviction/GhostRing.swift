/// Ghost entries: hashes of the most recently evicted keys; the oldest are dropped first.
struct GhostRing: Sendable {
    /// The serial number of the last eviction of each hash.
    private var serials: [Int: Int] = [:]
    /// Hashes in the order of eviction; those before `start` were dropped.
    private var hashes: [Int] = []
    private var start = 0
    /// The serial number of the first of `hashes`.
    private var first = 0

    /// The number of evictions that are remembered.
    var count: Int { hashes.count - start }

    func contains(_ hash: Int) -> Bool { serials[hash] != nil }

    /// Adds the newest, and drops the oldest until at most `limit` are left.
    mutating func append(_ hash: Int, limit: Int) {
        while count > max(0, limit - 1) {
            // A hash that has been evicted again since then stays.
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
