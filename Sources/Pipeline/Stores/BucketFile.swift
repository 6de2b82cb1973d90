import Glibc

/// A table beside the index in which an entry is found with one read: buckets of 128 bytes, of eight entries each.
///
/// An entry is two words, of which the second is 0 where there is none. Nothing of it is needed: what is lost, garbled or
/// cannot be read costs no more than a place in a queue, or bytes stored twice. So no call fails, and none waits for long.
class BucketFile {
    struct Bucket {
        var words = InlineArray<16, UInt64>(repeating: 0)
    }

    static let ways = 8
    static let bucketBytes = 128
    /// Words of a bucket.
    static let bucketWords = 2 * ways
    /// Buckets of a new table.
    static let leastBuckets = 256
    /// Buckets of the largest table.
    static let mostBuckets = 1 << 20

    /// Whether a table may have so many buckets.
    static func isSize(_ buckets: Int) -> Bool { buckets.nonzeroBitCount == 1 && buckets <= mostBuckets }

    private let path: String
    private var file: CInt = -1
    /// Buckets by the length of the file, as found since `forget`.
    private var size: Int?

    init(path: String) { self.path = path }

    deinit { if file >= 0 { close(file) } }

    /// What an entry's bucket follows from: its low bits.
    /// - Parameter bucket: where it lies now, with the right low bits.
    func hash(_ firstWord: UInt64, in bucket: Int) -> Int { preconditionFailure("a table says where its entries lie") }

    /// Lets go of the file; the next use opens what then lies at its place.
    final func detach() {
        if file >= 0 { close(file) }
        file = -1
        forget()
    }

    /// Lets go of what another process may have changed.
    func forget() { size = nil }

    /// Forgets all entries and gives their room back. It is the same file then, for others that have it open.
    final func empty() {
        forget()
        _ = ftruncate(descriptor(), 0)
    }

    /// Whether what lies at the place is known to be no file of ours. What fails for other reasons may be opened later.
    static func isNoFile(_ cause: CInt) -> Bool { [ELOOP, EISDIR, ENXIO, EACCES].contains(cause) }

    private func descriptor() -> CInt {
        if file >= 0 { return file }
        for _ in 0..<2 {
            file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0o600)
            if file >= 0 {
                var info = stat()
                let isKnown = fstat(file, &info) == 0
                if isKnown, BodyFiles.isOurs(info) { return file }
                detach()
                guard isKnown else { return -1 }
            } else if !Self.isNoFile(errno) {
                return -1
            }
            BodyFiles.delete(path)
        }
        return -1
    }

    /// Buckets by the length of the file: the largest power of two that fits; 0 when there are none.
    final var buckets: Int {
        if let size { return size }
        let found = bucketsByLength()
        size = found
        return found
    }

    private func bucketsByLength() -> Int {
        for _ in 0..<2 {
            var info = stat()
            guard fstat(descriptor(), &info) == 0 else { return 0 }
            if info.st_nlink == 0 {
                // Deleted: what others write now lies in another one.
                detach()
                continue
            }
            let whole = min(Int(info.st_size) / Self.bucketBytes, Self.mostBuckets)
            return whole < Self.leastBuckets ? 0 : 1 << (Int.bitWidth - 1 - whole.leadingZeroBitCount)
        }
        return 0
    }

    /// Makes an empty table.
    final func begin(_ buckets: Int = leastBuckets) {
        empty()
        _ = ftruncate(descriptor(), off_t(buckets * Self.bucketBytes))
    }

    /// Runs `body` while no other process does so too; nil where one does, and where there is no file. A process that is
    /// killed holds up nobody, and one that was stopped nobody for longer than this waits.
    final func locked<Result>(waiting milliseconds: Int, _ body: () -> Result) -> Result? {
        forget()
        // One that was deleted is opened anew.
        _ = buckets
        let held = descriptor()
        if held < 0 { return nil }
        var left = milliseconds
        while flock(held, LOCK_EX | LOCK_NB) != 0 {
            guard left > 0, errno == EWOULDBLOCK else { return nil }
            usleep(1_000)
            left -= 1
        }
        forget()
        defer {
            // Where it was deleted a moment ago it is closed already.
            if file == held { flock(held, LOCK_UN) }
            forget()
        }
        return body()
    }

    // MARK: Buckets

    /// One bucket; an empty one where it cannot be read.
    final func read(_ bucket: Int) -> Bucket {
        var found = Bucket()
        let count = withUnsafeMutableBytes(of: &found) {
            pread(descriptor(), $0.baseAddress, $0.count, off_t(bucket * Self.bucketBytes))
        }
        return count == Self.bucketBytes ? found : Bucket()
    }

    final func write(_ words: Bucket, at bucket: Int) {
        _ = withUnsafeBytes(of: words) {
            pwrite(descriptor(), $0.baseAddress, $0.count, off_t(bucket * Self.bucketBytes))
        }
    }

    /// Several buckets in a row; what lies beyond the end is empty.
    /// - Returns: false where they cannot be read.
    final func read(_ words: UnsafeMutableBufferPointer<UInt64>, from bucket: Int) -> Bool {
        let bytes = UnsafeMutableRawBufferPointer(words)
        let count = pread(descriptor(), bytes.baseAddress, bytes.count, off_t(bucket * Self.bucketBytes))
        if count < 0 { return false }
        bytes[count...].initializeMemory(as: UInt8.self, repeating: 0)
        return true
    }

    /// - Returns: false where not all of them were written.
    final func write(_ words: UnsafeMutableBufferPointer<UInt64>, from bucket: Int) -> Bool {
        let bytes = UnsafeRawBufferPointer(words)
        return pwrite(descriptor(), bytes.baseAddress, bytes.count, off_t(bucket * Self.bucketBytes)) == bytes.count
    }

    /// Buckets that are spread at a time.
    private static let spread = 512

    /// Spreads the entries of so many buckets over twice as many: those of one stay there or go into one so many further on.
    ///
    /// The file has its new length at the end, so that a kill leaves a table of the size before.
    /// - Returns: false where there was no room; what is left is a table of the size before.
    @discardableResult
    final func double(from buckets: Int) -> Bool {
        defer { forget() }
        // An attempt before this one may have left something there.
        guard ftruncate(descriptor(), off_t(buckets * Self.bucketBytes)) == 0 else { return false }
        let count = min(Self.spread, buckets)
        let lower = UnsafeMutableBufferPointer<UInt64>.allocate(capacity: count * Self.bucketWords)
        let upper = UnsafeMutableBufferPointer<UInt64>.allocate(capacity: count * Self.bucketWords)
        defer {
            lower.deallocate()
            upper.deallocate()
        }
        for start in stride(from: 0, to: buckets, by: count) {
            // What cannot be read stays where it is, and is lost.
            guard read(lower, from: start) else { continue }
            upper.initialize(repeating: 0)
            var hasMoved = false
            for bucket in 0..<count {
                let words = bucket * Self.bucketWords..<(bucket + 1) * Self.bucketWords
                if split(lower, upper, words, start + bucket, buckets) { hasMoved = true }
            }
            guard hasMoved else { continue }
            guard write(upper, from: start + buckets), write(lower, from: start) else { return false }
        }
        return ftruncate(descriptor(), off_t(2 * buckets * Self.bucketBytes)) == 0
    }

    /// Moves the entries of one bucket that belong further on.
    /// - Returns: whether there was one.
    private func split(
        _ lower: UnsafeMutableBufferPointer<UInt64>, _ upper: UnsafeMutableBufferPointer<UInt64>, _ words: Range<Int>,
        _ bucket: Int, _ buckets: Int
    ) -> Bool {
        var (stay, go) = (words.lowerBound, words.lowerBound)
        for at in stride(from: words.lowerBound, to: words.upperBound, by: 2) where lower[at + 1] != 0 {
            let entry = (lower[at], lower[at + 1])
            (lower[at], lower[at + 1]) = (0, 0)
            if hash(entry.0, in: bucket) & buckets == 0 {
                (lower[stay], lower[stay + 1]) = entry
                stay += 2
            } else {
                (upper[go], upper[go + 1]) = entry
                go += 2
            }
        }
        return go > words.lowerBound
    }
}
