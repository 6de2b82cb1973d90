/// Why a fetch failed.
public struct FetchError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kind of failure. A struct with static members, so that adding one does not break callers.
    public struct Code: RawRepresentable, Sendable, Hashable {
        /// The name, as in `timeout`.
        public let rawValue: String
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The address connected to is private, loopback or otherwise refused.
        public static let refusedAddress = Code(rawValue: "refusedAddress")
        /// `sources.allow` or `sources.deny` refuses the URL, or one that it redirects to.
        public static let refusedSource = Code(rawValue: "refusedSource")
        /// The origin has failed so often that the circuit breaker rejects requests to it for a while.
        public static let circuitOpen = Code(rawValue: "circuitOpen")
        /// The host has no address.
        public static let unresolvable = Code(rawValue: "unresolvable")
        /// The connection failed.
        public static let unreachable = Code(rawValue: "unreachable")
        /// Connecting took too long.
        public static let connectTimeout = Code(rawValue: "connectTimeout")
        /// The head, or the whole fetch, took too long.
        public static let timeout = Code(rawValue: "timeout")
        /// The body all but stopped arriving.
        public static let stalled = Code(rawValue: "stalled")
        /// There is no such original.
        public static let missing = Code(rawValue: "missing")
        /// The body exceeds the limit.
        public static let tooLarge = Code(rawValue: "tooLarge")
        /// More redirects than allowed, or a loop of them.
        public static let tooManyRedirects = Code(rawValue: "tooManyRedirects")
        /// A redirect to an invalid URL, to a scheme other than http or https, or from https to http.
        public static let badRedirect = Code(rawValue: "badRedirect")
        /// The TLS handshake or the certificate failed.
        public static let tls = Code(rawValue: "tls")
        /// The origin broke HTTP: contradictory lengths, malformed chunks, a response that was not asked for.
        public static let protocolViolation = Code(rawValue: "protocolViolation")
        /// The body ended before its announced end.
        public static let truncated = Code(rawValue: "truncated")
        /// The rest of an interrupted download does not match its beginning; the whole body has to be fetched again.
        public static let partMismatch = Code(rawValue: "partMismatch")
        /// The caller cancelled, or the transport was shut down.
        public static let cancelled = Code(rawValue: "cancelled")
        /// The transfer failed otherwise.
        public static let transport = Code(rawValue: "transport")
    }

    public let code: Code
    /// What was fetched (without credentials), what happened, and what would help.
    public let message: String
    /// What happened, for the log alone.
    package var logged: String?
    /// The error of a program's own that this one stands for.
    package var cause: (any Error)?
    /// The part that had arrived, if the rest can be requested.
    var partial: PartialResponse?
    /// The redirects that led to the request that failed.
    var followed: FollowedRedirects?

    package init(_ code: Code, _ url: SourceURL, _ problem: String) {
        self.code = code
        message = "fetching \(url.redacted): \(problem)"
    }

    /// - Parameter message: names what was fetched, without credentials.
    public init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    public var description: String { message }

    /// Ignores `cause`, `partial` and `followed`, which say nothing about what went wrong.
    public static func == (a: FetchError, b: FetchError) -> Bool { a.code == b.code && a.message == b.message }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(code)
        hasher.combine(message)
    }
}

extension FetchError {
    /// The error for connections that policy refuses; its message names the setting that would allow them.
    package static func refused(_ addresses: [IPAddress], _ url: SourceURL) -> FetchError {
        var named: [String] = []
        for address in addresses.map(\.description) where !named.contains(address) { named.append(address) }
        let kinds = addresses.first.map { AddressPolicy.classify($0).rawValue } ?? ""
        return FetchError(
            .refusedAddress, url,
            "the address \(named.joined(separator: ", ")) (\(kinds)) is refused; to allow it: "
                + "--set 'allowPrivateAddresses=[\(named.map { "\"\($0)\"" }.joined(separator: ","))]'")
    }
}
