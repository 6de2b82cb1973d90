/// Describes why a fetch failed. A custom `Transport` throws it. `ImagePipeline` converts it to a `PipelineError`.
public struct FetchError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kind of failure. Code is a struct with static members, so that adding a member does not break callers.
    public struct Code: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
        /// The name, such as `timeout`.
        public let rawValue: String
        public init(rawValue: String) { self.rawValue = rawValue }
        public var description: String { rawValue }

        /// The address is private, is a loopback address, or is refused for another reason.
        public static let refusedAddress = Code(rawValue: "refusedAddress")
        /// `sources.allow` or `sources.deny` refuses the URL, or a URL that it redirects to.
        public static let refusedSource = Code(rawValue: "refusedSource")
        /// The origin has failed so often that the circuit breaker rejects requests to it for a while.
        public static let circuitOpen = Code(rawValue: "circuitOpen")
        /// The program's own hook (`PipelineConfiguration.willSend`) threw an error, and the request was not sent.
        public static let notSent = Code(rawValue: "notSent")
        /// The host has no address.
        public static let unresolvable = Code(rawValue: "unresolvable")
        /// The connection failed.
        public static let unreachable = Code(rawValue: "unreachable")
        /// Connecting took too long.
        public static let connectTimeout = Code(rawValue: "connectTimeout")
        /// The response header did not arrive in time, or the complete fetch took too long.
        public static let timeout = Code(rawValue: "timeout")
        /// The body arrived too slowly.
        public static let stalled = Code(rawValue: "stalled")
        /// The original does not exist.
        public static let missing = Code(rawValue: "missing")
        /// The body exceeds the limit.
        public static let tooLarge = Code(rawValue: "tooLarge")
        /// There were more redirects than allowed, or the redirects form a loop.
        public static let tooManyRedirects = Code(rawValue: "tooManyRedirects")
        /// The redirect leads to an invalid URL, to a scheme other than http or https, or from https to http.
        public static let badRedirect = Code(rawValue: "badRedirect")
        /// The TLS handshake or the certificate failed.
        public static let tls = Code(rawValue: "tls")
        /// The origin violated HTTP: contradictory lengths, malformed chunks, or a response that was not requested.
        public static let protocolViolation = Code(rawValue: "protocolViolation")
        /// The body ended before its announced end.
        public static let truncated = Code(rawValue: "truncated")
        /// The rest of an interrupted download does not match its beginning. The complete body must be fetched again.
        public static let partMismatch = Code(rawValue: "partMismatch")
        /// The caller cancelled the fetch, or the transport was shut down.
        public static let cancelled = Code(rawValue: "cancelled")
        /// The transfer failed for another reason.
        public static let transport = Code(rawValue: "transport")
    }

    /// The kind of failure.
    public let code: Code
    /// The source (without credentials), the failure, and how to fix it.
    public let message: String
    /// The failure in more detail, which is shown only in the log.
    package var logged: String?
    /// The program's own error that caused this error.
    package var cause: (any Error)?
    /// The part that had arrived, if the rest can be requested.
    var partial: PartialResponse?
    /// The redirects that led to the failed request.
    var followed: FollowedRedirects?

    package init(_ code: Code, _ url: SourceURL, _ problem: String) {
        self.code = code
        message = "fetching \(url.redacted): \(problem)"
    }

    /// - Parameter message: a description that names the source, without credentials.
    public init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    public var description: String { message }

    /// Compares codes and messages. Ignores `cause`, `partial` and `followed`, which do not describe the failure.
    public static func == (a: FetchError, b: FetchError) -> Bool { a.code == b.code && a.message == b.message }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(code)
        hasher.combine(message)
    }
}

extension FetchError {
    /// Returns the error for addresses that policy refuses. The message names the setting that would allow them.
    package static func refused(_ addresses: [IPAddress], _ url: SourceURL) -> FetchError {
        var named: [String] = []
        for address in addresses.map(\.description) where !named.contains(address) { named.append(address) }
        let kinds = addresses.first.map { AddressPolicy.classify($0).rawValue } ?? ""
        return FetchError(
            .refusedAddress, url,
            "the address \(named.joined(separator: ", ")) (\(kinds)) is not public and therefore not allowed; to allow it, use "
                + "--set 'allowPrivateAddresses=[\(named.map { "\"\($0)\"" }.joined(separator: ","))]'")
    }
}
