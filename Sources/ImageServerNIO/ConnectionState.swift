import ImageServer
import NIOCore
import NIOHTTP1
import PipelineSupport

/// The state machine of one HTTP/1.1 connection, independent of channels, clocks and I/O. `ConnectionHandler` reports
/// events and performs the actions that it receives in return.
///
/// Requests are answered one at a time and in order. Parsed parts of later requests wait in `queue`. The connection
/// does not read while it sends a response, so a client that sends faster than it reads only fills its own buffers.
///
/// After each event, call `next` until it returns nil.
struct ConnectionState {
    /// An event from the parser.
    enum Item {
        case part(HTTPServerRequestPart)
        /// The bytes are not a request.
        case refusal(Problem)
    }

    enum Action {
        /// Check a request, then call `receive`, `sends` or `refuse`.
        case begin(HTTPRequestHead)
        /// Pass the request to the site. The number identifies interim responses to this request.
        case answer(ServerRequest, number: Int)
        /// Send this problem as the last response.
        case refuse(Problem, isHead: Bool)
        /// Wait for a request.
        case rest
        case read
        /// Close the sending side, and read and discard what the client still sends, so that the client reads the
        /// response before it receives a reset (RFC 9112 §9.6).
        case linger
        case close
        /// Close without waiting until the client has received all data.
        case abort
    }

    private struct Body {
        let isWanted: Bool
        let limit: Int
        var count = 0
    }

    private enum Phase {
        /// The connection is between requests, or request headers are arriving.
        case waiting
        /// The body is arriving. Unless the body is needed, it is discarded.
        case receiving(RequestAdmission, Body)
        /// The site is producing the response.
        case answering(RequestAdmission)
        /// The response is being sent.
        case sending
        case lingering
        case closed
    }

    /// The problem that is sent to all requests except probes, or nil if the connection has a slot.
    private let refusal: Problem?
    private var phase = Phase.waiting
    private var queue = CircularBuffer<Item>()
    private(set) var isDraining = false
    /// Whether the connection closes after the current response, so that nothing after the request is read.
    private var isEnding = false
    private var wantsRead = false
    /// The number of requests that were passed to the site.
    private var number = 0

    /// The maximum number of queued parts of pipelined requests. The parts come from one read of the socket.
    static let queueLimit = 16_384

    init(refusal: Problem? = nil) { self.refusal = refusal }

    var isWaiting: Bool { if case .waiting = phase { true } else { false } }
    var isSending: Bool { if case .sending = phase { true } else { false } }

    // MARK: The client

    /// Handles an event from the parser.
    mutating func received(_ item: Item) -> Action? {
        switch phase {
        case .lingering, .closed: return nil
        case .waiting, .receiving, .answering, .sending: break
        }
        if isEnding { return nil }
        guard queue.count < Self.queueLimit else { return .close }
        queue.append(item)
        return nil
    }

    /// Returns whether the channel may read now. If false, `next` returns `read` later.
    mutating func mayRead() -> Bool {
        switch phase {
        case .waiting, .receiving, .lingering: return true
        case .answering, .sending, .closed:
            wantsRead = true
            return false
        }
    }

    /// Handles the end of a response that has been sent completely.
    mutating func sent() -> Action? {
        guard case .sending = phase else { return nil }
        guard isEnding else {
            phase = .waiting
            return .rest
        }
        return linger()
    }

    mutating func closed() {
        phase = .closed
        queue.removeAll()
    }

    // MARK: The server

    /// Returns the next action for the queued parts, or nil if the next event must arrive first.
    mutating func next() -> Action? {
        while isReceiving {
            guard let item = queue.popFirst() else {
                defer { wantsRead = false }
                return wantsRead ? .read : nil
            }
            if let action = process(item) { return action }
        }
        return nil
    }

    /// Accepts a request. The response waits for the request body, unless the body is not read.
    ///
    /// - Parameter bodyLimit: The maximum length of a body that is not an upload, in bytes.
    mutating func receive(_ admission: RequestAdmission, isBodyWanted: Bool, bodyLimit: Int) -> Action? {
        guard admission.keepsAlive || admission.readsBody else { return answer(admission) }
        phase = .receiving(admission, Body(isWanted: isBodyWanted, limit: bodyLimit))
        return nil
    }

    /// Records that a response to the request that has just begun is being sent.
    mutating func sends() { phase = .sending }

    /// Refuses the request. The connection closes afterward, because the beginning of the next request is unknown.
    mutating func refuse(_ problem: Problem, isHead: Bool = false) -> Action {
        isEnding = true
        queue.removeAll()
        phase = .sending
        return .refuse(problem, isHead: isHead)
    }

    /// Whether an interim response belongs to the current request and the client supports interim responses (RFC 9110
    /// §15.2). Late interim responses, for example from a validation in the background, are dropped.
    func takesInterim(_ status: Int, of number: Int) -> Bool {
        guard case .answering(let admission) = phase else { return false }
        return number == self.number && admission.takesInterim && (102..<200).contains(status)
    }

    /// Records that the site has responded. Returns the request and whether another request may follow, or nil if the
    /// connection has closed.
    mutating func answered() -> (RequestAdmission, keepsAlive: Bool)? {
        guard case .answering(var admission) = phase else { return nil }
        if isDraining { isEnding = true }
        phase = .sending
        // Frees the memory of an upload, which the log would otherwise keep until it has written its line.
        (admission.request.body, admission.request.intake) = ([], nil)
        return (admission, !isEnding)
    }

    /// Prepares to close the connection because the server is stopping. The connection closes after the current or next
    /// response.
    mutating func drain(isHeadBegun: Bool) -> Action? {
        isDraining = true
        guard case .waiting = phase, !isHeadBegun else { return nil }
        return .rest
    }

    /// Handles a timeout of the client.
    ///
    /// - Parameter idleSeconds: How long the connection has waited, in seconds.
    mutating func timeIsUp(isHeadBegun: Bool, idleSeconds: Double) -> Action? {
        switch phase {
        case .waiting where refusal != nil: return refusal.map { refuse($0) }
        case .waiting where !isHeadBegun: return isDraining ? linger() : .close
        case .waiting, .receiving:
            return refuse(
                Problem(
                    .requestTimeout,
                    "the request was not complete within \(JSONText.number(idleSeconds)) s (`server.idleSeconds`)"))
        case .sending: return .abort
        case .lingering: return .close
        case .answering, .closed: return nil
        }
    }

    // MARK: Private

    private var isReceiving: Bool {
        switch phase {
        case .waiting, .receiving: true
        case .answering, .sending, .lingering, .closed: false
        }
    }

    private mutating func process(_ item: Item) -> Action? {
        switch item {
        case .refusal(let problem): return refuse(problem)
        case .part(.head(let head)): return .begin(head)
        case .part(.body(let bytes)):
            guard case .receiving(var admission, var body) = phase else { return nil }
            body.count += bytes.readableBytes
            if case .upload(let permit)? = admission.request.intake {
                do throws(Problem) { try permit.reserve(body.count) } catch {
                    admission.refuseBody(error)
                    return answer(admission)
                }
            } else if body.count > body.limit {
                return refuse(Site.bodyTooLarge(body.limit))
            }
            // Releases the phase's reference first, to avoid a copy of the body.
            phase = .waiting
            if body.isWanted { admission.request.body.append(contentsOf: bytes.readableBytesView) }
            phase = .receiving(admission, body)
            return nil
        case .part(.end):
            guard case .receiving(let admission, _) = phase else { return nil }
            return answer(admission)
        }
    }

    private mutating func answer(_ admission: RequestAdmission) -> Action {
        isEnding = !admission.keepsAlive || refusal != nil
        number += 1
        phase = .answering(admission)
        return .answer(admission.request, number: number)
    }

    private mutating func linger() -> Action {
        phase = .lingering
        queue.removeAll()
        return .linger
    }
}
