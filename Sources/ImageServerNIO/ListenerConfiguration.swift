package import ImageServer
import NIOCore

/// The settings of a listener: its address, and the limits of its connections.
package struct ListenerConfiguration: Sendable {
    package var listen = ListenAddress.tcp(host: "127.0.0.1", port: 8080)
    /// Listening sockets that were passed to the process at startup. They replace `listen`.
    package var passed: [Int32] = []
    /// The maximum number of connected clients. Further clients receive a 503.
    package var connections = 1024
    /// The maximum number of connections with a request in progress per address. An address is an IPv4 address or a
    /// 64-bit IPv6 network. If nil, the default, the limit is a quarter of `connections`.
    package var connectionsPerAddress: Int?
    /// The maximum total size of response bodies that clients have not received yet, in bytes.
    package var answerBytes = 1 << 30
    /// The minimum average rate at which a client must receive a response after the idle time, in bytes per second.
    package var answerRate = 16_000.0
    /// The maximum total length of a request's header fields, in bytes. A single field may have the same length.
    package var headerBytes = 16 << 10
    /// The maximum length of a request body that the server reads, in bytes, except for uploads.
    package var bodyBytes = 64 << 10
    /// The maximum time that a connection waits for a request, for the rest of a request, or for the client to receive
    /// a part of a response, in seconds.
    package var idleSeconds = 60.0
    /// Whether this is the operators' address.
    package var isAdministrative = false

    /// The proxies that are trusted to report the client's address.
    package var proxies = TrustedProxies.none

    package init() {}

    var idle: TimeAmount { .nanoseconds(Int64(idleSeconds * 1e9)) }

    /// Returns the maximum time in which a client must receive a response of `bytes` bytes.
    func time(for bytes: Int) -> TimeAmount {
        .nanoseconds(Int64((idleSeconds + Double(bytes) / answerRate) * 1e9))
    }

    /// The maximum number of requests in progress per address. For operators, only the number of connections is
    /// limited.
    var addressLimit: Int {
        if isAdministrative { return connections }
        return min(connections, connectionsPerAddress ?? (connections + 3) / 4)
    }
}
