import Synchronization

/// Fetches over libcurl's multi interface on one thread of its own, started by the first fetch.
///
/// Connections are kept and reused; every transport has its own, so that one with a laxer address rule never lends a
/// connection to another. Redirects are followed here, each hop admitted like a first request.
public final class CurlTransport: Transport {
    private enum State {
        case idle
        case running(CurlLoop)
        case stopped
    }

    /// The settings it was made with.
    public let configuration: FetchConfiguration
    private let state = Mutex(State.idle)

    /// A transport; nothing is started before the first fetch.
    public init(_ configuration: FetchConfiguration = FetchConfiguration()) { self.configuration = configuration }

    deinit { shutdown() }

    /// Ends what is under way with `cancelled` and waits for the thread. Later fetches fail; calling again does nothing.
    public func shutdown() {
        let loop: CurlLoop? = state.withLock { state in
            defer { state = .stopped }
            if case .running(let loop) = state { return loop }
            return nil
        }
        loop?.stop()
    }

    public func fetch(
        _ request: FetchRequest, onProgress: (@Sendable (_ received: Int, _ expected: Int?) -> Void)?
    ) async throws(FetchError) -> FetchedResponse {
        var url = request.url
        var fields = request.fields
        var visited: [SourceURL] = []
        var passed: [StoredResponse] = []
        var spent = 0.0
        let total = request.totalSeconds ?? configuration.totalSeconds
        while true {
            let (response, seconds) = try await hop(
                to: url, fields: fields, request: request, totalSeconds: total - spent, onProgress: onProgress)
            spent += seconds
            guard request.followsRedirects, [301, 302, 303, 307, 308].contains(response.status),
                let location = response.fields.first("location")
            else {
                var answer = FetchedResponse(
                    status: response.status, fields: response.fields, body: response.body,
                    requestTime: response.requestTime, responseTime: response.responseTime, finalURL: url,
                    milliseconds: spent * 1000, redirects: visited)
                answer.redirectResponses = passed
                return answer
            }
            visited.append(url)
            passed.append(
                StoredResponse(
                    status: response.status, fields: response.fields, requestTime: response.requestTime,
                    responseTime: response.responseTime))
            let next = try Self.target(of: location, from: url)
            guard visited.count <= configuration.redirects else {
                throw FetchError(
                    .tooManyRedirects, request.url,
                    "more than \(configuration.redirects) redirects (`fetch.redirects`), the last to \(next.redacted)")
            }
            guard !visited.contains(where: { $0.normalised == next.normalised }) else {
                throw FetchError(.tooManyRedirects, request.url, "a loop of redirects through \(next.redacted)")
            }
            if next.origin != url.origin { fields = Self.withoutCredentials(fields) }
            url = next
        }
    }

    private static func target(of location: String, from url: SourceURL) throws(FetchError) -> SourceURL {
        do {
            return try url.resolving(location)
        } catch {
            throw FetchError(.badRedirect, url, "it redirects to what cannot be fetched: \(error.message)")
        }
    }

    /// Fields that must not reach another origin than the one they were meant for (RFC 9110 §15.4).
    private static func withoutCredentials(_ fields: [HeaderField]) -> [HeaderField] {
        fields.filter { !["authorization", "cookie", "proxy-authorization"].contains($0.name.lowercased()) }
    }

    /// One request and its response, and the seconds it took from leaving the queue.
    private func hop(
        to url: SourceURL, fields: [HeaderField], request: FetchRequest, totalSeconds: Double,
        onProgress: (@Sendable (_ received: Int, _ expected: Int?) -> Void)?
    ) async throws(FetchError) -> (RawResponse, Double) {
        let lines = try Self.lines(fields, url)
        let loop = try running(url)
        let hop = TransferRequest(
            url: url, lines: lines, expectsPart: fields.first("range") != nil,
            byteLimit: request.byteLimit ?? configuration.byteLimit, totalSeconds: max(totalSeconds, 0),
            onProgress: onProgress)
        let outcome = TransferOutcome()
        let transfer = Transfer(hop, configuration: configuration) { outcome.set($0) }
        let result: Result<RawResponse, FetchError>
        if Task.isCancelled {
            result = .failure(FetchError(.cancelled, url, "cancelled"))
        } else {
            result = await withTaskCancellationHandler {
                loop.submit(transfer)
                return await outcome.get()
            } onCancel: {
                loop.cancel(transfer)
            }
        }
        return (try result.get(), transfer.elapsed)
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

    /// Lines for libcurl. Fields of the connection are ours to write and left out.
    private static func lines(_ fields: [HeaderField], _ url: SourceURL) throws(FetchError) -> [String] {
        var lines = fields.first("accept") == nil ? ["Accept: image/*, */*;q=0.5"] : []
        let own = FieldLines.hopByHop.union(["host", "content-length", "expect"])
        for field in fields where !own.contains(field.name.lowercased()) {
            let isToken = !field.name.isEmpty && field.name.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != 0x3A }
            let isValue = field.value.utf8.allSatisfy { $0 == 0x09 || ($0 >= 0x20 && $0 != 0x7F) }
            guard isToken, isValue else {
                throw FetchError(
                    .protocolViolation, url, "the request field `\(field.name)` holds what no field may hold")
            }
            // libcurl takes "Name:" as an order to leave the field out, "Name;" as one to send it empty.
            lines.append(field.value.isEmpty ? "\(field.name);" : "\(field.name): \(field.value)")
        }
        return lines
    }
}

/// A result that one thread sets and one task awaits.
private final class TransferOutcome: Sendable {
    private enum State {
        case empty
        case waiting(CheckedContinuation<Result<RawResponse, FetchError>, Never>)
        case set(Result<RawResponse, FetchError>)
        case taken
    }

    private let state = Mutex(State.empty)

    func set(_ result: Result<RawResponse, FetchError>) {
        let waiter: CheckedContinuation<Result<RawResponse, FetchError>, Never>? = state.withLock { state in
            switch state {
            case .waiting(let continuation):
                state = .taken
                return continuation
            case .empty:
                state = .set(result)
                return nil
            case .set, .taken:
                return nil
            }
        }
        waiter?.resume(returning: result)
    }

    func get() async -> Result<RawResponse, FetchError> {
        await withCheckedContinuation { continuation in
            let ready: Result<RawResponse, FetchError>? = state.withLock { state in
                if case .set(let result) = state {
                    state = .taken
                    return result
                }
                state = .waiting(continuation)
                return nil
            }
            if let ready { continuation.resume(returning: ready) }
        }
    }
}
