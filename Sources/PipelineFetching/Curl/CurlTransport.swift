import HTTPCaching
import PipelineSupport
import Synchronization

/// Fetches over http and https with libcurl's multi interface, on a separate thread that the first fetch starts.
///
/// Connections are reused, but never shared between transports. A transport with a strict address rule therefore never
/// uses a connection of a less strict transport. The transport follows redirects itself and checks each hop in the same
/// way as a first request.
package final class CurlTransport: Transport {
    private enum State {
        case idle
        case running(CurlLoop)
        case stopped
    }

    package let configuration: FetchConfiguration
    private let state = Mutex(State.idle)
    private let breaker: Mutex<CircuitBreaker?>
    private let hooks: TransportHooks
    private let settings: TransferSettings

    /// Statuses that are redirects if the response has a `Location` field (RFC 9110 §15.4).
    static let redirectStatuses: Set<Int> = [301, 302, 303, 307, 308]

    package convenience init(_ configuration: FetchConfiguration = FetchConfiguration()) {
        self.init(configuration, hooks: TransportHooks())
    }

    package init(_ configuration: FetchConfiguration, hooks: TransportHooks) {
        self.configuration = configuration
        self.hooks = hooks
        settings = TransferSettings(configuration)
        breaker = Mutex(configuration.breaker.map { CircuitBreaker($0) })
    }

    deinit { shutdown() }

    /// Fails running fetches with `cancelled` and joins the thread. Later fetches fail. Calling it again has no effect.
    package func shutdown() {
        let loop: CurlLoop? = state.withLock { state in
            defer { state = .stopped }
            if case .running(let loop) = state { return loop }
            return nil
        }
        loop?.stop()
    }

    /// The number of transfers waiting for a slot or for the rate limit.
    var waiting: Int {
        state.withLock { state in
            if case .running(let loop) = state { loop.waiting } else { 0 }
        }
    }

    package func fetch(
        _ request: FetchRequest, onProgress: (@Sendable (_ received: Int, _ expected: Int?) -> Void)?
    ) async throws(FetchError) -> FetchedResponse {
        var followed = request.followed ?? FollowedRedirects(url: request.url)
        var spent = 0.0
        let total = request.timeout?.inSeconds ?? configuration.totalSeconds
        while true {
            let url = followed.url
            let (response, seconds): (RawResponse, Double)
            do throws(FetchError) {
                (response, seconds) = try await hop(
                    of: request, followed, totalSeconds: total - spent, onProgress: onProgress)
            } catch {
                var error = error
                error.followed = followed
                throw error
            }
            spent += seconds
            guard request.followsRedirects, request.method == "GET", Self.redirectStatuses.contains(response.status),
                let location = response.fields.first("location")
            else {
                return FetchedResponse(
                    status: response.status, fields: response.fields, body: response.body.bytes,
                    file: response.body.file, requestTime: response.requestTime, responseTime: response.responseTime,
                    finalURL: url, milliseconds: spent * 1000, redirects: followed.urls,
                    redirectResponses: followed.responses, digest: response.body.digest)
            }
            followed.urls.append(url)
            followed.responses.append(
                StoredResponse(
                    status: response.status, fields: response.fields, requestTime: response.requestTime,
                    responseTime: response.responseTime))
            let next = try Self.target(of: location, from: url)
            let limit = min(configuration.maxRedirects, request.maxRedirects ?? .max)
            guard followed.urls.count <= limit else {
                let name = limit == configuration.maxRedirects ? "`fetch.redirects`" : "`maximumRedirects`"
                throw FetchError(
                    .tooManyRedirects, request.url,
                    "more than \(limit) redirects (\(name)); the last one leads to \(next.redacted)")
            }
            guard !followed.urls.contains(where: { $0.normalized == next.normalized }) else {
                throw FetchError(.tooManyRedirects, request.url, "the redirects form a loop through \(next.redacted)")
            }
            followed.url = next
        }
    }

    private static func target(of location: String, from url: SourceURL) throws(FetchError) -> SourceURL {
        let next: SourceURL
        do throws(SourceError) {
            next = try url.resolving(FieldSyntax.percentEncoded(location))
        } catch {
            throw FetchError(
                .badRedirect, url, "the origin redirects to a URL that cannot be fetched: \(error.message)")
        }
        guard url.scheme == "http" || next.scheme == "https" else {
            throw FetchError(
                .badRedirect, url,
                "the origin redirects from https to http (\(next.redacted)), which is not allowed because the response could be tampered with"
            )
        }
        return next
    }

    /// Returns the header fields that may be sent to a different origin (RFC 9110 §15.4).
    private static func withoutCredentials(_ fields: [HeaderField]) -> [HeaderField] {
        fields.filter { !["authorization", "cookie", "proxy-authorization"].contains($0.name.lowercased()) }
    }

    /// Performs one request. Returns the response and the time from leaving the queue to the response, in seconds. The
    /// time includes the time that the program's hook took.
    private func hop(
        of request: FetchRequest, _ followed: FollowedRedirects, totalSeconds: Double,
        onProgress: (@Sendable (_ received: Int, _ expected: Int?) -> Void)?
    ) async throws(FetchError) -> (RawResponse, Double) {
        let url = followed.url
        try check(request, at: url)
        let loop = try running(url)
        let isTrial = try passBreaker(url)
        let began = SystemClock.monotonic.seconds
        var seconds = 0.0
        let hop: Hop
        do throws(FetchError) {
            let fields = try await fields(of: request, followed, totalSeconds)
            if request.willSend != nil { seconds = SystemClock.monotonic.seconds - began }
            hop = try prepared(request, to: url, fields, totalSeconds - seconds, onProgress)
        } catch {
            breaker.withLock { [now = hooks.now()] in $0?.record(url.origin, .unknown, isTrial: isTrial, now: now) }
            throw error
        }
        let transfer = Transfer(hop, self.settings)
        let result: Result<RawResponse, FetchError>
        if Task.isCancelled {
            result = .failure(FetchError(.cancelled, url, "cancelled"))
        } else {
            result = await withTaskCancellationHandler {
                await withTaskPriorityEscalationHandler {
                    // Read the priority once the handler is installed, so that no escalation is missed.
                    transfer.raise(to: Task.currentPriority.rawValue)
                    loop.submit(transfer)
                    return await transfer.result()
                } onPriorityEscalated: { _, priority in
                    loop.raise(transfer, to: priority.rawValue)
                }
            } onCancel: {
                loop.cancel(transfer)
            }
        }
        recordOutcome(result, of: url, isTrial: isTrial, countsStatus: request.method == "GET")
        return (try result.get(), seconds + transfer.elapsed)
    }

    /// Throws unless the source policy and the rules for methods allow the request.
    private func check(_ request: FetchRequest, at url: SourceURL) throws(FetchError) {
        if let refusal = configuration.sources.refusal(of: request.source ?? url) {
            throw FetchError(.refusedSource, url, "not allowed: \(refusal)")
        }
        if configuration.proxy != nil, !request.isTrusted {
            // The proxy connects, so only addresses that the URL itself names can be checked.
            let refused = self.settings.addresses.refused(url)
            if !refused.isEmpty { throw .refused(refused, url) }
        }
        guard FieldSyntax.isToken(request.method), !Self.refusedMethods.contains(request.method) else {
            throw FetchError(.protocolViolation, url, "the method `\(request.method)` is not supported")
        }
    }

    /// Returns the header fields for the next request, after the program's hook has completed them. A redirect to
    /// another origin gets no credentials, and the hook is not called for it.
    private func fields(
        of request: FetchRequest, _ followed: FollowedRedirects, _ totalSeconds: Double
    ) async throws(FetchError) -> [HeaderField] {
        if followed.hasLeftOrigin { return Self.withoutCredentials(request.fields) }
        guard let hook = request.willSend else { return request.fields }
        let (seconds, limit) =
            totalSeconds.isFinite
            ? (min(max(totalSeconds, 0), 1e9), "fetch.totalSeconds")
            : (configuration.headerSeconds, "fetch.headerSeconds")
        let completed = try await bounded(
            followed.url, "`willSend`", seconds: seconds, limit: limit, code: .notSent
        ) {
            var asked = request
            asked.url = followed.url
            try await hook.complete(&asked)
            return asked.fields
        }
        // `Range` and conditions stay: the caller expects a part or a 304 only if the caller requested one.
        return completed.filter { !Validation.narrows($0.name) } + request.fields.filter { Validation.narrows($0.name) }
    }

    private func prepared(
        _ request: FetchRequest, to url: SourceURL, _ fields: [HeaderField], _ totalSeconds: Double,
        _ onProgress: (@Sendable (_ received: Int, _ expected: Int?) -> Void)?
    ) throws(FetchError) -> Hop {
        let settings = configuration.settings(for: url)
        let host = request.method == "GET" ? settings : settings?.withoutFields
        let expectsPart = fields.first("range") != nil
        // The rest of an interrupted download is requested only from the URL that sent the beginning.
        let partial = expectsPart ? nil : request.resuming.flatMap { $0.url == url ? $0 : nil }
        let mark = configuration.loopEntry.map { [HeaderField("CDN-Loop", $0)] } ?? []
        let lines = try Self.lines(
            fields + mark + (request.signature?.fields ?? [])
                + (host?.additions(to: fields, trace: request.traceFields) ?? [])
                + (partial?.requestFields ?? []),
            url, method: request.method, isSigned: request.signature != nil)
        var request = request
        (request.url, request.resuming) = (url, partial)
        return Hop(
            request: request, lines: lines, expectsPart: expectsPart,
            byteLimit: request.maxBytes ?? configuration.byteLimit, totalSeconds: max(totalSeconds, 0),
            onProgress: onProgress, host: host, hooks: hooks)
    }

    // MARK: Breaker

    /// Returns whether the request is the circuit breaker's trial for its origin. Throws while the breaker is open.
    private func passBreaker(_ url: SourceURL) throws(FetchError) -> Bool {
        let now = hooks.now()
        switch breaker.withLock({ $0?.admit(url.origin, now: now) }) {
        case nil: return false
        case .ask(let isTrial): return isTrial
        case .refuse(let failures, let seconds):
            let wait =
                seconds > 0 ? "for another \(Int(seconds.rounded(.up))) s" : "until the current trial request ends"
            throw FetchError(
                .circuitOpen, url,
                "\(url.origin) failed \(failures) times in a row; requests to it are rejected \(wait) (`fetch.breaker`)"
            )
        }
    }

    /// Errors that count as failures of the origin, because the origin is unreachable or does not respond properly.
    private static let failures: Set<FetchError.Code> = [
        .unresolvable, .unreachable, .connectTimeout, .timeout, .stalled, .tls, .truncated, .transport,
    ]

    /// - Parameter countsStatus: whether a 5xx is the origin's fault rather than caused by what was sent.
    private func recordOutcome(
        _ result: Result<RawResponse, FetchError>, of url: SourceURL, isTrial: Bool, countsStatus: Bool
    ) {
        let outcome: CircuitBreaker.Outcome =
            switch result {
            case .success(let response): countsStatus && (500..<600).contains(response.status) ? .failed : .answered
            // An origin that sent a resumable part has responded.
            case .failure(let error) where Self.failures.contains(error.code) && error.partial == nil: .failed
            case .failure(let error) where error.code == .cancelled || error.code == .refusedAddress: .unknown
            case .failure: .answered
            }
        let now = hooks.now()
        breaker.withLock { $0?.record(url.origin, outcome, isTrial: isTrial, now: now) }
    }

    private func running(_ url: SourceURL) throws(FetchError) -> CurlLoop {
        let loop: CurlLoop? = state.withLock { state in
            switch state {
            case .running(let loop): return loop
            case .stopped: return nil
            case .idle:
                guard let loop = CurlLoop.start(configuration) else { return nil }
                state = .running(loop)
                return loop
            }
        }
        if let loop { return loop }
        throw FetchError(.cancelled, url, "the transport was shut down, or its thread could not be started")
    }

    /// CONNECT and TRACE address intermediaries rather than an origin. The response to HEAD has no body to wait for.
    private static let refusedMethods: Set<String> = ["CONNECT", "TRACE", "HEAD"]
    /// Header fields that the transport itself writes.
    private static let own = FieldLines.hopByHop.union(["host", "content-length", "expect"])
    private static let accept = FieldSyntax.bytes("Accept: image/*, */*;q=0.5") + [0]

    /// Returns header lines for libcurl, without the connection fields, which the transport writes.
    private static func lines(
        _ fields: [HeaderField], _ url: SourceURL, method: String, isSigned: Bool
    ) throws(FetchError) -> [[UInt8]] {
        var lines: [[UInt8]] = []
        if method == "GET" {
            if fields.first("accept") == nil { lines.append(accept) }
        } else {
            // By default, libcurl would wait for a 100 response before it sends the body, and would declare the body a
            // form. A line that removes a field would be signed (libcurl 7.88).
            if !isSigned {
                lines.append(FieldSyntax.bytes("Expect:") + [0])
                if fields.first("content-type") == nil { lines.append(FieldSyntax.bytes("Content-Type:") + [0]) }
            }
        }
        for field in fields where !own.contains(field.name.lowercased()) {
            guard FieldSyntax.isToken(field.name), FieldSyntax.isValue(field.value) else {
                throw FetchError(
                    .protocolViolation, url,
                    "the request field `\(field.name)` contains characters that a field must not contain")
            }
            // libcurl removes a field if the line is "Name:", and sends an empty field if the line is "Name;".
            let line = field.value.isEmpty ? "\(field.name);" : "\(field.name): \(field.value)"
            lines.append(FieldSyntax.bytes(line) + [0])
        }
        return lines
    }
}
