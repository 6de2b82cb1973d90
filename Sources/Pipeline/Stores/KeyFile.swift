import Glibc

/// Numbers by key beside the index, the latest of them: a table in which each is found with one read of 128 bytes.
///
/// Two kinds are kept: keys evicted last from a tier, and which entry has a body. In the index they would change as many
/// pages as storing an entry does. Written under the index's write lock, but not part of its transaction: one that is
/// undone leaves numbers behind, and what is lost or garbled must cost no more than a place in a queue, or bytes stored
/// twice. Eight keys share a bucket, the latest first; the last makes room.
final class KeyFile {
    /// Keys and their numbers, eight of each: a bucket.
    private struct Bucket {
        var words = InlineArray<16, UInt64>(repeating: 0)
    }

    private static let ways = 8
    private static let bucketBytes = 128
    /// Buckets of the largest table.
    static let mostBuckets = 1 << 20

    /// Whether a table may have so many buckets.
    static func isSize(_ buckets: Int) -> Bool { buckets.nonzeroBitCount == 1 && buckets <= mostBuckets }

    /// Buckets of a new table.
    static let leastBuckets = 256

    private let path: String
    private var file: CInt = -1
    /// The bucket looked at last: who looks a key up under the write lock may be about to insert it.
    private var last: (offset: off_t, bucket: Bucket)?
    /// Buckets by the length of the file, as found since `forget`.
    private var size: Int?

    init(path: String) { self.path = path }

    deinit { detach() }

    /// Lets go of the file; the next use opens what then lies at its place.
    func detach() {
        if file >= 0 { close(file) }
        file = -1
        forget()
    }

    /// Lets go of what another process may have changed.
    func forget() {
        last = nil
        size = nil
    }

    /// Forgets all keys and gives their room back. It is the same file then, for others that have it open.
    func empty() {
        forget()
        _ = ftruncate(descriptor(), 0)
    }

    private func descriptor() -> CInt {
        if file >= 0 { return file }
        for _ in 0..<2 {
            file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0o600)
            var info = stat()
            if file >= 0, fstat(file, &info) == 0, BodyFiles.isOurs(info) { return file }
            detach()
            BodyFiles.delete(path)
        }
        return -1
    }

    /// Digests are spread evenly already, other hashes are not.
    private static func mixed(_ key: UInt64) -> Int { Int((key &* 0x9E37_79B9_7F4A_7C15) >> 32) }

    private static func offset(_ key: UInt64, _ buckets: Int) -> off_t {
        off_t(mixed(key) & (buckets - 1)) * off_t(bucketBytes)
    }

    private func read(_ offset: off_t) -> Bucket {
        var bucket = Bucket()
        let count = withUnsafeMutableBytes(of: &bucket) { pread(descriptor(), $0.baseAddress, $0.count, offset) }
        if count != Self.bucketBytes { bucket = Bucket() }
        last = (offset, bucket)
        return bucket
    }

    /// Buckets by the length of the file, for a table whose size is kept nowhere else; 0 when there are none.
    var buckets: Int {
        if let size { return size }
        let found = bucketsByLength()
        size = found
        return found
    }

    private func bucketsByLength() -> Int {
        var info = stat()
        guard fstat(descriptor(), &info) == 0 else { return 0 }
        let whole = min(Int(info.st_size) / Self.bucketBytes, Self.mostBuckets)
        return whole == 0 ? 0 : 1 << (Int.bitWidth - 1 - whole.leadingZeroBitCount)
    }

    /// Makes an empty table of the least size by its length.
    func begin() {
        forget()
        _ = ftruncate(descriptor(), off_t(Self.leastBuckets * Self.bucketBytes))
    }

    /// The number of a key; nil when it has none.
    ///
    /// - Parameter buckets: a power of two; 0 knows nothing.
    func number(of hash: Int, buckets: Int) -> Int? {
        guard buckets > 0 else { return nil }
        let key = UInt64(bitPattern: Int64(hash))
        let bucket = read(Self.offset(key, buckets))
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
        let offset = Self.offset(key, buckets)
        var bucket = if let last, last.offset == offset { last.bucket } else { read(offset) }
        // Where the key is, or the first that is empty, or the last.
        let taken = (0..<Self.ways).first { bucket.words[2 * $0 + 1] == 0 || bucket.words[2 * $0] == key }
        for way in stride(from: taken ?? Self.ways - 1, to: 0, by: -1) {
            bucket.words[2 * way] = bucket.words[2 * way - 2]
            bucket.words[2 * way + 1] = bucket.words[2 * way - 1]
        }
        bucket.words[0] = key
        bucket.words[1] = UInt64(max(0, number))
        last = (offset, bucket)
        withUnsafeBytes(of: &bucket) { _ = pwrite(descriptor(), $0.baseAddress, $0.count, offset) }
    }

    /// Buckets that are spread at a time.
    private static let spread = 512

    /// Spreads the keys of so many buckets over twice as many: those of one go there and into one so many further on.
    func double(from buckets: Int) {
        defer { forget() }
        for start in stride(from: 0, to: buckets, by: Self.spread) {
            let count = min(Self.spread, buckets - start)
            var before = [UInt64](repeating: 0, count: count * 2 * Self.ways)
            // What cannot be read is lost.
            let offset = off_t(start * Self.bucketBytes)
            _ = before.withUnsafeMutableBytes { pread(descriptor(), $0.baseAddress, $0.count, offset) }
            var halves = [[UInt64]](repeating: [UInt64](repeating: 0, count: before.count), count: 2)
            for bucket in 0..<count {
                var next = [bucket * 2 * Self.ways, bucket * 2 * Self.ways]
                for at in stride(from: next[0], to: next[0] + 2 * Self.ways, by: 2) where before[at + 1] != 0 {
                    let half = Self.mixed(before[at]) & buckets == 0 ? 0 : 1
                    halves[half][next[half]] = before[at]
                    halves[half][next[half] + 1] = before[at + 1]
                    next[half] += 2
                }
            }
            for half in 0..<2 {
                let offset = off_t((start + half * buckets) * Self.bucketBytes)
                _ = halves[half].withUnsafeBytes { pwrite(descriptor(), $0.baseAddress, $0.count, offset) }
            }
        }
    }
}
