/// Remembers variants and originals that are not rendered for some time because they crashed a worker or exceeded a
/// deadline.
///
/// The phase of a failure (`RenderPhase`) determines what is quarantined. Any failure quarantines the variant: a valid
/// original may need too much time or memory for one recipe, and a client that requests that recipe must not make the
/// original unavailable to other clients. The original is quarantined if the decode pass crashed under two different
/// recipes. It is also quarantined if that pass exceeded a deadline once, unless its recipe was expected to take long.
///
/// An original is identified by its length and by a hash with a per-process key. Hashing takes time, so callers hash
/// only if `mayContain(count:)` is true.
struct Quarantine {
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

    struct Variant: Hashable {
        var recipe: String
        var output: ResolvedOutput
        var quality: RenderQuality
        var light: RenderLight
    }

    enum Failure: Hashable {
        /// The worker crashed or sent an invalid reply.
        case crash(RenderPhase)
        /// `isExpected` is true if the render was estimated to take about this long, which means that the recipe is the
        /// cause.
        case deadline(RenderPhase, isExpected: Bool = false)
    }

    struct Entry: Hashable {
        /// The times of the failure and of the end of the quarantine, in monotonic seconds.
        var since: Double
        var until: Double
        var failure: Failure
        /// The reason, as it appears in the log.
        var reason: String
    }

    private struct Key: Hashable {
        var original: Fingerprint
        /// The variant, or nil if the entry applies to all variants of the original.
        var variant: Variant?
    }

    private var entries: [Key: Entry] = [:]
    private let limit: Int

    /// - Parameter limit: the maximum number of remembered variants. When the limit is exceeded, the oldest variant is
    ///   removed.
    init(limit: Int = 1024) { self.limit = limit }

    var count: Int { entries.count }

    /// Whether an original with this length is remembered.
    func mayContain(count: Int) -> Bool {
        entries.keys.contains { $0.original.count == count }
    }

    mutating func add(
        _ original: Fingerprint, _ variant: Variant, _ failure: Failure, reason: String, now: Double, seconds: Double
    ) {
        guard seconds > 0, limit > 0 else { return }
        entries = entries.filter { $0.value.until > now }
        let entry = Entry(since: now, until: now + seconds, failure: failure, reason: reason)
        if failure == .deadline(.pixels)
            || failure == .crash(.pixels) && crashedInPixels(original, otherThan: variant)
        {
            entries[Key(original: original, variant: nil)] = entry
        }
        entries[Key(original: original, variant: variant)] = entry
        while entries.count > limit, let oldest = entries.min(by: { $0.value.since < $1.value.since })?.key {
            entries[oldest] = nil
        }
    }

    private func crashedInPixels(_ original: Fingerprint, otherThan variant: Variant) -> Bool {
        entries.contains {
            $0.key.original == original && $0.key.variant != variant && $0.value.failure == .crash(.pixels)
        }
    }

    /// Returns the entry that prevents a variant from being rendered at `now`. Returns nil if the variant can be
    /// rendered.
    func entry(_ original: Fingerprint, _ variant: Variant, now: Double) -> Entry? {
        [nil, variant].lazy.compactMap { entries[Key(original: original, variant: $0)] }.first { $0.until > now }
    }
}

extension RenderJob {
    var variant: Quarantine.Variant {
        Quarantine.Variant(recipe: recipe.description, output: output, quality: quality, light: light)
    }
}
