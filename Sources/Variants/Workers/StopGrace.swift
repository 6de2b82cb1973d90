/// How long a worker that was told to stop is waited for before it is killed, which costs the start of another one.
///
/// What stops by itself does so within some milliseconds of processor time. On a busy machine those may take long to come,
/// and killing then would make it busier; so one that has not had them is given more time, but not for ever, as it may be
/// waiting for what never comes.
struct StopGrace: Hashable {
    /// Seconds after which it is first looked at.
    static let seconds = 0.010
    /// The same where it is in an encoder that does not ask whether to stop; before that, it stops in less.
    static let deafSeconds = 0.004
    /// Seconds of processor time that suffice, most of them to give back large pictures' memory; another worker's start would
    /// take as much.
    static let cpuSeconds = 0.030
    /// Seconds after which it is killed in any case.
    static let longest = 0.1

    /// When it was told; monotonic seconds.
    let since: Double
    /// What it had used by then.
    let cpu: Double
    /// Whether its encoder asks.
    let heeds: Bool

    /// `cpu`: seconds of processor time used in its life; negative where that is not known.
    init(now: Double, cpu: Double, heeds: Bool) {
        since = now
        self.cpu = cpu
        self.heeds = heeds
    }

    /// When it is first looked at.
    var firstLook: Double { since + (heeds ? Self.seconds : Self.deafSeconds) }

    /// When it is to be killed, as far as is known at a look: `now` itself, or when to look again.
    func killTime(now: Double, cpu: Double) -> Double {
        let last = since + Self.longest
        let isKnown = cpu >= 0 && self.cpu >= 0
        guard heeds, isKnown, cpu - self.cpu < Self.cpuSeconds, now < last else { return now }
        return min(now + 0.002, last)
    }
}

extension ResolvedOutput {
    /// Whether its encoder asks every few milliseconds whether to stop: the savers that write as they go (progressive JPEG once
    /// a scan), and libwebp, which hardly does without loss.
    var heedsStops: Bool {
        switch format {
        case .jpeg, .png: true
        case .webp: !isLossless
        default: false
        }
    }
}
