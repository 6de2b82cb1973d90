import PipelineSupport
import HTTPCaching
import Glibc
import Synchronization

/// One hop in progress: what has arrived, and whether it exceeds a limit.
///
/// `@unchecked Sendable`: from submission to the loop until `complete` is called, everything belongs to the loop's
/// thread; submission and completion go through locks.
final class Transfer: @unchecked Sendable {
    private enum Outcome {
        case open
        case awaited(UnsafeContinuation<Void, Never>)
        case there(Result<RawResponse, FetchError>)
        case taken
    }

    let request: TransferRequest
    let settings: TransferSettings
    var configuration: FetchConfiguration { settings.configuration }
    /// Scheme, host and port; slots and rate are counted for each origin.
    let origin: String
    /// The address that the URL names; nil if it names a host.
    let address: IPAddress?
    /// Whether the transfer goes through the proxy. Those to link-local addresses, where clouds have credentials, do not.
    let usesProxy: Bool
    /// Called with the address that is about to be connected to, or is; false if it has to wait.
    var joins: (IPAddress) -> Bool = { _ in true }
    /// Whether the network of the last address has all it may have. The transfer is then put back into the queue.
    private(set) var mustWait = false
    /// Set from any thread; a cancellation may come before the submission.
    let isCancelled = Atomic(false)
    private let outcome = Mutex(Outcome.open)
    private let priority = Atomic<UInt8>(0)

    /// Why the transfer was aborted; libcurl's own error then only says that a callback refused.
    private(set) var failure: FetchError?
    /// The refused addresses, in the order tried; a failure only if no other address could be connected.
    private(set) var refused: [IPAddress] = []

    /// Seconds from the start to the end; valid once there is a result.
    private(set) var elapsed = 0.0

    private var startedAt = 0.0
    private var connectedAt: Double?
    private var headAt: Double?
    private var windowStart = 0.0
    private var windowBytes = 0
    /// Bytes since the start, of heads and body.
    private(set) var received = 0
    private var requestTime = 0.0
    private var responseTime = 0.0
    private var status = 0
    private var fields: [HeaderField] = []
    private var headBytes = 0
    private var expectsStatusLine = true
    private var interims = 0
    private var body: BodyCollector
    /// Whether `body` continues where an earlier attempt broke off.
    private var isContinued = false
    private var expected: Int?
    /// Whether the head is that of a followed redirect, whose body is discarded.
    private var isFollowedRedirect = false
    private var reported = 0
    private var skipped = 0
    /// Whether enough has arrived to continue although the transfer is not done: a redirect with a long body.
    private(set) var hasEnough = false
    /// Whether a name is being looked up on a thread of libcurl.
    var isResolving = false
    /// Whether the body waits until a part of it is written.
    private(set) var isPaused = false
    /// Whether a part of the body is being written on another thread.
    var isWriting: Bool { body.isWriting }

    init(_ request: TransferRequest, _ settings: TransferSettings) {
        self.request = request
        self.settings = settings
        origin = request.url.origin
        let configuration = settings.configuration
        let named = AddressPolicy.named(request.url)
        address = named.count == 1 && configuration.proxy == nil && configuration.unixSocket == nil ? named[0] : nil
        usesProxy = configuration.proxy != nil && !named.contains { AddressPolicy.classify($0) == .linkLocal }
        body = BodyCollector(
            folder: configuration.spoolFolder, spoolBytes: configuration.spoolBytes, floor: configuration.spoolFloor,
            beforeWriting: request.hooks.beforeSpooling)
    }

    /// Its name. Names ascend in the order of creation.
    let id = lastID.add(1, ordering: .relaxed).newValue
    private static let lastID = Atomic<UInt64>(0)

    /// How urgent it is: the raw value of a `TaskPriority`.
    var urgency: UInt8 { priority.load(ordering: .relaxed) }

    /// Makes it at least this urgent.
    func raise(to priority: UInt8) { self.priority.max(priority, ordering: .relaxed) }

    /// Marks the start, from which limits count.
    ///
    /// - Parameter isCrowded: whether so many are under way that each keeps little in memory.
    func start(isCrowded: Bool = false, now: Double) {
        mustWait = false
        if isCrowded { body.keepLittle() }
        startedAt = now
        requestTime = SystemClock.unix.seconds
    }

    /// Delivers the result to the waiter, if there is one. Only the first result counts.
    func complete(_ result: Result<RawResponse, FetchError>) {
        let seconds = startedAt > 0 ? SystemClock.monotonic.seconds - startedAt : 0
        // An unsafe continuation does not check that it is resumed only once; leaving `awaited` ensures that.
        let waiter: UnsafeContinuation<Void, Never>? = outcome.withLock { outcome in
            switch outcome {
            case .open, .awaited:
                let waiter: UnsafeContinuation<Void, Never>? =
                    if case .awaited(let continuation) = outcome { continuation } else { nil }
                elapsed = seconds
                outcome = .there(result)
                return waiter
            case .there, .taken: return nil
            }
        }
        waiter?.resume()
    }

    /// Waits for the result. May be called once.
    func result() async -> Result<RawResponse, FetchError> {
        await withUnsafeContinuation { continuation in
            let isThere = outcome.withLock { outcome in
                guard case .open = outcome else { return true }
                outcome = .awaited(continuation)
                return false
            }
            if isThere { continuation.resume() }
        }
        return outcome.withLock { outcome in
            guard case .there(let result) = outcome else {
                return .failure(FetchError(.cancelled, request.url, "its result was already read"))
            }
            outcome = .taken
            return result
        }
    }

    /// Keeps the first failure; returns false, which aborts the transfer.
    func fail(_ code: FetchError.Code, _ problem: String) -> Bool {
        if failure == nil { failure = FetchError(code, request.url, problem) }
        return false
    }

    /// Whether the request was or may have been sent.
    var isConnected: Bool { connectedAt != nil }
    /// Whether the head of the final response was complete.
    var hasHead: Bool { headAt != nil }

    /// The error with the part that has arrived, if another attempt may request the rest.
    func keepingPart(_ error: FetchError) -> FetchError {
        let resumable = [FetchError.Code.transport, .truncated, .stalled, .timeout]
        guard headAt != nil, status == 200, resumable.contains(error.code), !request.expectsPart, !isWriting else {
            return error
        }
        var error = error
        error.partial = PartialResponse(url: request.url, fields: fields, total: expected, body: body)
        return error
    }

    /// The response, once libcurl reports the transfer as done.
    func response() -> Result<RawResponse, FetchError> {
        if let failure { return .failure(failure) }
        guard headAt != nil else {
            return .failure(FetchError(.transport, request.url, "the connection ended before the head did"))
        }
        if usesProxy, status == 407 { return .failure(.byProxy(status, self)) }
        if reported < body.count { request.onProgress?(body.count, expected) }
        fields.keepEndToEnd()
        if isContinued, body.count != expected {
            return .failure(FetchError(.partMismatch, request.url, "the rest of the body has a different length"))
        }
        return .success(
            RawResponse(
                status: status, fields: fields, body: body, requestTime: requestTime,
                responseTime: responseTime))
    }

    /// Seconds since it was connected; nil before that.
    func waited(now: Double) -> Double? { connectedAt.map { now - $0 } }

    /// Whether any address may be connected to: the caller trusts the host, or the operator chose the peer.
    var isAdmitted: Bool { request.isTrusted || usesProxy || configuration.unixSocket != nil }

    /// Whether a connection to the address may be made; records a refusal for the error.
    func admits(_ address: IPAddress?, port: Int) -> Bool {
        guard let address else { return false }
        if isAdmitted || settings.addresses.allows(address, port: port) { return true }
        refused.append(address)
        return false
    }

    /// Whether its network has room for it. A proxy and a socket stand for any number of origins.
    func enters(_ address: IPAddress?) -> Bool {
        guard let address, !usesProxy, configuration.unixSocket == nil else { return true }
        mustWait = !joins(address)
        return !mustWait
    }

    /// Called when connected, TLS included, just before the request is sent. Returns false to prevent that.
    func connected(now: Double) -> Bool {
        // libcurl itself repeats a request if a reused connection is closed without a response.
        if connectedAt != nil, configuration.retries == 0 {
            return fail(.transport, "the origin closed a reused connection without a response, and `retries` is 0")
        }
        connectedAt = now
        requestTime = SystemClock.unix.seconds
        return true
    }

    /// The error for a limit that has been exceeded at `now` (monotonic seconds); nil if none has.
    ///
    /// - Parameter sending: bytes of the request's body that have been sent, and whether more are on their way.
    func overdue(
        now: Double, sending: @autoclosure () -> (bytes: Int, isUnderWay: Bool)
    ) -> FetchError? {
        if now - startedAt >= request.totalSeconds {
            return FetchError(
                .timeout, request.url,
                "not complete within \(seconds(request.totalSeconds)) in total (`fetch.totalSeconds`)")
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
                // Sending takes as long as the origin takes to read. The total time is bounded, or else each pause.
                guard !request.totalSeconds.isFinite else { return nil }
                let (sent, isUnderWay) = sending()
                if windowStart == 0 { windowStart = connectedAt }
                if sent - windowBytes >= configuration.leastProgress { (windowStart, windowBytes) = (now, sent) }
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
        if windowBytes < configuration.leastProgress { return stalled("the body", windowBytes, after: body.count) }
        windowStart = now
        windowBytes = 0
        return nil
    }

    private func stalled(_ what: String, _ bytes: Int, after count: Int) -> FetchError {
        FetchError(
            .stalled, request.url,
            "\(what) slowed to \(bytes) bytes in \(seconds(configuration.stallSeconds)), after \(count) bytes "
                + "(`fetch.stallSeconds`)")
    }

    /// Receives one line of a head with its line ending. Returns false to abort.
    func receive(line: UnsafeRawBufferPointer) -> Bool {
        headBytes += line.count
        received += line.count
        guard headBytes <= configuration.headByteLimit else {
            return fail(.protocolViolation, "head and trailers are longer than \(configuration.headByteLimit) bytes")
        }
        // After the final head only trailers follow; they are not merged (RFC 9110 §6.5.1).
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

    /// The status of `HTTP/1.1 200 OK`; 0 if it is not three digits.
    private static func status(_ line: UnsafeRawBufferPointer) -> Int {
        guard var index = line.firstIndex(of: 0x20) else { return 0 }
        while index < line.count, line[index] == 0x20 { index += 1 }
        let digits = line[index...].prefix { $0 != 0x20 }
        guard digits.count == 3, digits.allSatisfy(SourceURL.isDigit) else { return 0 }
        return digits.reduce(0) { $0 * 10 + Int($1 - 0x30) }
    }

    /// Receives a field line. A malformed line is ignored, as browsers do, unless it concerns the framing of the body,
    /// which must not be guessed.
    private func receive(field line: UnsafeRawBufferPointer) -> Bool {
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { return true }
        let name = String(decoding: UnsafeRawBufferPointer(rebasing: line[..<colon]), as: UTF8.self)
        guard FieldSyntax.isToken(name) else {
            if ["content-length", "transfer-encoding"].contains(FieldLines.trimmed(name).lowercased()) {
                // Other recipients may ignore the space and so read another length (RFC 9112 §5.1).
                return fail(.protocolViolation, "the origin sent a space inside a field that frames the body")
            }
            return true
        }
        guard fields.count < FetchConfiguration.fieldLimit else {
            return fail(.protocolViolation, "the head has more than \(FetchConfiguration.fieldLimit) fields")
        }
        fields.append(HeaderField(name, Self.value(UnsafeRawBufferPointer(rebasing: line[(colon + 1)...]))))
        return true
    }

    /// A value as text, without surrounding whitespace. Characters that could end a line or a string elsewhere become
    /// spaces (RFC 9110 §5.5).
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
            return fail(.protocolViolation, "the origin switched protocols (101), which was not asked for")
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
            // 100 concerns this connection only (RFC 9110 §15.2.1).
            if status != 100 { request.onInterim?.report(status, fields.endToEnd()) }
            return true
        }
        guard receiveFraming() else { return false }
        headAt = now
        (windowStart, windowBytes) = (now, 0)
        responseTime = SystemClock.unix.seconds
        isFollowedRedirect =
            request.followsRedirects && CurlTransport.redirectStatuses.contains(status)
            && fields.first("location") != nil
        return true
    }

    /// Checks what the head says about the length and coding of the body.
    private func receiveFraming() -> Bool {
        // Most heads have only one of the two, and only once.
        var codings: [String] = []
        var lengths: [String] = []
        for field in fields {
            if FieldLines.isSameName(field.name, "transfer-encoding") { codings.append(field.value) }
            if FieldLines.isSameName(field.name, "content-length") { lengths.append(field.value) }
        }
        if !codings.isEmpty, !lengths.isEmpty {
            // One of them is a lie, and others may believe the other (RFC 9112 §6.3).
            return fail(.protocolViolation, "the origin sent both Content-Length and Transfer-Encoding")
        }
        guard codings.isEmpty || (codings.count == 1 && codings[0].lowercased() == "chunked") else {
            return fail(
                .protocolViolation, "the origin sent a transfer coding other than chunked, which was not asked for")
        }
        if lengths.count > 1 || lengths.first?.utf8.contains(UInt8(ascii: ",")) == true {
            return fail(.protocolViolation, "the origin sent more than one Content-Length")
        }
        var length: Int?
        if let text = lengths.first {
            guard !text.isEmpty, text.utf8.count <= 18, text.utf8.allSatisfy(SourceURL.isDigit), let given = Int(text)
            else {
                return fail(.protocolViolation, "the origin sent a malformed Content-Length")
            }
            length = given
        }
        guard receivePart(length) else { return false }
        if let length, status != 304, status != 204 {
            let whole = length + (isContinued ? body.count : 0)
            expected = whole
            guard whole <= request.byteLimit else {
                return fail(.tooLarge, "the body is \(whole) bytes, the limit is \(request.byteLimit) (`limits.bytes`)")
            }
            if !isContinued { body.reserve(whole) }
        }
        return true
    }

    /// Accepts a 206 as the rest of an interrupted body, or as the part that the caller requested.
    private func receivePart(_ length: Int?) -> Bool {
        guard let partial = request.resuming else {
            guard status == 206, !request.expectsPart else { return true }
            return fail(.protocolViolation, "the origin sent a part (206), which was not asked for")
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

    private static let lost = "the received part cannot be read back from the spool file; is the disk healthy?"

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
        guard body.count + piece.count <= request.byteLimit else {
            return fail(
                .tooLarge,
                "the body is longer than \(request.byteLimit) bytes (`limits.bytes`); it was cut off there")
        }
        body.add(piece)
        if reported == 0 || body.count - reported >= 65_536 {
            reported = body.count
            request.onProgress?(body.count, expected)
        }
        return true
    }

    // MARK: Writing

    /// Whether the next piece has to come again after the write under way.
    func pauses() -> Bool {
        isPaused = body.isFull
        return isPaused
    }

    /// Begins the write of a part of the body that is due, for another thread; returns nil if no write is due.
    func nextWrite() -> BodyCollector.Write? { body.nextWrite() }

    /// Begins the last write of a complete body; returns nil once the body is where the request wants it.
    func lastWrite() -> BodyCollector.Write? {
        request.acceptsFile ? body.nextWrite(isComplete: true) : body.loading()
    }

    /// Takes the outcome of a write. Returns false if the body is lost.
    func take(_ written: BodyCollector.Written, now: Double) -> Bool {
        // The origin could not send meanwhile.
        (windowStart, windowBytes) = (now, 0)
        return body.take(written) || fail(.transport, Self.lost)
    }

    private func seconds(_ value: Double) -> String {
        value == value.rounded() ? "\(Int(value)) s" : "\(Int((value * 1000).rounded())) ms"
    }
}
