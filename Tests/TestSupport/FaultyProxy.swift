import Glibc
import Synchronization

/// Forwards requests from a client to a server on loopback, and injects the faults that a test selects.
public final class FaultyProxy: Sendable {
    /// A fault that is injected into a request.
    public enum Fault: Sendable {
        case none
        /// No response is sent.
        case silence
        /// The connection closes without a response.
        case refusal
        /// The connection closes after half of the body.
        case cut
        /// One bit of the body is flipped.
        case flip
        /// The first response to the same request is sent, regardless of its age.
        case stale
        /// A 503 is sent, as by a store that is overloaded.
        case busy
        /// A 400 is sent, as by a store when credentials have expired.
        case expired
    }

    private struct State {
        var fault = Fault.none
        var interval = 1
        var count = 0
        var first: [String: [UInt8]] = [:]
        var faults = 0
        var heldText: (text: String, gate: BlockingGate)?
        var held = 0
    }

    private let state = Mutex(State())
    private let origin: LoopbackOrigin
    private let port: UInt16

    /// - Parameter server: The server's URL, `http://127.0.0.1:PORT`.
    public init(_ server: String) throws {
        let port = server.split(separator: ":").last.flatMap { UInt16($0) } ?? 0
        self.port = port
        let handler = Mutex<(@Sendable (OriginRequest) -> OriginReply)?>(nil)
        let box = Box(handler: handler)
        origin = try LoopbackOrigin { request in box.handler.withLock(\.self)?(request) ?? .close }
        box.handler.withLock { $0 = { [weak self] request in self?.answer(request) ?? .close } }
    }

    private final class Box: Sendable {
        let handler: Mutex<(@Sendable (OriginRequest) -> OriginReply)?>
        init(handler: consuming sending Mutex<(@Sendable (OriginRequest) -> OriginReply)?>) { self.handler = handler }
    }

    /// The URL that clients connect to.
    public var endpoint: String { origin.url("") }
    /// The number of injected faults.
    public var faults: Int { state.withLock(\.faults) }
    /// The number of requests received.
    public var requests: Int { origin.requests.count }

    /// Injects a fault into every nth request from now on.
    public func does(_ fault: Fault, every interval: Int = 1) {
        state.withLock { ($0.fault, $0.interval, $0.count) = (fault, interval, 0) }
    }

    /// Delays the responses to requests that contain a string in their first line. Returns a gate that releases them.
    public func hold(_ text: String) -> BlockingGate {
        let gate = BlockingGate()
        state.withLock { $0.heldText = (text, gate) }
        return gate
    }

    /// The number of delayed responses.
    public var held: Int { state.withLock(\.held) }

    public func stop() { origin.stop() }

    private func answer(_ request: OriginRequest) -> OriginReply {
        let fault = state.withLock { state in
            state.count += 1
            guard state.count % state.interval == 0 else { return Fault.none }
            if case .none = state.fault { return .none }
            state.faults += 1
            return state.fault
        }
        switch fault {
        case .silence: return .hang
        case .refusal: return .close
        case .busy: return .response(503, body: Array("<Error><Code>SlowDown</Code></Error>".utf8))
        case .expired: return .response(400, body: Array("<Error><Code>ExpiredToken</Code></Error>".utf8))
        case .none, .cut, .flip, .stale: break
        }
        var bytes = Self.exchange(request, port)
        let gate = state.withLock { state -> BlockingGate? in
            guard let (text, gate) = state.heldText, "\(request.method) \(request.target)".contains(text) else {
                return nil
            }
            state.held += 1
            return gate
        }
        if let gate { return OriginReply(parts: [.wait(gate), .bytes(bytes)], keepsAlive: false) }
        guard let body = Self.body(of: bytes), !body.isEmpty else { return Self.reply(bytes) }
        let name = "\(request.method) \(request.target)"
        let first = state.withLock { state in
            if state.first[name] == nil { state.first[name] = bytes }
            return state.first[name]
        }
        switch fault {
        case .cut: bytes.removeLast(body.count - body.count / 2)
        case .flip: bytes[body.lowerBound + body.count / 2] ^= 4
        case .stale: bytes = first ?? bytes
        case .none, .silence, .refusal, .busy, .expired: break
        }
        return Self.reply(bytes)
    }

    private static func reply(_ bytes: [UInt8]) -> OriginReply {
        OriginReply(parts: [.bytes(bytes)], keepsAlive: false)
    }

    /// Returns the range of a response's body, or nil if the response headers are incomplete.
    private static func body(of bytes: [UInt8]) -> Range<Int>? {
        let end = Array("\r\n\r\n".utf8)
        return (0..<max(0, bytes.count - 3)).first { bytes[$0] == end[0] && Array(bytes[$0..<($0 + 4)]) == end }
            .map { ($0 + 4)..<bytes.count }
    }

    /// Sends a request on a new connection and returns all received bytes.
    private static func exchange(_ request: OriginRequest, _ port: UInt16) -> [UInt8] {
        // HTTP/1.0 responses are never chunked.
        var head = "\(request.method) \(request.target) HTTP/1.0\r\n"
        for line in request.lines where line.name != "connection" { head += "\(line.name): \(line.value)\r\n" }
        let socket = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard socket >= 0 else { return [] }
        defer { close(socket) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        inet_pton(AF_INET, "127.0.0.1", &address.sin_addr)
        let isConnected = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
        guard isConnected else { return [] }
        var rest = (Array((head + "\r\n").utf8) + request.body)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            guard count > 0 else { return [] }
            rest = rest.dropFirst(count)
        }
        var (all, buffer) = ([UInt8](), [UInt8](repeating: 0, count: 65_536))
        while case let count = recv(socket, &buffer, buffer.count, 0), count > 0 { all += buffer[..<count] }
        return all
    }
}
