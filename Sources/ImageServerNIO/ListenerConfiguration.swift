/// Where a server listens, and what it takes from a connection.
package struct ListenerConfiguration: Sendable {
    package var listen: ListenAddress
    /// How many clients may be connected at once; others get a 503.
    package var connections: Int
    /// Bytes of all header fields of one request, and of any single one.
    package var headerBytes: Int
    /// Bytes of the longest request body that the server reads.
    package var bodyBytes: Int
    /// Seconds that a connection may wait for a request, for the rest of a request, or for the client to accept a part
    /// of an answer.
    package var idleSeconds: Double

    package init(
        listen: ListenAddress, connections: Int, headerBytes: Int, bodyBytes: Int, idleSeconds: Double
    ) {
        self.listen = listen
        self.connections = connections
        self.headerBytes = headerBytes
        self.bodyBytes = bodyBytes
        self.idleSeconds = idleSeconds
    }
}
