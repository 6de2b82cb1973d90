import Glibc
import NIOCore
import NIOPosix

/// A listening socket, either opened at an address or passed by the parent process.
struct Listener: Sendable {
    /// The address of the socket, with the port that the system chose if none was given.
    let address: ListenAddress
    private let channel: any Channel
    /// The file of a Unix socket that this process created.
    private let file: FileIdentity?

    private struct FileIdentity: Sendable, Hashable {
        var device: dev_t
        var inode: ino_t

        init?(_ path: String) {
            var status = stat()
            guard lstat(path, &status) == 0 else { return nil }
            (device, inode) = (status.st_dev, status.st_ino)
        }
    }

    /// Starts listening.
    ///
    /// - Parameter bootstrap: A closure that returns a bootstrap without TCP options.
    static func open(_ address: ListenAddress, _ bootstrap: () -> ServerBootstrap) async throws -> Listener {
        switch address {
        case .tcp(let host, let port):
            let channel = try await bind(host, port, bootstrap)
            return Listener(
                address: .tcp(host: host, port: channel.localAddress?.port ?? port), channel: channel, file: nil)
        case .unix(let path):
            try removeLeftover(path)
            let channel = try await bootstrap().bind(unixDomainSocketPath: path).get()
            return Listener(address: address, channel: channel, file: FileIdentity(path))
        case .descriptor(let descriptor):
            let isTCP = try checked(descriptor)
            let channel = try await (isTCP ? overTCP(bootstrap()) : bootstrap()).withBoundSocket(descriptor).get()
            var place = address
            if let local = channel.localAddress {
                if let path = local.pathname { place = .unix(path: path) }
                if let host = local.ipAddress, let port = local.port { place = .tcp(host: host, port: port) }
            }
            return Listener(address: place, channel: channel, file: nil)
        }
    }

    /// Stops accepting connections. New clients wait in the system's queue.
    func pause() async {
        // Setting the option fails if the listener is closed. A closed listener accepts no connections.
        try? await channel.setOption(.autoRead, value: false).get()
    }

    /// Closes the socket. A socket that was passed to this process keeps listening for as long as another process holds
    /// it open.
    func close() async {
        // Closing fails if the listener is already closed.
        try? await channel.close()
        guard case .unix(let path) = address, let file, FileIdentity(path) == file else { return }
        unlink(path)
    }

    private static func bind(
        _ host: String, _ port: Int, _ bootstrap: () -> ServerBootstrap
    ) async throws -> any Channel {
        guard host == "*" else { return try await overTCP(bootstrap()).bind(host: host, port: port).get() }
        do {
            // Opens one socket for both families, regardless of `net.ipv6.bindv6only`.
            let option = ChannelOptions.Types.SocketOption(
                level: .init(IPPROTO_IPV6), name: .init(IPV6_V6ONLY))
            return try await overTCP(bootstrap()).serverChannelOption(option, value: 0).bind(host: "::", port: port)
                .get()
        } catch let error as IOError where [EAFNOSUPPORT, EADDRNOTAVAIL].contains(error.errnoCode) {
            // The kernel or all network interfaces lack IPv6.
            return try await overTCP(bootstrap()).bind(host: "0.0.0.0", port: port).get()
        }
    }

    private static func overTCP(_ bootstrap: ServerBootstrap) -> ServerBootstrap {
        bootstrap.serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
    }

    /// Removes the socket file of a server that has stopped, so that its address can be used again. Does not remove a
    /// socket on which a server is listening, or any other file.
    private static func removeLeftover(_ path: String) throws(HTTPServer.StartError) {
        var status = stat()
        guard lstat(path, &status) == 0 else { return }
        guard status.st_mode & S_IFMT == S_IFSOCK else {
            throw HTTPServer.StartError(
                message: "a file that is not a socket exists at this path; remove it or choose a different path")
        }
        let probe = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
        defer { Glibc.close(probe) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix($0.count - 1)) }
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(probe, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard result != 0, errno == ECONNREFUSED else {
            throw HTTPServer.StartError(message: "another server is already listening on this socket")
        }
        unlink(path)
    }

    /// Returns whether a passed socket is a TCP socket. Throws if it is not listening.
    private static func checked(_ descriptor: Int32) throws(HTTPServer.StartError) -> Bool {
        guard option(SO_TYPE, of: descriptor) == Int32(SOCK_STREAM.rawValue), option(SO_ACCEPTCONN, of: descriptor) == 1
        else { throw HTTPServer.StartError(message: "the file descriptor is not a listening stream socket") }
        // Render workers must not inherit the socket.
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        let domain = option(SO_DOMAIN, of: descriptor)
        return domain == AF_INET || domain == AF_INET6
    }

    private static func option(_ name: Int32, of descriptor: Int32) -> Int32? {
        var value: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        return getsockopt(descriptor, SOL_SOCKET, name, &value, &length) == 0 ? value : nil
    }
}
