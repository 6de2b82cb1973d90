/// Numbers by key beside the index, the latest of them.
///
/// Two kinds are kept: keys evicted last from a tier, and which entry has a body. In the index they would change as many
/// pages as storing an entry does. Written under the index's write lock, but not part of its transaction: one that is
/// undone leaves numbers behind. Eight keys share a bucket, the latest first; the last makes room.
final class KeyFile: BucketFile {
    /// The bucket looked at last: who looks a key up under the write lock may be about to insert it.
    private var last: (number: Int, bucket: Bucket)?

    override func forget() {
        last = nil
        super.forget()
    }

    override func hash(_ firstWord: UInt64, in bucket: Int) -> Int { Self.mixed(firstWord) }

    /// Digests are spread evenly already, other hashes are not.
    private static func mixed(_ key: UInt64) -> Int { Int((key &* 0x9E37_79B9_7F4A_7C15) >> 32) }

    /// The number of a key; nil when it has none.
    ///
    /// - Parameter buckets: a power of two; 0 knows nothing.
    func number(of hash: Int, buckets: Int) -> Int? {
        guard buckets > 0 else { return nil }
        let key = UInt64(bitPattern: Int64(hash))
        let place = Self.mixed(key) & (buckets - 1)
        let bucket = read(place)
        last = (place, bucket)
        for way in 0..<Self.ways where bucket.words[2 * way] == key && bucket.words[2 * way + 1] != 0 {
            return Int(clamping: bucket.words[2 * way + 1])
        }
        return nil
    }

    /// Whether a key has a number above `floor`, and none above `last`.
    func contains(_ hash: Int, above floor: Int, last: Int, buckets: Int) -> Bool {
        guard last > floor, let number = number(of: hash, buckets: buckets) else { return false }
        return number > floor && number <= last
    }

    /// Gives a key a number above 0, in place of any it had.
    func insert(_ hash: Int, number: Int, buckets: Int) {
        guard buckets > 0 else { return }
        let key = UInt64(bitPattern: Int64(hash))
        let place = Self.mixed(key) & (buckets - 1)
        var bucket = if let last, last.number == place { last.bucket } else { read(place) }
        // Where the key is, or the first that is empty, or the last.
        let taken = (0..<Self.ways).first { bucket.words[2 * $0 + 1] == 0 || bucket.words[2 * $0] == key }
        for way in stride(from: taken ?? Self.ways - 1, to: 0, by: -1) {
            bucket.words[2 * way] = bucket.words[2 * way - 2]
            bucket.words[2 * way + 1] = bucket.words[2 * way - 1]
        }
        bucket.words[0] = key
        bucket.words[1] = UInt64(max(0, number))
        last = (place, bucket)
        write(bucket, at: place)
    }
}
