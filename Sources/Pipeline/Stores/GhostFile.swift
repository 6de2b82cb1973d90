import Glibc

/// The keys evicted last from one tier, beside the index: a table in which each is found with one read of 128 bytes.
///
/// In the index, remembering a key would change as many pages as evicting its entry does. Written under the index's write
/// lock, but not part of its transaction: one that is undone leaves keys behind, and what is lost or garbled costs an
/// entry a better place in the queue, no more. Eight keys share a bucket, the oldest makes room.
///
/// A key counts as remembered while its number is above a floor that the index keeps, so that forgetting takes nothing.
final class GhostFile {
    /// Keys and their numbers, eight of each: a bucket.
    private struct Bucket {
        var words = InlineArray<16, UInt64>(repeating: 0)
    }

    private static let ways = 8
    private static let bucketBytes = 128
    /// Buckets of a new table.
    static let mostBuckets = 1 << 20

    /// Whether a table may have so many buckets.
    static func isSize(_ buckets: Int) -> Bool { buckets.nonzeroBitCount == 1 && buckets <= mostBuckets }

    static let leastBuckets = 256

    private let path: String
    private var file: CInt = -1
    private var inode: UInt64 = 0

    init(folder: String, tier: DiskTier) { path = "\(folder)/ghosts.\(tier.rawValue)" }

    deinit { detach() }

    /// Lets go of the file; the next use opens what then lies at its place.
    func detach() {
        if file >= 0 { close(file) }
        file = -1
    }

    /// Forgets all keys and gives their room back. It is the same file then, for others that have it open.
    func empty() { _ = ftruncate(descriptor(), 0) }

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

    private static func offset(_ hash: Int, _ buckets: Int) -> off_t {
        // Digests are spread evenly already, other hashes are not.
        let mixed = UInt64(bitPattern: Int64(hash)) &* 0x9E37_79B9_7F4A_7C15
        return off_t(Int(mixed >> 32) & (buckets - 1)) * off_t(bucketBytes)
    }

    private func read(_ offset: off_t) -> Bucket {
        var bucket = Bucket()
        let count = withUnsafeMutableBytes(of: &bucket) { pread(descriptor(), $0.baseAddress, $0.count, offset) }
        return count == Self.bucketBytes ? bucket : Bucket()
    }

    /// Whether a key was remembered under a number above `floor`, and none above `last`.
    ///
    /// - Parameter buckets: a power of two; 0 knows nothing.
    func contains(_ hash: Int, above floor: Int, last: Int, buckets: Int) -> Bool {
        guard buckets > 0, last > floor else { return false }
        let bucket = read(Self.offset(hash, buckets))
        let key = UInt64(bitPattern: Int64(hash))
        return (0..<Self.ways).contains { way in
            let number = bucket.words[2 * way + 1]
            return bucket.words[2 * way] == key && number > UInt64(max(0, floor)) && number <= UInt64(max(0, last))
        }
    }

    /// Remembers a key under a number, in place of the lowest in its bucket.
    func insert(_ hash: Int, number: Int, buckets: Int) {
        guard buckets > 0 else { return }
        let offset = Self.offset(hash, buckets)
        var bucket = read(offset)
        let key = UInt64(bitPattern: Int64(hash))
        var oldest = 0
        for way in 0..<Self.ways {
            if bucket.words[2 * way] == key, bucket.words[2 * way + 1] != 0 {
                oldest = way
                break
            }
            if bucket.words[2 * way + 1] < bucket.words[2 * oldest + 1] { oldest = way }
        }
        bucket.words[2 * oldest] = key
        bucket.words[2 * oldest + 1] = UInt64(max(0, number))
        withUnsafeBytes(of: &bucket) { _ = pwrite(descriptor(), $0.baseAddress, $0.count, offset) }
    }

    /// Spreads the keys of so many buckets over twice as many.
    func double(from buckets: Int) {
        guard buckets > 0 else { return }
        var keys: [(hash: Int, number: Int)] = []
        for at in 0..<buckets {
            let bucket = read(off_t(at * Self.bucketBytes))
            for way in 0..<Self.ways where bucket.words[2 * way + 1] != 0 {
                keys.append(
                    (Int(truncatingIfNeeded: bucket.words[2 * way]), Int(truncatingIfNeeded: bucket.words[2 * way + 1]))
                )
            }
        }
        let empty = [UInt8](repeating: 0, count: Self.bucketBytes)
        for at in 0..<2 * buckets {
            _ = empty.withUnsafeBytes { pwrite(descriptor(), $0.baseAddress, $0.count, off_t(at * Self.bucketBytes)) }
        }
        for key in keys { insert(key.hash, number: key.number, buckets: 2 * buckets) }
    }
}
