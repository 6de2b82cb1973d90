/// The reason why a Redis call failed.
package struct RedisError: Error, Sendable, Hashable, CustomStringConvertible {
    package enum Code: Sendable, Hashable {
        /// hiredis or libcurl is not installed.
        case libraryUnavailable
        /// There is no connection, or the server has closed it.
        case unreachable
        /// The server requires a password, or rejects the password that it received.
        case credentialsRefused
        /// The TLS handshake or the certificate failed.
        case tls
        /// The call timed out.
        case timedOut
        /// The calling task was cancelled.
        case cancelled
        /// The owner closed the connection.
        case closed
        /// The server's reply violates the Redis protocol, or exceeds the size limit.
        case protocolViolation
        /// A command exceeds a size limit of this client.
        case tooLarge
        /// The server replied with an error.
        case server
    }

    package let code: Code
    /// A description of the error, which names the server (without the password) and says how to fix the problem.
    package internal(set) var message: String
    /// The number of seconds until the next connection attempt. Earlier calls fail at once. nil if the next call may
    /// try to connect.
    package var retrySeconds: Double?

    package var description: String { message }

    init(_ code: Code, _ url: RedisURL, _ problem: String) {
        self.code = code
        message = "\(url): \(problem)"
    }

    /// Returns the error for an error reply.
    package static func reply(_ text: String, _ url: RedisURL) -> RedisError {
        let kind = text.prefix { $0 != " " }
        if kind == "NOAUTH" || kind == "WRONGPASS" {
            let advice =
                url.password == nil
                ? "the server requires a password; add USER:PASSWORD@ or :PASSWORD@ before the host in the URL"
                : "the server rejected the user or the password; check them in the URL"
            return RedisError(.credentialsRefused, url, "\(advice) (\(kind))")
        }
        // If a server does not know AUTH, its error repeats the arguments.
        let revealsPassword = url.password.map { !$0.isEmpty && text.contains($0) } ?? false
        let advice =
            switch kind {
            case "NOPERM": "; allow the command and the keys in the ACL of the user"
            case "READONLY": "; this server is a replica, use the primary"
            case "LOADING", "BUSY", "MASTERDOWN", "CLUSTERDOWN": "; try again later"
            case "OOM": "; raise the server's maxmemory, or configure it to evict other keys"
            default: ""
            }
        return RedisError(.server, url, "the server answered: \(revealsPassword ? String(kind) : text)\(advice)")
    }
}

extension RedisConnection {
    /// Returns the error for a reply that does not fit the command, or for an error reply.
    func unexpected(_ reply: RedisReply) -> RedisError {
        if case .error(let text) = reply { return .reply(text, url) }
        return RedisError(
            .protocolViolation, url,
            "the server sent an unexpected reply to a command; check that it is a supported Redis version")
    }
}
