import CCurl
import Glibc

/// Waits for the sockets that libcurl wants to watch. Another thread can interrupt the wait.
///
/// `curl_multi_poll` and `curl_multi_perform` visit every transfer on each call, with a system call for most of them. A
/// socket watch tells libcurl which sockets are ready, so libcurl visits only the transfers on those sockets.
///
/// Used only on the loop's thread, except for `wake`.
final class SocketWatch {
    /// The read end of the wake-up socket pair, followed by libcurl's sockets in no particular order.
    private var entries: [pollfd]
    private var places: [Int32: Int] = [:]
    private var ready: [Event] = []
    /// The socket that each easy handle is waiting for.
    private(set) var sockets: [UnsafeMutableRawPointer: Int32] = [:]
    private let wakingEnd: Int32

    /// A ready socket and its events, as expected by `curl_multi_socket_action`.
    struct Event {
        var socket: Int32
        var bits: Int32
    }

    /// Creates a watch. Returns nil if no descriptors are left.
    init?() {
        var ends: [Int32] = [-1, -1]
        let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        guard socketpair(AF_UNIX, kind, 0, &ends) == 0 else { return nil }
        entries = [pollfd(fd: ends[0], events: Int16(POLLIN), revents: 0)]
        wakingEnd = ends[1]
    }

    deinit {
        close(entries[0].fd)
        close(wakingEnd)
    }

    /// Ends the current wait, or the next one. May be called from any thread.
    func wake() {
        var byte: UInt8 = 0
        // If the buffer is full, the wait ends anyway.
        _ = send(wakingEnd, &byte, 1, Int32(MSG_NOSIGNAL))
    }

    /// Applies a change that libcurl reports through CURLMOPT_SOCKETFUNCTION.
    func watch(_ socket: Int32, for what: Int32, of easy: UnsafeMutableRawPointer? = nil) {
        if let easy, what != CURL_POLL_REMOVE || sockets[easy] == socket {
            sockets[easy] = what == CURL_POLL_REMOVE ? nil : socket
        }
        if what == CURL_POLL_REMOVE {
            guard let place = places.removeValue(forKey: socket) else { return }
            let last = entries.removeLast()
            guard place < entries.count else { return }
            entries[place] = last
            places[last.fd] = place
            return
        }
        let events = Int16((what & CURL_POLL_IN != 0 ? POLLIN : 0) | (what & CURL_POLL_OUT != 0 ? POLLOUT : 0))
        if let place = places[socket] {
            entries[place].events = events
        } else {
            places[socket] = entries.count
            entries.append(pollfd(fd: socket, events: events, revents: 0))
        }
    }

    /// Shuts down the connection from a local port if nothing has arrived over it for `seconds`.
    func shutDown(from port: Int32, ifSilentFor seconds: Double) {
        for entry in entries.dropFirst() where Self.localPort(entry.fd) == port {
            var (info, length) = (tcp_info(), socklen_t(MemoryLayout<tcp_info>.size))
            guard getsockopt(entry.fd, Int32(IPPROTO_TCP), TCP_INFO, &info, &length) == 0 else { continue }
            if Double(info.tcpi_last_data_recv) >= seconds * 1000 { shutdown(entry.fd, Int32(SHUT_RDWR)) }
        }
    }

    private static func localPort(_ socket: Int32) -> Int32? {
        var (address, length) = (sockaddr_in6(), socklen_t(MemoryLayout<sockaddr_in6>.size))
        let isKnown = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(socket, $0, &length) == 0 }
        }
        // `sockaddr_in` and `sockaddr_in6` store the port at the same offset.
        return isKnown ? Int32(UInt16(bigEndian: address.sin6_port)) : nil
    }

    /// Waits until a socket is ready, the timeout expires or `wake` is called. Returns the ready sockets.
    func wait(milliseconds: Int32) -> [Event] {
        ready.removeAll(keepingCapacity: true)
        guard poll(&entries, nfds_t(entries.count), milliseconds) > 0 else { return ready }
        for entry in entries.dropFirst() where entry.revents != 0 {
            let happened = Int32(entry.revents)
            var bits: Int32 = 0
            // libcurl detects an error or hang-up by reading or writing, which also reveals the cause.
            if happened & (POLLIN | POLLERR | POLLHUP) != 0 { bits |= CURL_CSELECT_IN }
            if Int32(entry.events) & POLLOUT != 0, happened & (POLLOUT | POLLERR | POLLHUP) != 0 {
                bits |= CURL_CSELECT_OUT
            }
            if happened & POLLNVAL != 0 { bits |= CURL_CSELECT_ERR }
            ready.append(Event(socket: entry.fd, bits: bits))
        }
        if entries[0].revents != 0 {
            var bytes: (UInt64, UInt64) = (0, 0)
            while recv(entries[0].fd, &bytes, 16, 0) == 16 {}
        }
        return ready
    }
}
