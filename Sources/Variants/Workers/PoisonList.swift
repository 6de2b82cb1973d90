/// Originals that ended a worker, remembered for a while so that each costs two workers at most and not many.
///
/// The first time only what was asked for is refused: a picture that is good may take too long, or too much memory, with
/// one recipe alone, and who asks for that recipe is not to take it from all others. An original that ends a worker with
/// a second recipe is refused whatever is asked for.
///
/// An original is known by its length and a hash keyed for this process. Hashing takes time, so it is done only where one
/// of equal length is remembered.
struct PoisonList {
    struct Fingerprint: Hashable {
        var count: Int
        var hash: Int

        init(_ bytes: UnsafeRawBufferPointer) {
            var hasher = Hasher()
            hasher.combine(bytes: bytes)
            count = bytes.count
            hash = hasher.finalize()
        }
    }

    /// What is known of one.
    struct Entry: Hashable {
        /// When it ended a worker, and until when it is not tried again; monotonic seconds.
        var since: Double
        var until: Double
        /// What happened, in words.
        var reason: String
        /// What it is not rendered to; nil for anything.
        var work: String?
    }

    private var entries: [Fingerprint: Entry] = [:]
    private let limit: Int

    /// `limit`: how many are remembered at most; the oldest goes.
    init(limit: Int = 1024) { self.limit = limit }

    var count: Int { entries.count }

    /// Whether one of this length is remembered: only then is a fingerprint worth its time.
    func mayContain(count: Int) -> Bool { entries.keys.contains { $0.count == count } }

    /// `work`: what it was to be rendered to.
    mutating func add(_ fingerprint: Fingerprint, work: String, reason: String, now: Double, seconds: Double) {
        guard seconds > 0, limit > 0 else { return }
        entries = entries.filter { $0.value.until > now }
        let known = entries[fingerprint]
        let isOther = known.map { $0.work != work } ?? false
        if known == nil, entries.count >= limit, let oldest = entries.min(by: { $0.value.since < $1.value.since })?.key
        {
            entries[oldest] = nil
        }
        entries[fingerprint] = Entry(since: now, until: now + seconds, reason: reason, work: isOther ? nil : work)
    }

    /// What is known of an original that is not to be tried now; nil where it may be.
    mutating func entry(_ fingerprint: Fingerprint, work: String, now: Double) -> Entry? {
        guard let entry = entries[fingerprint] else { return nil }
        if entry.until > now { return entry.work == nil || entry.work == work ? entry : nil }
        entries[fingerprint] = nil
        return nil
    }
}
