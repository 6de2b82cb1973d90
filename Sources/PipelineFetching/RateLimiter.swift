/// Limits requests per second to one origin (setting `fetch.rate`): a token bucket for each, refilled evenly.
///
/// A bucket holds one second's worth, at least one token. A value type that takes the time as a parameter.
struct RateLimiter: Sendable {
    private struct Bucket {
        var tokens: Double
        var at: Double
    }

    private let rate: Double
    private let capacity: Double
    private var buckets: [String: Bucket] = [:]

    /// Origins remembered; beyond them, full buckets are forgotten.
    static let mostOrigins = 4096

    /// - Parameter rate: requests per second; 0 for no limit.
    init(rate: Double) {
        self.rate = rate
        capacity = max(1, rate)
    }

    /// Takes a token for a request at `now`. Returns 0 if there was one, else the seconds until there will be.
    mutating func take(_ origin: String, now: Double) -> Double {
        guard rate > 0 else { return 0 }
        var bucket = buckets[origin] ?? Bucket(tokens: capacity, at: now)
        bucket.tokens = min(capacity, bucket.tokens + max(0, now - bucket.at) * rate)
        bucket.at = now
        // Slightly less than a token counts as one: sums of fractions do not reach whole numbers exactly.
        let isThere = bucket.tokens >= 1 - 1e-9
        if isThere { bucket.tokens -= 1 }
        buckets[origin] = bucket
        if buckets.count > Self.mostOrigins { forgetFull(now: now) }
        return isThere ? 0 : (1 - bucket.tokens) / rate
    }

    private mutating func forgetFull(now: Double) {
        let (rate, capacity) = (rate, capacity)
        buckets = buckets.filter { $0.value.tokens + (now - $0.value.at) * rate < capacity }
    }
}
