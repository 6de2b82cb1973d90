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
    /// Header lines in the form `Name: value`, checked for control characters and terminated by NUL.
    var lines: [[UInt8]]
    var expectsPart: Bool
    var byteLimit: Int
    /// The seconds left for the fetch when the hop starts.
    var totalSeconds: Double
    var onProgress: (@Sendable (_ received: Int, _ expected: Int?) -> Void)?
    /// Whether redirects are followed. The body of a followed redirect is not needed.
    var followsRedirects = true
    /// Whether a long body may stay in its file.
    var acceptsFile = false
    /// Called with interim responses.
    var onInterim: InterimObserver?
    /// The part of the response at `url` that an earlier attempt received.
    var resuming: PartialResponse?
    /// The settings for this origin, if any.
    var host: HostSettings?
    /// The credentials that sign the request.
    var signature: RequestSignature?
    /// Whether the host may have a private address.
    var isTrusted = false
    /// Whether the request may be sent twice, and so over a reused connection.
    var isRepeatable = false
    var hooks = TransportHooks()
}

/// Replacements for the network and the clock, for tests.
package struct TransportHooks: Sendable {
    /// Called before each request for the addresses of a host. If nil is returned, the resolver looks the host up.
    package var addresses: @Sendable (_ host: String, _ port: Int) -> [String]? = { _, _ in nil }
    /// Called with each address that the rule has allowed, just before connecting. Returns false to prevent the
    /// connection.
    package var dials: @Sendable (_ address: IPAddress, _ port: Int) -> Bool = { _, _ in true }
    /// Called before each write of a part of a body to a file.
    package var beforeSpooling: @Sendable () -> Void = {}
    /// The clock of the circuit breaker, in seconds.
    package var now: @Sendable () -> Double = { SystemClock.monotonic.seconds }

    package init() {}
}

/// The settings shared by all transfers of a transport. A class, because the settings contain many strings and arrays
/// that would otherwise be copied.
final class TransferSettings: Sendable {
    let configuration: FetchConfiguration
    let addresses: AddressPolicy

    init(_ configuration: FetchConfiguration) {
        self.configuration = configuration
        addresses = AddressPolicy(configuration.allowPrivateAddresses)
    }
}
