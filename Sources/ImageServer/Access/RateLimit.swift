import Pipeline
import PipelineFetching
import Synchronization

/// Limits the rate at which each client may send requests that miss the caches (`ServerConfiguration.rate`). Beyond the
/// limit, the site responds with 429.
///
/// ```swift
/// var configuration = ServerConfiguration()
/// configuration.rate = RateLimit(rate: 20)  // Requests per second, with bursts of 200.
/// ```
///
/// Each client has a token bucket that is refilled at a steady rate. A `RateLimit` remembers at most `2 × limit`
/// clients, in two generations. Once there are `limit` recent clients, they become the older generation, and the
/// previous older generation is forgotten. A forgotten client starts with a full bucket.
public final class RateLimit: Sendable {
    private struct Bucket {
        var tokens: Double
        /// When tokens were last added, in Unix seconds.
        var filled: Double
    }

    private struct State {
        var recent: [String: Bucket] = [:]
        var former: [String: Bucket] = [:]
    }

    /// The rate for each client, in requests per second.
    public let rate: Double
    private let capacity: Double
    private let limit: Int
    private let state = Mutex(State())

    /// The size of a burst after a pause, in seconds of the client's rate. A page requests all of its pictures at the
    /// same time.
    private static let burstSeconds = 10.0

    /// - Parameters:
    ///   - rate: The rate for each client, in requests per second. Must be greater than 0.
    ///   - limit: The maximum number of recent clients that are remembered. Defaults to 32,768.
    public init(rate: Double, limit: Int = 32_768) {
        self.rate = rate
        self.limit = limit
        capacity = max(1, rate * Self.burstSeconds)
    }

    /// Takes a token from a client's bucket.
    ///
    /// - Parameters:
    ///   - client: The client's address. Clients without an address share a bucket, and so do the addresses of one IPv6
    ///     network.
    ///   - now: The current time, in Unix seconds.
    /// - Returns: The number of whole seconds after which the client may retry, or nil if the request may proceed.
    func take(_ client: String?, now: Double) -> Int? {
        let name = Self.network(client ?? "")
        return state.withLock { state in
            var bucket = state.recent[name] ?? state.former[name] ?? Bucket(tokens: capacity, filled: now)
            // If the clock was set back, the bucket is not refilled.
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

    /// The number of clients that are remembered.
    var count: Int { state.withLock { $0.recent.count + $0.former.count } }

    /// Returns the first 64 bits of an IPv6 address, which identify a customer's network (RFC 6177). Returns any other
    /// string unchanged.
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
    /// Returns a gate that applies this limit to a request of `client`.
    func gate(_ client: String?, _ now: @escaping @Sendable () -> Double) -> WorkGate {
        WorkGate { () throws(PipelineError) in try self.check(client, now: now()) }
    }

    /// Takes a token. Throws `rateLimited` if the bucket is empty.
    func check(_ client: String?, now: Double) throws(PipelineError) {
        guard let seconds = take(client, now: now) else { return }
        var error = PipelineError(
            .rateLimited,
            "this client has requested too many new pictures; try again in \(seconds) s (cached pictures are not limited)"
        )
        error.retryAfter = .seconds(seconds)
        throw error
    }
}
