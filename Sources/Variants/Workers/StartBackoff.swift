/// An exponential backoff for workers that fail to start. The delay doubles with each consecutive failure, from 0.1 to
/// 30 seconds.
struct StartBackoff: Hashable {
    /// The number of failures since the last successful start.
    private(set) var failures = 0
    /// The earliest time of the next attempt, in monotonic seconds.
    private(set) var next = 0.0
    /// The error of the last failure.
    private(set) var reason: RenderError?

    /// Returns the remaining delay in seconds. 0 if a start may be attempted.
    func delay(now: Double) -> Double { max(0, next - now) }

    mutating func failed(_ reason: RenderError, now: Double) {
        failures += 1
        let pause = min(30, 0.1 * Double(1 << min(failures - 1, 10)))
        next = now + pause
        self.reason = reason
    }

    mutating func succeeded() { self = StartBackoff() }
}
