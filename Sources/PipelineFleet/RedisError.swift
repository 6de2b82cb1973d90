/// Why Redis did not do what it was asked to.
package struct RedisError: Error, Sendable, Hashable, CustomStringConvertible {
    package enum Code: Sendable, Hashable {
        /// hiredis or libcurl is not installed.
        case libraryUnavailable
        /// There is no connection, or the server has closed it.
        case unreachable
        /// The server requires a password, or refuses the one it was given.
        case credentialsRefused
        /// The TLS handshake or the certificate failed.
        case tls
        /// The call's time was up.
        case timedOut
        /// The calling task was cancelled.
        case cancelled
        /// The connection was closed by its owner.
        case closed
        /// The server did not answer as Redis does, or with more than the limit.
        case protocolViolation
        /// What was to be sent exceeds a limit of ours.
        case tooLarge
        /// The server answered with an error.
        case server
    }

    package let code: Code
    /// What happened, with which server (without the password), and what would help.
    package internal(set) var message: String
    /// Seconds until the connection is tried again; calls before that fail at once. nil if the next call may try.
    package var retrySeconds: Double?

    package var description: String { message }

    init(_ code: Code, _ url: RedisURL, _ problem: String) {
        self.code = code
        message = "\(url): \(problem)"
    }

    /// An error that the server answered with.
    package static func reply(_ text: String, _ url: RedisURL) -> RedisError {
        let kind = text.prefix { $0 != " " }
        if kind == "NOAUTH" || kind == "WRONGPASS" {
            let advice =
                url.password == nil
                ? "the server requires a password: add USER:PASSWORD@ or :PASSWORD@ before the host"
                : "the server refuses the user or the password"
            return RedisError(.credentialsRefused, url, "\(advice) (\(kind))")
        }
        // A server that does not know AUTH repeats what was sent with it.
        let isTelling = url.password.map { !$0.isEmpty && text.contains($0) } ?? false
        let advice =
            switch kind {
            case "NOPERM": "; the user's ACL has to allow the command and the keys"
            case "READONLY": "; this is a replica, name the primary"
            case "LOADING", "BUSY", "MASTERDOWN", "CLUSTERDOWN": "; the server may be able to answer later"
            case "OOM": "; raise the server's maxmemory or have it evict other keys"
            default: ""
            }
        return RedisError(.server, url, "the server answered: \(isTelling ? String(kind) : text)\(advice)")
    }
}

extension RedisConnection {
    /// The error for a reply that the command does not have, or for the error that it is.
    func unexpected(_ reply: RedisReply) -> RedisError {
        if case .error(let text) = reply { return .reply(text, url) }
        return RedisError(.protocolViolation, url, "the server sent a reply that the command does not have")
    }
}
