/// Where a server listens, and what it takes from a connection.
package struct ListenerConfiguration: Sendable {
    package var listen = ListenAddress(host: "127.0.0.1", port: 8080)
    /// How many clients may be connected at once; others get a 503.
    package var connections = 1024
    /// Bytes of all header fields of one request, and of any single one.
    package var headerBytes = 16 << 10
    /// Bytes of the longest request body that the server reads.
    package var bodyBytes = 64 << 10
    /// Seconds that a connection may wait for a request, for the rest of a request, or for the client to accept a part
    /// of an answer.
    package var idleSeconds = 60.0
    /// Whether requests that come by this address are operators'.
    package var isAdministrative = false

    package init() {}
}
