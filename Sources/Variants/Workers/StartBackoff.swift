/// Exponential backoff for workers that fail to start: the pause doubles with each failure in a row, from 0.1 to 30
/// seconds.
struct StartBackoff: Hashable {
    /// Failures since the last start that worked.
    private(set) var failures = 0
    /// When the next start may be tried; monotonic seconds.
    private(set) var next = 0.0
    /// Why the last one failed.
    private(set) var reason: RenderError?

    /// Seconds still to wait; 0 if a start may be tried.
    func delay(now: Double) -> Double { max(0, next - now) }

    mutating func failed(_ reason: RenderError, now: Double) {
        failures += 1
        let pause = min(30, 0.1 * Double(1 << min(failures - 1, 10)))
        next = now + pause
        self.reason = reason
    }

    mutating func succeeded() { self = StartBackoff() }
}
