package import PipelineFleet
public import PipelineSupport

/// Connects machines with separate caches, so that each machine applies the purges of the others
/// (`PipelineConfiguration.fleet`; docs/fleet.md).
///
/// ```swift
/// var configuration = PipelineConfiguration(cacheFolder: "/var/cache/my-app")
/// configuration.fleet = try FleetConfiguration(redis: "rediss://cache:secret@redis.example.org")
/// let pipeline = try ImagePipeline(configuration)
/// try await pipeline.purge(.source("https://example.org/photo.jpg"))  // On all machines.
/// ```
///
/// The machines share a stream on a Redis server, which keeps purges for machines that are temporarily disconnected.
public struct FleetConfiguration: Sendable, Hashable {
    package let redis: RedisURL
    /// The server URL, without a user name or password.
    public var server: String { redis.description }
    /// How long a machine may serve stored entries after it last read the stream of purges. A machine that was
    /// suspended, or has just started, reads the stream before it serves stored entries. Defaults to 2 s.
    public var trustPeriod = Duration.seconds(2)

    /// - Parameter redis: `redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE]`, or `rediss://…` for TLS. The server's
    ///   certificate must be issued by an authority that `FetchConfiguration` trusts. Each fleet needs its own
    ///   database.
    public init(redis: String) throws(InvalidSetting) {
        do throws(RedisURL.Problem) { self.redis = try RedisURL(redis) } catch {
            throw InvalidSetting(error.description)
        }
    }
}

/// Reports whether this machine receives the purges of the other machines in its fleet. Read it from
/// `ImagePipeline.fleetStatus`.
public struct FleetStatus: Sendable, Hashable {
    /// Whether the machine is receiving purges from other machines. While it is not, it validates stored entries before
    /// serving them. It applies missed purges after it has reconnected.
    public internal(set) var isConnected = false
    /// The number of the last purge in the stream that this machine has applied, or nil until a purge is known.
    public internal(set) var number: Int?
    /// The number of purges that this machine has not published yet. The cache folder keeps them.
    public internal(set) var waiting = 0
    /// The number of purges that this machine has published.
    public internal(set) var published = 0
    /// The number of purges from other machines that this machine has applied.
    public internal(set) var applied = 0
    /// The number of times that purges may have been missed. Each time, all records had to be validated again.
    public internal(set) var losses = 0
}
