import PipelineSupport
import HTTPCaching

/// A response to one request, before redirects are followed.
struct RawResponse: Sendable {
    var status: Int
    var fields: [HeaderField]
    var body: BodyCollector
    var requestTime: Double
    var responseTime: Double
}

/// The parameters of one hop of a fetch.
struct TransferRequest: Sendable {
    var url: SourceURL
    var method = "GET"
    var body: [UInt8] = []
    /// Lines `Name: value`, checked for control characters, each terminated by a NUL.
    var lines: [[UInt8]]
    var expectsPart: Bool
    var byteLimit: Int
    /// Seconds left of the fetch when the hop starts.
    var totalSeconds: Double
    var onProgress: (@Sendable (_ received: Int, _ expected: Int?) -> Void)?
    /// Whether redirects are followed, so that their bodies are not needed.
    var followsRedirects = true
    /// Whether a long body may stay in its file.
    var acceptsFile = false
    /// Called with interim responses.
    var onInterim: InterimObserver?
    /// The part of the response at `url` that an earlier attempt received.
    var resuming: PartialResponse?
    /// The settings for this origin, if there are any.
    var host: HostSettings?
    /// The credentials that sign the request.
    var signature: RequestSignature?
    /// Whether the host may have a private address.
    var isTrusted = false
    /// Whether it may be sent twice, and so over a connection that is reused.
    var isRepeatable = false
    var hooks = TransportHooks()
}

/// Replacements for the outside world, for tests.
package struct TransportHooks: Sendable {
    /// Called before each request for the addresses of a host; nil leaves the host to the resolver.
    package var addresses: @Sendable (_ host: String, _ port: Int) -> [String]? = { _, _ in nil }
    /// Called with each address that the rule has admitted, just before connecting; false prevents the connection.
    package var dials: @Sendable (_ address: IPAddress, _ port: Int) -> Bool = { _, _ in true }
    /// Called before each write of a part of a body to a file.
    package var beforeSpooling: @Sendable () -> Void = {}
    /// The clock of the circuit breaker, in seconds.
    package var now: @Sendable () -> Double = { SystemClock.monotonic.seconds }

    package init() {}
}

/// Settings shared by all transfers of a transport; one reference, since they contain many strings and lists.
final class TransferSettings: Sendable {
    let configuration: FetchConfiguration
    let addresses: AddressPolicy

    init(_ configuration: FetchConfiguration) {
        self.configuration = configuration
        addresses = AddressPolicy(configuration.allowPrivateAddresses)
    }
}
