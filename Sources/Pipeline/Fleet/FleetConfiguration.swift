package import PipelineFleet

/// How the machines of a fleet, each with caches of its own, learn of each other's purges: through a stream on a Redis server,
/// which keeps them for machines that are away (docs/fleet.md).
public struct FleetConfiguration: Sendable, Hashable {
    /// What is wrong with the URL of a server.
    public struct InvalidURL: Error, Sendable, Hashable, CustomStringConvertible {
        public let description: String
    }

    package let redis: RedisURL
    /// The server, without user and password.
    public var server: String { redis.description }
    /// Seconds for which a machine relies on what it knows of purges: one that was stopped, or has only begun, asks before it
    /// answers with anything stored. Default 2.
    public var seconds = 2.0

    /// - Parameter redis: `redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE]`, or `rediss://…` for TLS, whose certificate the
    ///   authorities of `FetchConfiguration` vouch for. Each fleet needs a database of its own.
    public init(redis: String) throws(InvalidURL) {
        do throws(RedisURL.Problem) { self.redis = try RedisURL(redis) } catch {
            throw InvalidURL(description: error.description)
        }
    }
}

/// How a machine of a fleet is doing.
public struct FleetStatus: Sendable, Hashable {
    /// Whether it hears of the others' purges. If not, it goes on with what it has stored, and carries out what it missed
    /// once it hears again.
    public internal(set) var isConnected = false
    /// The number of the last purge of the fleet that it has carried out; nil before it knows any.
    public internal(set) var number: Int?
    /// Purges that this machine has yet to publish.
    public internal(set) var waiting = 0
    /// Its own purges that were told.
    public internal(set) var told = 0
    /// Purges by others that it has carried out.
    public internal(set) var heard = 0
    /// How often purges may have been missed, so that every record was validated again.
    public internal(set) var losses = 0
}
