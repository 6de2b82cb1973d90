/// Uses of entries since their rows were written, beside the index: in it each use would change a page of its own.
///
/// An entry is 16 bytes: of the row's hash 32 bits, uses 8, the policy's clock at the last use as the upper 44 bits of a
/// number that is not negative, and when that was in 44 bits (`ticks`). The hash has 40 bits; the lowest eight follow
/// from the bucket. A use is that of a row while it is not older than the row's `touched`: where a row number is given
/// away again, and where uses have become part of the row, what was noted before counts no more. Processes add to it
/// one at a time under a lock of its own, and read it without; the index's write lock may be held meanwhile, never waited
/// for. Of a full bucket the entry used longest ago makes room.
final class UsesFile: BucketFile {
    /// A row of a tier.
    struct Key: Hashable {
        fileprivate let number: UInt64

        init(_ tier: DiskTier, _ row: Int) { number = UInt64(bitPattern: Int64(row)) << 2 | UInt64(tier.number) }

        /// 40 bits, spread evenly. Source: G. Steele, D. Lea, C. Flood: Fast Splittable Pseudorandom Number Generators.
        fileprivate var hash: Int {
            var word = number
            word = (word ^ word >> 30) &* 0xBF58_476D_1CE4_E5B9
            word = (word ^ word >> 27) &* 0x94D0_49BB_1331_11EB
            return Int((word ^ word >> 31) >> 24)
        }

        /// What tells it from others in its bucket.
        fileprivate var tag: UInt64 { UInt64(hash >> 8) }

        /// Where it lies in a table of so many buckets.
        func bucket(of buckets: Int) -> Int { hash & (buckets - 1) }
    }

    struct Use: Equatable {
        /// The policy's clock at the last use.
        var since = 0.0
        /// When that was: Unix seconds, rounded up to ticks, so that it is never before the row was written.
        var time = 0.0
        /// Saturating at 255.
        var uses: UInt8 = 0

        init() {}

        init(since: Double, now: Double, uses: UInt8 = 1) {
            self.since = since
            self.uses = uses
            time = (now * UsesFile.ticks).rounded(.up) / UsesFile.ticks
        }

        mutating func add(_ other: Use) {
            since = max(since, other.since)
            time = max(time, other.time)
            uses = UInt8(clamping: Int(uses) + Int(other.uses))
        }
    }

    /// A use to be noted, and when its row was written last: what was noted before is no use of it.
    struct Note {
        var use = Use()
        var written = 0.0

        mutating func add(_ other: Note) {
            if use.time < other.written { use = other.use } else { use.add(other.use) }
            written = max(written, other.written)
        }
    }

    /// Parts of a second in which times are kept.
    private static let ticks = 4096.0
    /// Seconds by which another process's clock may be ahead; what is further ahead is garbage.
    private static let ahead = 60.0
    /// Notes of so many buckets are written at once, and those between them that lie no further apart.
    private static let (longestRun, widestGap) = (256, 32)

    override func hash(_ firstWord: UInt64, in bucket: Int) -> Int { Int(firstWord >> 32) << 8 | bucket & 255 }

    // MARK: Entries

    private static let mask: UInt64 = 0xFFF_FFFF_FFFF

    /// The two words of an entry.
    private static func words(_ tag: UInt64, _ use: Use) -> (UInt64, UInt64) {
        let since = (max(0, use.since).bitPattern >> 19) & mask
        let time = UInt64(max(0, min(use.time * ticks, Double(mask))))
        return (tag << 32 | UInt64(use.uses) << 24 | since >> 20, since << 44 | time)
    }

    /// What two words say; nil for what nobody has written.
    private static func use(_ first: UInt64, _ second: UInt64, now: Double) -> Use? {
        var use = Use()
        use.uses = UInt8(truncatingIfNeeded: first >> 24)
        use.since = Double(bitPattern: ((first & 0xFF_FFFF) << 20 | second >> 44) << 19)
        use.time = Double(second & mask) / ticks
        guard use.uses > 0, use.since.isFinite, use.time > 0, use.time <= now + ahead else { return nil }
        return use
    }

    /// The uses of a row as processes have written them; nil when there are none.
    ///
    /// - Parameter looks: whether to ask for the file's length anew. Another process may have made the table larger since
    ///   somebody did: uses that it has moved are not found then.
    func use(of key: Key, now: Double, looks: Bool = true) -> Use? {
        if looks { forget() }
        let buckets = buckets
        guard buckets > 0 else { return nil }
        let bucket = read(key.bucket(of: buckets))
        for way in 0..<Self.ways where bucket.words[2 * way] >> 32 == key.tag {
            if let use = Self.use(bucket.words[2 * way], bucket.words[2 * way + 1], now: now) { return use }
        }
        return nil
    }

    // MARK: Changing

    /// Adds uses to what is there; quickest where they come in the order of their buckets.
    ///
    /// - Parameters:
    ///   - entries: rows of all tiers: the table gets room for twice as many.
    ///   - waiting: milliseconds to wait at most while another process does the same.
    /// - Returns: how many of them were written, from the first.
    func add(_ notes: [(key: Key, note: Note)], entries: Int, now: Double, waiting: Int = 0) -> Int {
        if notes.isEmpty { return 0 }
        return locked(waiting: waiting) {
            let buckets = grown(for: entries)
            guard buckets > 0 else { return 0 }
            var done = 0
            while done < notes.count {
                let first = notes[done].key.bucket(of: buckets)
                var (last, end) = (first, done + 1)
                while end < notes.count {
                    let next = notes[end].key.bucket(of: buckets)
                    guard next >= last, next <= last + Self.widestGap, next < first + Self.longestRun else { break }
                    (last, end) = (next, end + 1)
                }
                guard add(notes[done..<end], from: first, count: last - first + 1, of: buckets, now) else { break }
                done = end
            }
            return done
        } ?? 0
    }

    private func add(
        _ notes: ArraySlice<(key: Key, note: Note)>, from first: Int, count: Int, of buckets: Int, _ now: Double
    ) -> Bool {
        withUnsafeTemporaryAllocation(of: UInt64.self, capacity: count * Self.bucketWords) { words in
            guard read(words, from: first) else { return false }
            for (key, note) in notes {
                let start = (key.bucket(of: buckets) - first) * Self.bucketWords
                Self.add(note, key.tag, to: words, at: start..<start + Self.bucketWords, now)
            }
            return write(words, from: first)
        }
    }

    private static func add(
        _ note: Note, _ tag: UInt64, to words: UnsafeMutableBufferPointer<UInt64>, at bucket: Range<Int>, _ now: Double
    ) {
        var use = note.use
        var place = bucket.lowerBound
        var oldest = Double.infinity
        for at in stride(from: bucket.lowerBound, to: bucket.upperBound, by: 2) {
            let found = Self.use(words[at], words[at + 1], now: now)
            if let found, words[at] >> 32 == tag {
                if found.time >= note.written { use.add(found) }
                place = at
                break
            }
            let time = found?.time ?? -1
            if time < oldest { (place, oldest) = (at, time) }
        }
        (words[place], words[place + 1]) = Self.words(tag, use)
    }

    /// Takes out uses that rows have by now; those noted since stay.
    func take(_ uses: [Key: Use], now: Double) {
        if uses.isEmpty { return }
        // Where another process is at it just now they count twice, once.
        _ = locked(waiting: 0) {
            let buckets = buckets
            guard buckets > 0 else { return }
            for (key, use) in uses {
                let place = key.bucket(of: buckets)
                var bucket = read(place)
                for way in 0..<Self.ways where bucket.words[2 * way] >> 32 == key.tag {
                    let words = (bucket.words[2 * way], bucket.words[2 * way + 1])
                    guard var left = Self.use(words.0, words.1, now: now) else { continue }
                    let isUsedSince = left.time > use.time
                    left.uses = left.uses > use.uses ? left.uses - use.uses : 1
                    let after = isUsedSince ? Self.words(key.tag, left) : (0, 0)
                    (bucket.words[2 * way], bucket.words[2 * way + 1]) = after
                    write(bucket, at: place)
                    break
                }
            }
        }
    }

    /// Makes the table large enough for so many rows, half full at most.
    /// - Returns: how many buckets it has; 0 where it cannot be written.
    private func grown(for entries: Int) -> Int {
        var wanted = Self.leastBuckets
        while entries > 4 * wanted, wanted < Self.mostBuckets { wanted *= 2 }
        if buckets == 0 {
            begin(wanted)
            return buckets
        }
        while buckets < wanted {
            guard double(from: buckets) else { break }
        }
        return buckets
    }
}
