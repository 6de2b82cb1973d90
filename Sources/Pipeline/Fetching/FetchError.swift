/// Why nothing was fetched.
public struct FetchError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kind of failure. A struct with static members, so that a new one breaks nobody.
    public struct Code: RawRepresentable, Sendable, Hashable {
        /// The name in reports.
        public let rawValue: String
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The address connected to is private, loopback or otherwise refused.
        public static let refusedAddress = Code(rawValue: "refusedAddress")
        /// `sources.allow` or `sources.deny` refuses the URL, or one that it redirects to.
        public static let refusedSource = Code(rawValue: "refusedSource")
        /// The origin has failed so often that it is left alone for a while.
        public static let circuitOpen = Code(rawValue: "circuitOpen")
        /// The host has no address.
        public static let unresolvable = Code(rawValue: "unresolvable")
        /// No connection could be made.
        public static let unreachable = Code(rawValue: "unreachable")
        /// Connecting took too long.
        public static let connectTimeout = Code(rawValue: "connectTimeout")
        /// The head, or the whole fetch, took too long.
        public static let timeout = Code(rawValue: "timeout")
        /// The body all but stopped arriving.
        public static let stalled = Code(rawValue: "stalled")
        /// The body is longer than allowed.
        public static let tooLarge = Code(rawValue: "tooLarge")
        /// More redirects than allowed, or a loop of them.
        public static let tooManyRedirects = Code(rawValue: "tooManyRedirects")
        /// A redirect to nowhere, to something that is not http or https, or from https to http.
        public static let badRedirect = Code(rawValue: "badRedirect")
        /// The TLS handshake or the certificate failed.
        public static let tls = Code(rawValue: "tls")
        /// The origin broke HTTP: contradicting lengths, malformed chunks, an answer nobody asked for.
        public static let protocolViolation = Code(rawValue: "protocolViolation")
        /// The body ended before its announced end.
        public static let truncated = Code(rawValue: "truncated")
        /// The rest of a broken download does not fit its beginning; only all of it anew will do.
        public static let partMismatch = Code(rawValue: "partMismatch")
        /// The caller cancelled, or the transport was shut down.
        public static let cancelled = Code(rawValue: "cancelled")
        /// The connection broke off.
        public static let transport = Code(rawValue: "transport")
    }

    /// The kind of failure.
    public let code: Code
    /// What was fetched (without credentials), what happened, and what would help.
    public let message: String
    /// What had arrived, where the rest may be asked for.
    var partial: PartialResponse?

    /// An error in fetching `url`.
    public init(_ code: Code, _ url: SourceURL, _ problem: String) {
        self.code = code
        message = "fetching \(url.redacted): \(problem)"
    }

    public var description: String { message }

    /// What has arrived is not part of what went wrong.
    public static func == (a: FetchError, b: FetchError) -> Bool { a.code == b.code && a.message == b.message }

    /// As equality has it.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(code)
        hasher.combine(message)
    }
}
