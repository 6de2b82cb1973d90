/// Limits requests per second to each origin (the `fetch.rate` setting). Each origin has a token bucket that is
/// refilled evenly.
///
/// A bucket holds the tokens of one second, and at least one token. The type is a value that takes the time as a
/// parameter.
struct RateLimiter: Sendable {
    private struct Bucket {
        var tokens: Double
        var at: Double
    }

    private let rate: Double
    private let capacity: Double
    private var buckets: [String: Bucket] = [:]

    /// The maximum number of origins to remember. Beyond it, full buckets are dropped.
    static let maxOrigins = 4096

    /// - Parameter rate: the maximum number of requests per second. If 0, there is no limit.
    init(rate: Double) {
        self.rate = rate
        capacity = max(1, rate)
    }

    /// Returns the seconds until a request may be made, or 0 if a token is available. Does not take the token.
    func wait(_ origin: String, now: Double) -> Double {
        guard rate > 0 else { return 0 }
        let tokens = bucket(origin, now: now).tokens
        // Slightly less than a token counts as a token, because sums of fractions do not reach whole numbers exactly.
        return tokens >= 1 - 1e-9 ? 0 : (1 - tokens) / rate
    }

    /// Takes a token for a request at `now`, for which `wait` returned 0.
    mutating func take(_ origin: String, now: Double) {
        guard rate > 0 else { return }
        var bucket = bucket(origin, now: now)
        bucket.tokens -= 1
        buckets[origin] = bucket
        if buckets.count > Self.maxOrigins { forgetFull(now: now) }
    }

    private func bucket(_ origin: String, now: Double) -> Bucket {
        guard let bucket = buckets[origin] else { return Bucket(tokens: capacity, at: now) }
        return Bucket(tokens: min(capacity, bucket.tokens + max(0, now - bucket.at) * rate), at: now)
    }

    private mutating func forgetFull(now: Double) {
        let (rate, capacity) = (rate, capacity)
        buckets = buckets.filter { $0.value.tokens + (now - $0.value.at) * rate < capacity }
    }
}
