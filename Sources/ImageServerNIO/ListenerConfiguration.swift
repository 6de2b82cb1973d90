package import ImageServer
import NIOCore

/// Where a server listens, and what it takes from a connection.
package struct ListenerConfiguration: Sendable {
    package var listen = ListenAddress.tcp(host: "127.0.0.1", port: 8080)
    /// Listening sockets that the process was started with; they are used in place of `listen`.
    package var passed: [Int32] = []
    /// How many clients may be connected at once; others get a 503.
    package var connections = 1024
    /// How many of them may have a request in progress for one address, which is an IPv4 address or an IPv6 network of 64
    /// bits; nil for a quarter.
    package var connectionsPerAddress: Int?
    /// Bytes that answers may hold until clients have taken them.
    package var answerBytes = 1 << 30
    /// Bytes a second that a client takes of an answer on average, beyond the idle time.
    package var answerRate = 16_000.0
    /// Bytes of all header fields of one request, and of any single one.
    package var headerBytes = 16 << 10
    /// Bytes of the longest request body that the server reads.
    package var bodyBytes = 64 << 10
    /// Seconds that a connection may wait for a request, for the rest of a request, or for the client to accept a part
    /// of an answer.
    package var idleSeconds = 60.0
    /// Whether requests that come by this address are operators'.
    package var isAdministrative = false

    /// Proxies that say from where they were asked.
    package var proxies = TrustedProxies.none
    /// nil for plain HTTP.
    package var tls: TLSFiles?
    /// Whether HTTP/2 is spoken where TLS is.
    package var http2 = true

    package init() {}

    var idle: TimeAmount { .nanoseconds(Int64(idleSeconds * 1e9)) }

    /// How long a client may take for an answer of so many bytes.
    func time(for bytes: Int) -> TimeAmount {
        .nanoseconds(Int64((idleSeconds + Double(bytes) / answerRate) * 1e9))
    }

    /// How many requests one address may have in progress. Those of operators are limited by their connections alone.
    var addressLimit: Int {
        if isAdministrative { return connections }
        return min(connections, connectionsPerAddress ?? (connections + 3) / 4)
    }
}
