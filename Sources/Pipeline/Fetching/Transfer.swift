import Glibc
import Synchronization

/// A response as it came over one connection, before redirects are looked at.
struct RawResponse: Sendable {
    var status: Int
    var fields: [HeaderField]
    var body: [UInt8]
    var requestTime: Double
    var responseTime: Double
}

/// What one hop of a fetch needs.
struct TransferRequest: Sendable {
    var url: SourceURL
    /// Lines `Name: value`, checked for control characters.
    var lines: [String]
    var expectsPart: Bool
    var byteLimit: Int
    /// Seconds left of the fetch when the hop starts.
    var totalSeconds: Double
    var onProgress: (@Sendable (_ received: Int, _ expected: Int?) -> Void)?
}

/// One hop under way: what has arrived, and which limits it runs into.
///
/// `@unchecked Sendable`: from when it is handed to the loop until `finish` is called everything belongs to the loop's
/// thread; handing over and finishing go through locks.
final class Transfer: @unchecked Sendable {
    let request: TransferRequest
    let configuration: FetchConfiguration
    let addresses: AddressPolicy
    /// Set from any thread; a cancellation may overtake the handing over.
    let isCancelled = Atomic(false)
    private let finish: @Sendable (Result<RawResponse, FetchError>) -> Void

    /// Why the transfer was given up; libcurl's own error then only says that a callback refused.
    private(set) var failure: FetchError?
    /// The last address refused; a failure only if no other could be connected.
    private(set) var refused: String?

    /// Seconds from the start to the end; read once the result is there.
    private(set) var elapsed = 0.0

    private var startedAt = 0.0
    private var connectedAt: Double?
    private var headAt: Double?
    private var windowStart = 0.0
    private var windowBytes = 0
    private var requestTime = 0.0
    private var responseTime = 0.0
    private var status = 0
    private var fields: [HeaderField] = []
    private var headBytes = 0
    private var body: [UInt8] = []
    private var expected: Int?
    private var reported = 0

    init(
        _ request: TransferRequest, configuration: FetchConfiguration,
        finish: @escaping @Sendable (Result<RawResponse, FetchError>) -> Void
    ) {
        self.request = request
        self.configuration = configuration
        addresses = AddressPolicy(configuration.allowPrivateAddresses)
        self.finish = finish
    }

    /// Marks the start, from which limits count.
    func start(now: Double) {
        startedAt = now
        requestTime = unixNow()
    }

    /// Gives the result to whoever waits for it.
    func complete(_ result: Result<RawResponse, FetchError>) {
        if startedAt > 0 { elapsed = monotonicNow() - startedAt }
        finish(result)
    }

    func fail(_ code: FetchError.Code, _ problem: String) {
        if failure == nil { failure = FetchError(code, request.url, problem) }
    }

    /// The response, once libcurl says the transfer is done.
    func response() -> Result<RawResponse, FetchError> {
        if let failure { return .failure(failure) }
        guard headAt != nil else {
            return .failure(FetchError(.protocolViolation, request.url, "the origin sent no complete head"))
        }
        if reported < body.count { request.onProgress?(body.count, expected) }
        var kept = fields.endToEnd()
        if fields.first("transfer-encoding") != nil {
            // Transfer-Encoding overrides a Content-Length, which then says nothing (RFC 9112 §6.3).
            kept.removeAll { $0.name.lowercased() == "content-length" }
        }
        return .success(
            RawResponse(
                status: status, fields: kept, body: body, requestTime: requestTime,
                responseTime: responseTime))
    }

    /// Whether a connection to the address may be made; keeps the refusal for the error.
    func admits(_ address: IPAddress?, port: Int) -> Bool {
        guard let address else { return false }
        if addresses.allows(address, port: port) { return true }
        refused = "\(address) (\(AddressPolicy.classify(address).rawValue))"
        return false
    }

    /// Connected, TLS included; the request is about to be sent.
    func connected(now: Double) {
        connectedAt = now
        requestTime = unixNow()
    }

    /// The error for a limit that has run out at `now` (monotonic seconds); nil while none has.
    func overdue(now: Double) -> FetchError? {
        if now - startedAt >= request.totalSeconds {
            return FetchError(
                .timeout, request.url,
                "not complete within \(seconds(request.totalSeconds)) in total (`fetch.totalSeconds`)")
        }
        guard let connectedAt else {
            guard now - startedAt >= configuration.connectSeconds else { return nil }
            return FetchError(
                .connectTimeout, request.url,
                "not connected within \(seconds(configuration.connectSeconds)) (`fetch.connectSeconds`)")
        }
        guard headAt != nil else {
            guard now - connectedAt >= configuration.headerSeconds else { return nil }
            return FetchError(
                .timeout, request.url,
                "no response within \(seconds(configuration.headerSeconds)) (`fetch.headerSeconds`)")
        }
        guard now - windowStart >= configuration.stallSeconds else { return nil }
        let isStalled = Double(windowBytes) < Double(configuration.stallRate) * configuration.stallSeconds
        if isStalled {
            return FetchError(
                .stalled, request.url,
                """
                the body slowed to \(windowBytes) bytes in \(seconds(configuration.stallSeconds)), after \
                \(body.count) bytes (`fetch.stallSeconds`)
                """)
        }
        windowStart = now
        windowBytes = 0
        return nil
    }

    /// One line of a head with its line end. Returns false to give up.
    func receive(line: UnsafeRawBufferPointer, now: Double) -> Bool {
        // After the final head only trailers come; they are not merged (RFC 9110 §6.5.1).
        if headAt != nil { return true }
        headBytes += line.count
        guard headBytes <= configuration.headByteLimit else {
            fail(.protocolViolation, "the head is longer than \(configuration.headByteLimit) bytes")
            return false
        }
        var bytes = line[...]
        while let last = bytes.last, last == 0x0A || last == 0x0D || last == 0x20 || last == 0x09 {
            bytes.removeLast()
        }
        if bytes.starts(with: "HTTP/".utf8) {
            let parts = String(decoding: bytes, as: UTF8.self).split(separator: " ", maxSplits: 2)
            status = parts.count > 1 ? Int(parts[1]) ?? 0 : 0
            fields = []
            return true
        }
        if bytes.isEmpty { return endOfHead(now: now) }
        if let first = bytes.first, first == 0x20 || first == 0x09 {
            // A folded line continues the value before it (RFC 9112 §5.2).
            guard !fields.isEmpty else { return true }
            fields[fields.count - 1].value += " " + FieldLines.trimmed(String(decoding: bytes, as: UTF8.self))
            return true
        }
        guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")) else { return true }
        let name = String(decoding: UnsafeRawBufferPointer(rebasing: bytes[..<colon]), as: UTF8.self)
        let value = String(decoding: UnsafeRawBufferPointer(rebasing: bytes[(colon + 1)...]), as: UTF8.self)
        fields.append(HeaderField(name, FieldLines.trimmed(value)))
        return true
    }

    private func endOfHead(now: Double) -> Bool {
        if status == 101 {
            fail(.protocolViolation, "the origin switched protocols (101), which was not asked for")
            return false
        }
        guard status >= 100 else {
            fail(.protocolViolation, "the origin sent no proper status")
            return false
        }
        if status < 200 { return true }
        if status == 206, !request.expectsPart {
            fail(.protocolViolation, "the origin sent a part (206), which was not asked for")
            return false
        }
        let lengths = fields.values(of: "content-length").flatMap(FieldLines.members)
        if lengths.count > 1 {
            fail(.protocolViolation, "the origin sent more than one Content-Length")
            return false
        }
        if let text = lengths.first {
            guard text.utf8.count <= 18, text.utf8.allSatisfy(SourceURL.isDigit), let length = Int(text) else {
                fail(.protocolViolation, "the origin sent a malformed Content-Length")
                return false
            }
            if fields.first("transfer-encoding") == nil, status != 304 {
                expected = length
                guard length <= request.byteLimit else {
                    fail(.tooLarge, "the body is \(length) bytes, the limit is \(request.byteLimit) (`limits.bytes`)")
                    return false
                }
                // An announced length is not yet a body: what is not sent shall not cost memory.
                body.reserveCapacity(min(length, 1 << 20))
            }
        }
        headAt = now
        windowStart = now
        responseTime = unixNow()
        return true
    }

    /// A piece of body. Returns false to give up.
    func receive(body piece: UnsafeRawBufferPointer) -> Bool {
        guard body.count + piece.count <= request.byteLimit else {
            fail(
                .tooLarge,
                "the body is longer than \(request.byteLimit) bytes (`limits.bytes`); it was cut off there")
            return false
        }
        body.append(contentsOf: piece)
        windowBytes += piece.count
        if reported == 0 || body.count - reported >= 65_536 {
            reported = body.count
            request.onProgress?(body.count, expected)
        }
        return true
    }

    private func seconds(_ value: Double) -> String {
        value == value.rounded() ? "\(Int(value)) s" : "\(Int((value * 1000).rounded())) ms"
    }
}

/// Seconds since 1970.
func unixNow() -> Double { clock(CLOCK_REALTIME) }

/// Seconds on a clock that is never set.
func monotonicNow() -> Double { clock(CLOCK_MONOTONIC) }

private func clock(_ id: clockid_t) -> Double {
    var time = timespec()
    clock_gettime(id, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}
