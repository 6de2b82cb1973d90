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

/// One hop of a fetch: the request with the URL of this hop, and what the transport adds to it.
struct Hop: Sendable {
    var request: FetchRequest
    /// Header lines in the form `Name: value`, checked for control characters and terminated by NUL.
    var lines: [[UInt8]]
    var expectsPart: Bool
    var byteLimit: Int
    /// The seconds left for the fetch when the hop starts.
    var totalSeconds: Double
    var onProgress: (@Sendable (_ received: Int, _ expected: Int?) -> Void)?
    /// The settings for this origin, if any.
    var host: HostSettings?
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

/// The settings shared by all transfers of a transport. This is a class because the settings contain many strings and
/// arrays that would otherwise be copied.
final class TransferSettings: Sendable {
    let configuration: FetchConfiguration
    let addresses: AddressPolicy

    init(_ configuration: FetchConfiguration) {
        self.configuration = configuration
        addresses = AddressPolicy(configuration.allowPrivateAddresses)
    }
}
