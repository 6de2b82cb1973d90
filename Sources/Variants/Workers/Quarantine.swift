/// Variants and originals that are not rendered for a while because they crashed a worker or passed a deadline.
///
/// What a failure is blamed on depends on the phase it happened in (`RenderPhase`). Any failure quarantines the
/// variant: a good original may need too much time or memory for one recipe, and a client that requests that recipe
/// must not make the original unavailable to all others. The original is quarantined by crashes of the decode pass under
/// two different recipes, and by one passed deadline of that pass, unless its recipe was expected to take long.
///
/// An original is identified by its length and a hash keyed for this process. Hashing takes time, so callers hash only
/// if `mayContain(count:)` is true.
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
        /// The worker died, or its answer was invalid.
        case crash(RenderPhase)
        /// `isExpected`: by its estimate the render takes about that long, so its recipe is the reason.
        case deadline(RenderPhase, isExpected: Bool = false)
    }

    struct Entry: Hashable {
        /// When it failed, and until when it is not tried again; monotonic seconds.
        var since: Double
        var until: Double
        var failure: Failure
        /// What happened, as logged.
        var reason: String
    }

    private struct Key: Hashable {
        var original: Fingerprint
        /// nil for all variants of the original.
        var variant: Variant?
    }

    private var entries: [Key: Entry] = [:]
    private let limit: Int

    /// - Parameter limit: the most variants that are remembered; beyond that, the oldest is forgotten.
    init(limit: Int = 1024) { self.limit = limit }

    var count: Int { entries.count }

    /// Whether an original of this length is remembered.
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

    /// Why a variant of an original is not rendered at `now`; nil if it may be.
    func entry(_ original: Fingerprint, _ variant: Variant, now: Double) -> Entry? {
        [nil, variant].lazy.compactMap { entries[Key(original: original, variant: $0)] }.first { $0.until > now }
    }
}

extension RenderJob {
    var variant: Quarantine.Variant {
        Quarantine.Variant(recipe: recipe.description, output: output, quality: quality, light: light)
    }
}
