import Pipeline
import PipelineFetching
import Synchronization

/// How many requests that miss the caches each client may make: a bucket of tokens for each, filled at a steady rate.
///
/// At most `2 × limit` clients are remembered: recent ones, and those before them, which are forgotten when there are
/// `limit` recent ones. A client that is forgotten begins with a full bucket, as one that has been away does.
public final class RateLimit: Sendable {
    private struct Bucket {
        var tokens: Double
        /// Unix seconds.
        var filled: Double
    }

    private struct State {
        var recent: [String: Bucket] = [:]
        var former: [String: Bucket] = [:]
    }

    /// Requests a second.
    public let rate: Double
    private let capacity: Double
    private let limit: Int
    private let state = Mutex(State())

    /// What a client may use at once after a pause, in seconds of its rate: a page full of pictures comes in one go.
    private static let burstSeconds = 10.0

    /// - Parameters:
    ///   - rate: requests a second, above 0.
    ///   - limit: recent clients that are remembered.
    public init(rate: Double, limit: Int = 32_768) {
        self.rate = rate
        self.limit = limit
        capacity = max(1, rate * Self.burstSeconds)
    }

    /// Takes a token of a client.
    ///
    /// - Parameters:
    ///   - client: its address. Clients without one share a bucket, and so does a network of IPv6 addresses.
    ///   - now: Unix seconds.
    /// - Returns: nil if the request may go on; else the whole seconds after which another may.
    func take(_ client: String?, now: Double) -> Int? {
        let name = Self.network(client ?? "")
        return state.withLock { state in
            var bucket = state.recent[name] ?? state.former[name] ?? Bucket(tokens: capacity, filled: now)
            // A clock that was set back fills nothing.
            bucket.tokens = min(capacity, bucket.tokens + max(0, now - bucket.filled) * rate)
            bucket.filled = now
            let isAllowed = bucket.tokens >= 1
            if isAllowed { bucket.tokens -= 1 }
            if state.recent.count >= limit, state.recent[name] == nil {
                state.former = state.recent
                state.recent = [:]
            }
            state.recent[name] = bucket
            return isAllowed ? nil : max(1, Int(min(((1 - bucket.tokens) / rate).rounded(.up), 86_400)))
        }
    }

    /// Clients that are remembered.
    var count: Int { state.withLock { $0.recent.count + $0.former.count } }

    /// The first 64 bits of an IPv6 address, which are one customer's network (RFC 6177); another text as it is.
    package static func network(_ address: String) -> String {
        let address = IPAddress.plain(address)
        guard address.utf8.contains(UInt8(ascii: ":")) else { return address }
        let plain = address.prefix { $0 != "%" }
        if plain.utf8.contains(UInt8(ascii: ".")) { return String(plain) }
        let halves = plain.split(separator: "::", maxSplits: 1, omittingEmptySubsequences: false)
        var groups = halves[0].split(separator: ":").map(String.init)
        if halves.count == 2 {
            let tail = halves[1].split(separator: ":").map(String.init)
            groups += Array(repeating: "0", count: max(0, 8 - groups.count - tail.count)) + tail
        }
        return groups.prefix(4).map { String($0.drop { $0 == "0" }) }.joined(separator: ":")
    }
}

extension RateLimit {
    /// The limit as one request meets it.
    func gate(_ client: String?, _ now: @escaping @Sendable () -> Double) -> WorkGate {
        WorkGate { () throws(PipelineError) in
            guard let seconds = self.take(client, now: now()) else { return }
            var error = PipelineError(
                .rateLimited, "try again in \(seconds) s; what is cached is served without a limit")
            error.retryAfter = seconds
            throw error
        }
    }
}
