/// The time that a worker is given to stop before it is killed. If a worker is killed, a new one must be started.
///
/// Stopping takes a few milliseconds of CPU time. On a busy machine, a worker may wait a long time for the CPU, and
/// killing it would make the machine even busier. Such a worker is therefore given more time. The time is limited
/// because the worker may be blocked.
struct StopGrace: Hashable {
    /// The number of seconds after which the worker is first checked.
    static let seconds = 0.010
    /// The number of seconds after which a worker is killed if its encoder does not check for stop requests. This is
    /// long enough, because a worker that is not encoding yet stops sooner.
    static let deafSeconds = 0.004
    /// The CPU time, in seconds, that is sufficient for stopping. Most of this time is spent on freeing the memory of
    /// large pictures. Starting a new worker would take equally long.
    static let cpuSeconds = 0.030
    /// The number of seconds after which the worker is always killed.
    static let longest = 0.1

    /// The time at which the worker was asked to stop, in monotonic seconds.
    let since: Double
    /// The CPU seconds that the worker had used at that time, or a negative number if this is unknown.
    let cpu: Double
    /// Whether the encoder checks for stop requests.
    let heeds: Bool

    /// - Parameter cpu: the CPU seconds that the worker has used in total, or a negative number if this is unknown.
    init(now: Double, cpu: Double, heeds: Bool) {
        since = now
        self.cpu = cpu
        self.heeds = heeds
    }

    /// The time of the first check.
    var firstLook: Double { since + (heeds ? Self.seconds : Self.deafSeconds) }

    /// Returns `now` if the worker must be killed immediately. Otherwise, returns the time of the next check.
    func killTime(now: Double, cpu: Double) -> Double {
        let last = since + Self.longest
        let isKnown = cpu >= 0 && self.cpu >= 0
        guard heeds, isKnown, cpu - self.cpu < Self.cpuSeconds, now < last else { return now }
        return min(now + 0.002, last)
    }
}

extension ResolvedOutput {
    /// Whether the encoder checks for stop requests every few milliseconds.
    var heedsStops: Bool { format.encoder?.heedsStops(self) ?? false }
}
