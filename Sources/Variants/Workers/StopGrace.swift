/// How long a worker that was told to stop is waited for before it is killed, which costs the start of another one.
///
/// What stops by itself does so within a few milliseconds of processor time. On a busy machine those may take long to come,
/// and killing then would make it busier; so one that has not had them is given more time, but not for ever, as it may be
/// waiting for what never comes.
struct StopGrace: Hashable {
    /// Seconds after which it is first looked at.
    static let seconds = 0.015
    /// Seconds of processor time that suffice.
    static let cpuSeconds = 0.010
    /// Seconds after which it is killed in any case.
    static let longest = 0.1

    /// When it was told; monotonic seconds.
    let since: Double
    /// What it had used by then.
    let cpu: Double

    /// `cpu`: seconds of processor time used in its life; negative where that is not known.
    init(now: Double, cpu: Double) {
        since = now
        self.cpu = cpu
    }

    /// When it is to be killed, as far as is known now: `now` itself, or when to look again.
    func killTime(now: Double, cpu: Double) -> Double {
        let isKnown = cpu >= 0 && self.cpu >= 0
        guard isKnown, cpu - self.cpu < Self.cpuSeconds, now < since + Self.longest else { return now }
        return min(now + Self.seconds / 5, since + Self.longest)
    }
}
