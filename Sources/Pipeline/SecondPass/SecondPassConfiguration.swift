/// Configures the second pass: variants of an `auto` output that are requested often are encoded again, with more effort
/// and possibly in a different format that the clients accept (`RenderingConfiguration.secondPass`).
///
/// ```swift
/// var configuration = PipelineConfiguration()
/// configuration.rendering.isolation = .workers(WorkerConfiguration())
/// configuration.rendering.secondPass.cpuShare = 0.5
/// configuration.rendering.secondPass.maxAge = .seconds(300)
/// ```
///
/// A second pass begins while no render is in progress, and its worker runs only on idle processors. The score
/// (SSIMULACRA2) of the first version is never lowered. The second pass requires render workers and the memory tier for
/// variants.
public struct SecondPassConfiguration: Sendable, Hashable {
    /// The share of one processor that second passes may use, averaged over a minute. Defaults to 0.25. If 0, there is
    /// no second pass.
    public var cpuShare = 0.25
    /// The number of requests after which a variant is encoded again, 1…255. If nil, which is the default, this is the
    /// number at which as many further requests would save 100 kB for each second of CPU time.
    public var requests: Int?
    /// The maximum `max-age` of responses that contain a first version. Defaults to 10 minutes.
    public var maxAge = Duration.seconds(600)
    /// The time between two checks, or nil if only `ImagePipeline.makeSecondPasses()` begins second passes.
    package var interval: Duration? = .seconds(1)

    /// Creates a configuration with the defaults.
    public init() {}
}
