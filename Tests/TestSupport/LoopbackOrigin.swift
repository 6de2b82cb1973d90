import Glibc
import Synchronization

/// A real HTTP/1.1 origin on loopback with responses from a closure. One thread accepts connections, and each
/// connection has its own thread.
public final class LoopbackOrigin: Sendable {
    private struct State {
        var requests: [OriginRequest] = []
        var descriptors: [Int: Int32] = [:]
        var threads: [Int: pthread_t] = [:]
        var finished: [Int] = []
        var nextConnection = 0
        var isStopping = false
    }

    /// The address on which the origin listens.
    public let host: String
    /// The port on which the origin listens.
    public let port: Int
    private let listener: Int32
    private let handler: @Sendable (OriginRequest) -> OriginReply
    private let state = Mutex(State())
    private let acceptor = Mutex<pthread_t?>(nil)

    /// Starts listening.
    ///
    /// - Parameters:
    ///   - host: An IPv4 address of the loopback interface. Default `127.0.0.1`.
    ///   - port: The port. With 0, the default, the system chooses one.
    ///   - handler: Called once per request, on the connection's thread.
    public init(
        host: String = "127.0.0.1", port: UInt16 = 0, handler: @escaping @Sendable (OriginRequest) -> OriginReply
    ) throws(OriginError) {
        self.handler = handler
        self.host = host
        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard listener >= 0 else { throw OriginError("cannot open a socket", errno) }
        var yes: Int32 = 1
        setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<Int32>.size))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        inet_pton(AF_INET, host, &address.sin_addr)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let fd = listener
        let status = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                if bind(fd, pointer, length) != 0 || listen(fd, 256) != 0 { return errno }
                return getsockname(fd, pointer, &length) == 0 ? 0 : errno
            }
        }
        self.port = Int(UInt16(bigEndian: address.sin_port))
        guard status == 0 else {
            close(listener)
            throw OriginError("cannot listen on \(host) port \(port)", status)
        }
        let thread = Self.start { [self] in accept() }
        guard let thread else {
            close(listener)
            throw OriginError("cannot start a thread", EAGAIN)
        }
        acceptor.withLock { $0 = thread }
    }

    /// Returns the absolute URL of a path on this origin.
    public func url(_ path: String) -> String { "http://\(host):\(port)\(path)" }

    /// The requests received so far, in order.
    public var requests: [OriginRequest] { state.withLock { $0.requests } }

    /// The number of connections accepted so far.
    public var connections: Int { state.withLock { $0.nextConnection } }

    /// The number of open connections. A connection that hangs is open until the client disconnects.
    public var openConnections: Int { state.withLock { $0.descriptors.count } }

    /// Closes every connection and waits for all threads. Further calls have no effect. The origin stays alive until
    /// `stop` is called.
    public func stop() {
        let thread = acceptor.withLock { acceptor in
            defer { acceptor = nil }
            return acceptor
        }
        guard let thread else { return }
        state.withLock { state in
            state.isStopping = true
            for descriptor in state.descriptors.values { shutdown(descriptor, Int32(SHUT_RDWR)) }
        }
        shutdown(listener, Int32(SHUT_RDWR))
        pthread_join(thread, nil)
        close(listener)
        for thread in state.withLock({ Array($0.threads.values) }) { pthread_join(thread, nil) }
        state.withLock { $0.threads = [:] }
    }

    private func accept() {
        while true {
            let descriptor = Glibc.accept(listener, nil, nil)
            if descriptor < 0 {
                if errno == EINTR || errno == ECONNABORTED { continue }
                return
            }
            // A child process that inherits the descriptor would keep the connection open.
            _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
            var yes: Int32 = 1
            setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &yes, socklen_t(MemoryLayout<Int32>.size))
            let done = state.withLock { state in
                let done = state.finished.compactMap { state.threads.removeValue(forKey: $0) }
                state.finished = []
                let id = state.nextConnection
                state.nextConnection += 1
                // The thread is in the table before it can finish, because finishing requires the lock.
                if !state.isStopping, let thread = Self.start({ [self] in serve(descriptor, id: id) }) {
                    state.descriptors[id] = descriptor
                    state.threads[id] = thread
                } else {
                    close(descriptor)
                }
                return done
            }
            for thread in done { pthread_join(thread, nil) }
        }
    }

    private func serve(_ descriptor: Int32, id: Int) {
        var buffer: [UInt8] = []
        while let request = Self.receive(descriptor, &buffer) {
            state.withLock { $0.requests.append(request) }
            let reply = handler(request)
            guard send(reply, to: descriptor), reply.keepsAlive, request["connection"]?.lowercased() != "close" else {
                break
            }
        }
        state.withLock { state in
            state.descriptors[id] = nil
            state.finished.append(id)
            close(descriptor)
        }
    }

    private func send(_ reply: OriginReply, to descriptor: Int32) -> Bool {
        for part in reply.parts {
            switch part {
            case .bytes(let bytes):
                guard Self.sendAll(bytes, to: descriptor) else { return false }
            case .endless(let bytes):
                while Self.sendAll(bytes, to: descriptor) {}
                return false
            case .slowly(let bytes, let milliseconds):
                var state = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
                while Self.sendAll(bytes, to: descriptor), poll(&state, 1, milliseconds) == 0 {}
                return false
            case .reset:
                // Closing with a linger time of zero sends a reset instead of a FIN.
                var now = linger(l_onoff: 1, l_linger: 0)
                setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &now, socklen_t(MemoryLayout<linger>.size))
                return false
            case .hang:
                var byte: UInt8 = 0
                while recv(descriptor, &byte, 1, 0) > 0 {}
                return false
            case .wait(let gate):
                gate.pass()
            }
        }
        return true
    }

    private static func sendAll(_ bytes: [UInt8], to descriptor: Int32) -> Bool {
        bytes.withUnsafeBytes { bytes in
            var sent = 0
            while sent < bytes.count {
                let rest = UnsafeRawBufferPointer(rebasing: bytes[sent...])
                let count = Glibc.send(descriptor, rest.baseAddress, rest.count, Int32(MSG_NOSIGNAL))
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { return false }
                sent += count
            }
            return true
        }
    }

    /// Returns the next request, with its body if `Content-Length` announces one. The following bytes stay in the
    /// buffer.
    private static func receive(_ descriptor: Int32, _ buffer: inout [UInt8]) -> OriginRequest? {
        let end: [UInt8] = [13, 10, 13, 10]
        var searched = 0
        while true {
            if buffer.count >= 4 {
                for index in max(0, searched - 3)...(buffer.count - 4)
                where buffer[index..<(index + 4)].elementsEqual(end) {
                    let head = Array(buffer[..<index])
                    buffer.removeFirst(index + 4)
                    guard var request = OriginRequest(head: head) else { return nil }
                    let length = request["content-length"].flatMap { Int($0) } ?? 0
                    while buffer.count < length { guard receiveMore(descriptor, &buffer) else { return nil } }
                    request.body = Array(buffer.prefix(length))
                    buffer.removeFirst(length)
                    return request
                }
            }
            // Do not wait for the rest of something that cannot be a method, such as a TLS handshake.
            if let first = buffer.first, !(0x41...0x5A).contains(first) { return nil }
            searched = buffer.count
            guard searched < 65_536, receiveMore(descriptor, &buffer) else { return nil }
        }
    }

    private static func receiveMore(_ descriptor: Int32, _ buffer: inout [UInt8]) -> Bool {
        var chunk = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = recv(descriptor, &chunk, chunk.count, 0)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            buffer += chunk[..<count]
            return true
        }
    }

    private final class Work {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }

    static func start(_ body: @escaping @Sendable () -> Void) -> pthread_t? {
        let work = Unmanaged.passRetained(Work(body))
        var thread = pthread_t()
        let status = pthread_create(
            &thread, nil,
            { context in
                if let context { Unmanaged<Work>.fromOpaque(context).takeRetainedValue().body() }
                return nil
            }, work.toOpaque())
        guard status == 0 else {
            work.release()
            return nil
        }
        return thread
    }
}
