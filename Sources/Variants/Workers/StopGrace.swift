/// How long a worker that was told to stop has before it is killed, which costs the start of another one.
///
/// A worker that stops by itself does so within some milliseconds of CPU time. On a busy machine it may take long to
/// get them, and killing it then would make the machine busier. So a worker that has not had them is given more time,
/// but not for ever, because it may be blocked.
struct StopGrace: Hashable {
    /// Seconds after which the worker is first checked.
    static let seconds = 0.010
    /// The same if it is in an encoder that does not poll for stops; one that is not encoding yet stops in less.
    static let deafSeconds = 0.004
    /// Seconds of CPU time that suffice to stop, most of them to free large pictures' memory; starting another worker
    /// would take as much.
    static let cpuSeconds = 0.030
    /// Seconds after which the worker is killed in any case.
    static let longest = 0.1

    /// When the worker was told to stop; monotonic seconds.
    let since: Double
    /// The CPU seconds it had used by then; negative if unknown.
    let cpu: Double
    /// Whether its encoder polls for stops.
    let heeds: Bool

    /// - Parameter cpu: the CPU seconds that the worker has used in its life; negative if unknown.
    init(now: Double, cpu: Double, heeds: Bool) {
        since = now
        self.cpu = cpu
        self.heeds = heeds
    }

    /// When the worker is first checked.
    var firstLook: Double { since + (heeds ? Self.seconds : Self.deafSeconds) }

    /// When to kill the worker, as far as known at this check: `now` itself, or when to check again.
    func killTime(now: Double, cpu: Double) -> Double {
        let last = since + Self.longest
        let isKnown = cpu >= 0 && self.cpu >= 0
        guard heeds, isKnown, cpu - self.cpu < Self.cpuSeconds, now < last else { return now }
        return min(now + 0.002, last)
    }
}

extension ResolvedOutput {
    /// Whether its encoder polls for stops every few milliseconds.
    var heedsStops: Bool { format.encoder?.heedsStops(self) ?? false }
}
