import Glibc
import Synchronization

/// Forwards bytes between clients and a server on loopback. After `cut()`, open connections accept all bytes but
/// forward none, like a firewall that has lost their state. Later connections work.
public final class DeadWire: Sendable {
    private struct State {
        var generation = 0
        var connections = 0
        var swallowed = 0
        var open: [Int: (client: Int32, server: Int32)] = [:]
        var threads: [pthread_t] = []
        var isStopping = false
    }

    /// The port that clients connect to.
    public let port: Int
    private let server: UInt16
    private let listener: Int32
    private let state = Mutex(State())
    private let piece: Int
    private let pause: Int32

    /// - Parameters:
    ///   - server: The server's port on 127.0.0.1.
    ///   - piece: The maximum number of bytes forwarded at a time.
    ///   - pause: The time between two pieces, in milliseconds.
    public init(to server: Int, piece: Int = 65_536, pause: Int32 = 0) throws(OriginError) {
        self.server = UInt16(server)
        self.piece = piece
        self.pause = pause
        listener = Self.socket()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let fd = listener
        port = Self.withAddress(0) { address in
            guard bind(fd, address, length) == 0, listen(fd, 64) == 0, getsockname(fd, address, &length) == 0 else {
                return -1
            }
            return address.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
                Int(UInt16(bigEndian: $0.pointee.sin_port))
            }
        }
        guard port > 0, let thread = LoopbackOrigin.start({ [self] in accept() }) else {
            close(listener)
            throw OriginError("cannot listen", errno)
        }
        state.withLock { $0.threads.append(thread) }
    }

    /// The number of connections accepted so far.
    public var connections: Int { state.withLock(\.connections) }
    /// The number of open connections.
    public var openConnections: Int { state.withLock(\.open.count) }
    /// The number of bytes accepted but not forwarded.
    public var swallowed: Int { state.withLock(\.swallowed) }

    /// Stops forwarding on the connections that are open now.
    public func cut() { state.withLock { $0.generation += 1 } }

    /// Closes all connections and waits for the threads.
    public func stop() {
        let threads = state.withLock { state in
            state.isStopping = true
            for (client, server) in state.open.values {
                shutdown(client, Int32(SHUT_RDWR))
                shutdown(server, Int32(SHUT_RDWR))
            }
            defer { state.threads = [] }
            return state.threads
        }
        guard let first = threads.first else { return }
        shutdown(listener, Int32(SHUT_RDWR))
        pthread_join(first, nil)
        close(listener)
        // The accepting thread may have started more.
        for thread in threads.dropFirst() + state.withLock({ $0.threads }) { pthread_join(thread, nil) }
    }

    private func accept() {
        while case let client = Glibc.accept(listener, nil, nil), client >= 0 {
            let other = Self.socket()
            let length = socklen_t(MemoryLayout<sockaddr_in>.size)
            let isConnected = Self.withAddress(server) { connect(other, $0, length) == 0 }
            state.withLock { state in
                let (id, generation) = (state.connections, state.generation)
                state.connections += 1
                if isConnected, !state.isStopping,
                    let thread = LoopbackOrigin.start({ [self] in pass(id, client, other, generation) })
                {
                    state.open[id] = (client, other)
                    state.threads.append(thread)
                } else {
                    close(client)
                    close(other)
                }
            }
        }
    }

    private func pass(_ id: Int, _ client: Int32, _ server: Int32, _ generation: Int) {
        var buffer = [UInt8](repeating: 0, count: piece)
        var ends = [client, server].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        var isOpen = true
        while isOpen, poll(&ends, 2, -1) > 0 {
            for (index, end) in ends.enumerated() where end.revents != 0 {
                let count = recv(end.fd, &buffer, piece, 0)
                let isCut = state.withLock { state in
                    if state.generation != generation { state.swallowed += max(count, 0) }
                    return state.generation != generation
                }
                // After the cut, the client does not learn that the server closes the connection.
                if isCut, index == 1, count <= 0 { ends[1].fd = -1 }
                if count <= 0 { isOpen = isCut && index == 1 }
                var sent = 0
                while !isCut, sent < count {
                    let step = buffer[sent..<count].withUnsafeBytes {
                        send(ends[1 - index].fd, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
                    }
                    guard step > 0 else { break }
                    sent += step
                }
                if pause > 0 { _ = poll(nil, 0, pause) }
            }
        }
        state.withLock { state in
            state.open[id] = nil
            close(client)
            close(server)
        }
    }

    private static func socket() -> Int32 {
        Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    }

    private static func withAddress<Value>(
        _ port: UInt16, _ body: (UnsafeMutablePointer<sockaddr>) -> Value
    ) -> Value {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1, body)
        }
    }
}
