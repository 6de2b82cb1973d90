/// Why a fetch failed.
package struct FetchError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kind of failure. A struct with static members, so that adding one does not break callers.
    package struct Code: RawRepresentable, Sendable, Hashable {
        package let rawValue: String
        package init(rawValue: String) { self.rawValue = rawValue }

        /// The address connected to is private, loopback or otherwise refused.
        package static let refusedAddress = Code(rawValue: "refusedAddress")
        /// `sources.allow` or `sources.deny` refuses the URL, or one that it redirects to.
        package static let refusedSource = Code(rawValue: "refusedSource")
        /// The origin has failed so often that the circuit breaker rejects requests to it for a while.
        package static let circuitOpen = Code(rawValue: "circuitOpen")
        package static let unresolvable = Code(rawValue: "unresolvable")
        package static let unreachable = Code(rawValue: "unreachable")
        package static let connectTimeout = Code(rawValue: "connectTimeout")
        /// The head, or the whole fetch, took too long.
        package static let timeout = Code(rawValue: "timeout")
        /// The body all but stopped arriving.
        package static let stalled = Code(rawValue: "stalled")
        /// There is no such original.
        package static let missing = Code(rawValue: "missing")
        package static let tooLarge = Code(rawValue: "tooLarge")
        /// More redirects than allowed, or a loop of them.
        package static let tooManyRedirects = Code(rawValue: "tooManyRedirects")
        /// A redirect to an invalid URL, to a scheme other than http or https, or from https to http.
        package static let badRedirect = Code(rawValue: "badRedirect")
        /// The TLS handshake or the certificate failed.
        package static let tls = Code(rawValue: "tls")
        /// The origin broke HTTP: contradictory lengths, malformed chunks, a response that was not asked for.
        package static let protocolViolation = Code(rawValue: "protocolViolation")
        /// The body ended before its announced end.
        package static let truncated = Code(rawValue: "truncated")
        /// The rest of an interrupted download does not match its beginning; the whole body has to be fetched again.
        package static let partMismatch = Code(rawValue: "partMismatch")
        /// The caller cancelled, or the transport was shut down.
        package static let cancelled = Code(rawValue: "cancelled")
        package static let transport = Code(rawValue: "transport")
    }

    package let code: Code
    /// What was fetched (without credentials), what happened, and what would help.
    package let message: String
    /// The part that had arrived, if the rest can be requested.
    var partial: PartialResponse?
    /// The redirects that led to the request that failed.
    var followed: FollowedRedirects?

    package init(_ code: Code, _ url: SourceURL, _ problem: String) {
        self.code = code
        message = "fetching \(url.redacted): \(problem)"
    }

    /// - Parameter message: names what was fetched.
    package init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    package var description: String { message }

    /// Ignores `partial` and `followed`, which say nothing about what went wrong.
    package static func == (a: FetchError, b: FetchError) -> Bool { a.code == b.code && a.message == b.message }

    package func hash(into hasher: inout Hasher) {
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
