import PipelineSupport
import HTTPCaching
import Glibc
import Synchronization

/// One hop in progress: the response received so far, and whether the hop exceeds a limit.
///
/// `@unchecked Sendable`: from its submission to the loop until the call of `complete`, everything belongs to the
/// loop's thread. Submission and completion pass through locks.
final class Transfer: @unchecked Sendable {
    private enum Outcome {
        case open
        case awaited(UnsafeContinuation<Void, Never>)
        case arrived(Result<RawResponse, FetchError>)
        case delivered
    }

    let hop: Hop
    let request: FetchRequest
    let settings: TransferSettings
    var configuration: FetchConfiguration { settings.configuration }
    /// The scheme, host and port. Slots and the rate limit apply per origin.
    let origin: String
    /// The address in the URL, or nil if the URL names a host.
    let address: IPAddress?
    /// Whether the transfer goes through the proxy. Transfers to link-local addresses, where clouds serve credentials,
    /// bypass the proxy.
    let usesProxy: Bool
    /// Called with the address of a new or reused connection. Returns false if the transfer must wait.
    var joins: (IPAddress) -> Bool = { _ in true }
    /// Whether the network of the last address has reached its limit. The transfer then goes back to the queue.
    private(set) var mustWait = false
    /// Whether the transfer has been cancelled. Set from any thread. A transfer can be cancelled before it is
    /// submitted.
    let isCancelled = Atomic(false)
    private let outcome = Mutex(Outcome.open)
    private let priority = Atomic<UInt8>(0)

    /// Why the transfer was aborted. libcurl's own error then only says that a callback refused.
    private(set) var failure: FetchError?
    /// The refused addresses, in the order in which they were tried. The transfer fails only if no other address could
    /// be connected.
    private(set) var refused: [IPAddress] = []

    /// The number of seconds from start to end. Valid once there is a result.
    private(set) var elapsed = 0.0

    private var startedAt = 0.0
    private var connectedAt: Double?
    private var headAt: Double?
    private var windowStart = 0.0
    private var windowBytes = 0
    /// The number of bytes received since the start, including response headers and body.
    private(set) var received = 0
    private var requestTime = 0.0
    private var responseTime = 0.0
    private var status = 0
    private var fields: [HeaderField] = []
    private var headBytes = 0
    private var expectsStatusLine = true
    private var interims = 0
    private var body: BodyCollector
    /// Whether `body` continues a body from an earlier attempt.
    private var isContinued = false
    private var expected: Int?
    /// Whether the response is a redirect that will be followed. Its body is discarded.
    private var isFollowedRedirect = false
    private var reported = 0
    private var skipped = 0
    /// Whether enough has arrived to continue although the transfer is not finished, as for a redirect with a long
    /// body.
    private(set) var hasEnough = false
    /// Whether a libcurl thread is looking up a name.
    var isResolving = false
    /// Whether the transfer is paused until a part of the body has been written.
    private(set) var isPaused = false
    /// Whether another thread is writing a part of the body.
    var isWriting: Bool { body.isWriting }

    init(_ hop: Hop, _ settings: TransferSettings) {
        self.hop = hop
        request = hop.request
        self.settings = settings
        origin = request.url.origin
        let configuration = settings.configuration
        let named = AddressPolicy.named(request.url)
        address = named.count == 1 && configuration.proxy == nil && configuration.unixSocket == nil ? named[0] : nil
        usesProxy = configuration.proxy != nil && !named.contains { AddressPolicy.classify($0) == .linkLocal }
        body = BodyCollector(
            folder: configuration.spoolFolder, spoolBytes: configuration.maxBytesInMemory,
            floor: configuration.spoolFloor, beforeWriting: hop.hooks.beforeSpooling)
    }

    /// The transfer's ID. IDs ascend in the order of creation.
    let id = lastID.add(1, ordering: .relaxed).newValue
    private static let lastID = Atomic<UInt64>(0)

    /// The priority: the raw value of a `TaskPriority`.
    var urgency: UInt8 { priority.load(ordering: .relaxed) }

    /// Raises the priority to at least `priority`.
    func raise(to priority: UInt8) { self.priority.max(priority, ordering: .relaxed) }

    /// Marks the start, from which time limits count.
    ///
    /// - Parameter isCrowded: whether so many transfers are in progress that each keeps little in memory.
    func start(isCrowded: Bool = false, now: Double) {
        mustWait = false
        if isCrowded { body.keepLittle() }
        startedAt = now
        requestTime = SystemClock.unix.seconds
    }

    /// Delivers the result to the waiter, if it is still waiting. All results after the first are ignored.
    func complete(_ result: Result<RawResponse, FetchError>) {
        let seconds = startedAt > 0 ? SystemClock.monotonic.seconds - startedAt : 0
        // An unsafe continuation does not check that it is resumed only once. Leaving the state `awaited` ensures that.
        let waiter: UnsafeContinuation<Void, Never>? = outcome.withLock { outcome in
            switch outcome {
            case .open, .awaited:
                let waiter: UnsafeContinuation<Void, Never>? =
                    if case .awaited(let continuation) = outcome { continuation } else { nil }
                elapsed = seconds
                outcome = .arrived(result)
                return waiter
            case .arrived, .delivered: return nil
            }
        }
        waiter?.resume()
    }

    /// Waits for the result. May be called once.
    func result() async -> Result<RawResponse, FetchError> {
        await withUnsafeContinuation { continuation in
            let hasArrived = outcome.withLock { outcome in
                guard case .open = outcome else { return true }
                outcome = .awaited(continuation)
                return false
            }
            if hasArrived { continuation.resume() }
        }
        return outcome.withLock { outcome in
            guard case .arrived(let result) = outcome else {
                return .failure(FetchError(.cancelled, request.url, "the result of the transfer has already been read"))
            }
            outcome = .delivered
            return result
        }
    }

    /// Keeps the first failure. Always returns false, which aborts the transfer.
    func fail(_ code: FetchError.Code, _ problem: String) -> Bool {
        if failure == nil { failure = FetchError(code, request.url, problem) }
        return false
    }

    /// Whether the request was sent or may have been sent.
    var isConnected: Bool { connectedAt != nil }
    /// Whether the header of the final response is complete.
    var hasHead: Bool { headAt != nil }

    /// Returns the error together with the part that has arrived, if another attempt can request the rest.
    func keepingPart(_ error: FetchError) -> FetchError {
        let resumable = [FetchError.Code.transport, .truncated, .stalled, .timeout]
        guard headAt != nil, status == 200, resumable.contains(error.code), !hop.expectsPart, !isWriting else {
            return error
        }
        var error = error
        error.partial = PartialResponse(url: request.url, fields: fields, total: expected, body: body)
        return error
    }

    /// Returns the response, once libcurl reports the transfer as finished.
    func response() -> Result<RawResponse, FetchError> {
        if let failure { return .failure(failure) }
        guard headAt != nil else {
            return .failure(
                FetchError(.transport, request.url, "the connection closed before the response header was complete"))
        }
        if usesProxy, status == 407 { return .failure(.byProxy(status, self)) }
        if reported < body.count { hop.onProgress?(body.count, expected) }
        fields.keepEndToEnd()
        if isContinued, body.count != expected {
            return .failure(FetchError(.partMismatch, request.url, "the rest of the body has a different length"))
        }
        return .success(
            RawResponse(
                status: status, fields: fields, body: body, requestTime: requestTime,
                responseTime: responseTime))
    }

    /// Returns the seconds since the connection was established, or nil before that.
    func waited(now: Double) -> Double? { connectedAt.map { now - $0 } }

    /// Whether a connection to any address is allowed, because the caller trusts the host or the operator chose the
    /// peer.
    var isAdmitted: Bool { request.isTrusted || usesProxy || configuration.unixSocket != nil }

    /// Returns whether a connection to the address is allowed. Records a refusal for the error message.
    func admits(_ address: IPAddress?, port: Int) -> Bool {
        guard let address else { return false }
        if isAdmitted || settings.addresses.allows(address, port: port) { return true }
        refused.append(address)
        return false
    }

    /// Returns whether the address's network has room for this transfer. A proxy and a Unix socket are exempt because
    /// they serve any number of origins.
    func reserveNetworkSlot(_ address: IPAddress?) -> Bool {
        guard let address, !usesProxy, configuration.unixSocket == nil else { return true }
        mustWait = !joins(address)
        return !mustWait
    }

    /// Called when the connection is established, including TLS, just before the request is sent. Returns false to
    /// prevent the request.
    func connected(now: Double) -> Bool {
        // libcurl repeats a request on its own if a reused connection is closed without a response.
        if connectedAt != nil, configuration.maxRetries == 0 {
            return fail(.transport, "the origin closed a reused connection without a response, and `retries` is 0")
        }
        connectedAt = now
        requestTime = SystemClock.unix.seconds
        return true
    }

    /// Returns the error for a limit that is exceeded at `now` (monotonic seconds), or nil if no limit is exceeded.
    ///
    /// - Parameter sending: the number of request body bytes sent, and whether more bytes are in flight.
    func exceededLimit(
        now: Double, sending: @autoclosure () -> (bytes: Int, isUnderWay: Bool)
    ) -> FetchError? {
        if now - startedAt >= hop.totalSeconds {
            return FetchError(
                .timeout, request.url,
                "not complete within \(seconds(hop.totalSeconds)) in total (`fetch.totalSeconds`)")
        }
        guard let connectedAt else {
            guard now - startedAt >= configuration.connectSeconds else { return nil }
            return FetchError(
                .connectTimeout, request.url,
                "not connected within \(seconds(configuration.connectSeconds)) (`fetch.connectSeconds`)" + proxyNote)
        }
        guard headAt != nil else {
            var began = connectedAt
            if !request.body.isEmpty {
                // Sending takes as long as the origin takes to read. If the total time is unlimited, each pause is
                // limited instead.
                guard !hop.totalSeconds.isFinite else { return nil }
                let (sent, isUnderWay) = sending()
                if windowStart == 0 { windowStart = connectedAt }
                if sent - windowBytes >= configuration.minProgress { (windowStart, windowBytes) = (now, sent) }
                began = windowStart
                if isUnderWay, now - began >= configuration.stallSeconds {
                    return stalled("the request's body", sent - windowBytes, after: sent)
                }
            }
            guard now - began >= configuration.headerSeconds else { return nil }
            return FetchError(
                .timeout, request.url,
                "no response within \(seconds(configuration.headerSeconds)) (`fetch.headerSeconds`)")
        }
        guard now - windowStart >= configuration.stallSeconds, !isWriting else { return nil }
        if windowBytes < configuration.minProgress { return stalled("the body", windowBytes, after: body.count) }
        windowStart = now
        windowBytes = 0
        return nil
    }

    private func stalled(_ what: String, _ bytes: Int, after count: Int) -> FetchError {
        FetchError(
            .stalled, request.url,
            "\(what) stalled: only \(bytes) bytes in \(seconds(configuration.stallSeconds)), after \(count) bytes "
                + "(`fetch.stallSeconds`)")
    }

    /// Receives one header line with its line ending. Returns false to abort.
    func receive(line: UnsafeRawBufferPointer) -> Bool {
        headBytes += line.count
        received += line.count
        guard headBytes <= configuration.maxHeadBytes else {
            return fail(
                .protocolViolation, "the response header and trailers exceed \(configuration.maxHeadBytes) bytes")
        }
        // Only trailers follow the final response header. They are not merged (RFC 9110 §6.5.1).
        if headAt != nil { return true }
        var count = line.count
        while count > 0, line[count - 1] == 0x0A || line[count - 1] == 0x0D { count -= 1 }
        let bytes = UnsafeRawBufferPointer(rebasing: line[..<count])
        if expectsStatusLine {
            status = Self.status(bytes)
            fields = []
            fields.reserveCapacity(16)
            expectsStatusLine = false
            return true
        }
        if bytes.isEmpty { return endOfHead(now: SystemClock.monotonic.seconds) }
        if let first = bytes.first, first == 0x20 || first == 0x09 {
            // A folded line continues the previous value (RFC 9112 §5.2).
            guard !fields.isEmpty else { return true }
            fields[fields.count - 1].value += " " + Self.value(bytes)
            return true
        }
        return receive(field: bytes)
    }

    /// Returns the status of `HTTP/1.1 200 OK`, or 0 if the status does not have three digits.
    private static func status(_ line: UnsafeRawBufferPointer) -> Int {
        guard var index = line.firstIndex(of: 0x20) else { return 0 }
        while index < line.count, line[index] == 0x20 { index += 1 }
        let digits = line[index...].prefix { $0 != 0x20 }
        guard digits.count == 3, digits.allSatisfy(\.isDigit) else { return 0 }
        return digits.reduce(0) { $0 * 10 + Int($1 - 0x30) }
    }

    /// Receives a field line. Ignores a malformed line, as browsers do, unless the line concerns the framing of the
    /// body, which must not be guessed.
    private func receive(field line: UnsafeRawBufferPointer) -> Bool {
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { return true }
        let name = String(decoding: UnsafeRawBufferPointer(rebasing: line[..<colon]), as: UTF8.self)
        guard FieldSyntax.isToken(name) else {
            if ["content-length", "transfer-encoding"].contains(FieldLines.trimmed(name).lowercased()) {
                // Other recipients may ignore the space and so read a different length (RFC 9112 §5.1).
                return fail(
                    .protocolViolation,
                    "the origin sent a space inside a header field that determines the length of the body")
            }
            return true
        }
        guard fields.count < FetchConfiguration.fieldLimit else {
            return fail(.protocolViolation, "the response header has more than \(FetchConfiguration.fieldLimit) fields")
        }
        fields.append(HeaderField(name, Self.value(UnsafeRawBufferPointer(rebasing: line[(colon + 1)...]))))
        return true
    }

    /// Returns a field value as a string, without surrounding whitespace. Characters that could end a line or a string
    /// elsewhere become spaces (RFC 9110 §5.5).
    private static func value(_ bytes: UnsafeRawBufferPointer) -> String {
        guard bytes.allSatisfy({ $0 != 0 && $0 != 0x0A && $0 != 0x0D }) else {
            let text = FieldSyntax.text(bytes)
            return FieldLines.trimmed(String(text.map { "\0\r\n".contains($0) || $0 == "\r\n" ? " " : $0 }))
        }
        var (start, end) = (0, bytes.count)
        while start < end, bytes[start] == 0x20 || bytes[start] == 0x09 { start += 1 }
        while start < end, bytes[end - 1] == 0x20 || bytes[end - 1] == 0x09 { end -= 1 }
        return FieldSyntax.text(UnsafeRawBufferPointer(rebasing: bytes[start..<end]))
    }

    private func endOfHead(now: Double) -> Bool {
        if status == 101 {
            return fail(.protocolViolation, "the origin switched protocols (101), which was not requested")
        }
        guard status >= 100 else {
            return fail(.protocolViolation, "the origin sent an invalid status line")
        }
        if status < 200 {
            expectsStatusLine = true
            interims += 1
            guard interims <= FetchConfiguration.interimLimit else {
                return fail(
                    .protocolViolation, "the origin sent more than \(FetchConfiguration.interimLimit) interim responses"
                )
            }
            // A 100 response concerns only this connection (RFC 9110 §15.2.1).
            if status != 100 { request.onInterim?.report(status, fields.endToEnd()) }
            return true
        }
        guard receiveFraming() else { return false }
        headAt = now
        (windowStart, windowBytes) = (now, 0)
        responseTime = SystemClock.unix.seconds
        isFollowedRedirect =
            request.followsRedirects && request.method == "GET"
            && CurlTransport.redirectStatuses.contains(status) && fields.first("location") != nil
        return true
    }

    /// Checks the header fields about the length and coding of the body.
    private func receiveFraming() -> Bool {
        // Most responses have only one of the two fields, and only once.
        var codings: [String] = []
        var lengths: [String] = []
        for field in fields {
            if FieldLines.isSameName(field.name, "transfer-encoding") { codings.append(field.value) }
            if FieldLines.isSameName(field.name, "content-length") { lengths.append(field.value) }
        }
        if !codings.isEmpty, !lengths.isEmpty {
            // The two fields contradict each other, and other recipients may believe the other one (RFC 9112 §6.3).
            return fail(.protocolViolation, "the origin sent both Content-Length and Transfer-Encoding")
        }
        guard codings.isEmpty || (codings.count == 1 && codings[0].lowercased() == "chunked") else {
            return fail(
                .protocolViolation, "the origin sent a transfer coding other than chunked, which was not requested")
        }
        if lengths.count > 1 || lengths.first?.utf8.contains(UInt8(ascii: ",")) == true {
            return fail(.protocolViolation, "the origin sent more than one Content-Length")
        }
        var length: Int?
        if let text = lengths.first {
            guard !text.isEmpty, text.utf8.count <= 18, text.utf8.allSatisfy(\.isDigit), let given = Int(text)
            else {
                return fail(.protocolViolation, "the origin sent a malformed Content-Length")
            }
            length = given
        }
        guard receivePart(length) else { return false }
        if let length, status != 304, status != 204 {
            let whole = length + (isContinued ? body.count : 0)
            expected = whole
            guard whole <= hop.byteLimit else {
                return fail(
                    .tooLarge, "the body has \(whole) bytes; the maximum is \(hop.byteLimit) (`limits.bytes`)")
            }
            if !isContinued { body.reserve(whole) }
        }
        return true
    }

    /// Accepts a 206 response as the rest of an interrupted body, or as the part that the caller requested.
    private func receivePart(_ length: Int?) -> Bool {
        guard let partial = request.resuming else {
            guard status == 206, !hop.expectsPart else { return true }
            return fail(.protocolViolation, "the origin sent a partial response (206), which was not requested")
        }
        if status == 416 {
            return fail(.partMismatch, "the origin cannot continue an interrupted body (416)")
        }
        guard status == 206 else { return true }
        let problem =
            partial.mismatch(fields)
            ?? (length.map { $0 == partial.total - partial.body.count } == false ? "its length differs" : nil)
        if let problem {
            return fail(.partMismatch, "the rest of an interrupted body does not match its beginning: \(problem)")
        }
        fields = partial.fields(updatedBy: fields)
        status = 200
        body = partial.body
        isContinued = true
        expected = partial.total
        return true
    }

    private static let lost = "the received part cannot be read back from the spool file; check the disk for errors"

    /// Receives a piece of the body. Returns false to abort.
    func receive(body piece: UnsafeRawBufferPointer) -> Bool {
        windowBytes += piece.count
        received += piece.count
        if isFollowedRedirect {
            skipped += piece.count
            hasEnough = skipped > FetchConfiguration.redirectByteLimit
            return !hasEnough
        }
        if isContinued, let expected, body.count + piece.count > expected {
            return fail(.partMismatch, "the rest of an interrupted body is longer than announced")
        }
        guard body.count + piece.count <= hop.byteLimit else {
            return fail(
                .tooLarge,
                "the body exceeds the maximum of \(hop.byteLimit) bytes (`limits.bytes`); the transfer was stopped")
        }
        body.add(piece)
        if reported == 0 || body.count - reported >= 65_536 {
            reported = body.count
            hop.onProgress?(body.count, expected)
        }
        return true
    }

    // MARK: Writing

    /// Returns whether libcurl must deliver the next piece again after the write in progress.
    func mustRedeliver() -> Bool {
        isPaused = body.isFull
        return isPaused
    }

    /// Begins the next write of a part of the body, to be run on another thread. Returns nil if no write is due.
    func nextWrite() -> BodyCollector.Write? { body.nextWrite() }

    /// Begins the last write of a complete body. Returns nil once the body is in memory or in a file, as the request
    /// requires.
    func lastWrite() -> BodyCollector.Write? {
        request.acceptsFile ? body.nextWrite(isComplete: true) : body.loading()
    }

    /// Applies the outcome of a write. Returns false if the body is lost.
    func take(_ written: BodyCollector.WriteOutcome, now: Double) -> Bool {
        // The origin could not send during the write.
        (windowStart, windowBytes) = (now, 0)
        return body.take(written) || fail(.transport, Self.lost)
    }

    private func seconds(_ value: Double) -> String {
        value == value.rounded() ? "\(Int(value)) s" : "\(Int((value * 1000).rounded())) ms"
    }
}
