import Glibc
package import ImageServer
import NIOCore
import NIOHTTP1
import NIOPosix

/// Listens, and gives every connection its handlers.
package final class HTTPServer: Sendable {
    /// Why the server does not start, as a message for its operator.
    package struct StartError: Error { package var message: String }

    /// Where it listens, with the port the system chose where none was given.
    package let address: ListenAddress
    private let listener: any Channel
    private let connections: Connections
    private let observers: RequestObservers

    private init(
        address: ListenAddress, listener: any Channel, connections: Connections, observers: RequestObservers
    ) {
        self.address = address
        self.listener = listener
        self.connections = connections
        self.observers = observers
    }

    /// Starts listening.
    ///
    /// - Parameter observers: are told of each request.
    package static func start(
        _ site: Site, _ configuration: ListenerConfiguration, observers: RequestObservers = RequestObservers()
    ) async throws(StartError) -> HTTPServer {
        raiseDescriptorLimit()
        let group = MultiThreadedEventLoopGroup(numberOfThreads: processors)
        let connections = Connections(limit: configuration.connections)
        // The Swift 6.3 runtime can crash where two threads need a nested generic type for the first time (one start in
        // a hundred, with 30 clients at once). One thread makes the decoder's before there is a connection.
        _ = requestDecoder(configuration)
        let bootstrap = ServerBootstrap(group: group)
            .serverChannelOption(.backlog, value: 1024)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            // One read of the socket at a time: what a client pipelines beyond it waits in its own buffers.
            .childChannelOption(.maxMessagesPerRead, value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try prepare(channel, site, configuration, connections, observers)
                }
            }
        do {
            let listener = try await bootstrap.bind(host: configuration.listen.host, port: configuration.listen.port)
                .get()
            let address = ListenAddress(
                host: configuration.listen.host, port: listener.localAddress?.port ?? configuration.listen.port)
            return HTTPServer(address: address, listener: listener, connections: connections, observers: observers)
        } catch {
            // Nothing runs on the group yet that its end could cut short.
            try? await group.shutdownGracefully()
            throw StartError(message: "cannot listen on \(configuration.listen): \(reason(error))")
        }
    }

    /// Stops accepting, lets every connection finish the answer it is giving, and ends what is left. The event loops run
    /// on; a server lives as long as its program.
    ///
    /// - Parameter patience: how long answers may take.
    /// - Returns: whether all of them were finished in that time.
    package func stop(patience: Duration) async -> Bool {
        // A listener that is closed already is as good as closed.
        try? await listener.close()
        connections.drain()
        let connections = connections
        let isFinished = await Patience.waits(patience) { await connections.allClosed() }
        if !isFinished {
            connections.closeAll()
            await connections.allClosed()
        }
        // The loops end with the program: a task that is being cancelled may still want to report to one.
        await observers.log?.flush()
        return isFinished
    }

    private static func prepare(
        _ channel: any Channel, _ site: Site, _ configuration: ListenerConfiguration, _ connections: Connections,
        _ observers: RequestObservers
    ) throws {
        let admission = connections.admit(channel)
        guard admission != .dropped else {
            channel.close(promise: nil)
            return
        }
        let progress = HeadProgress()
        let pipeline = channel.pipeline.syncOperations
        try pipeline.addHandler(HeadWatch(progress))
        try pipeline.addHandler(requestDecoder(configuration))
        try pipeline.addHandler(
            ConnectionHandler(
                site: site, configuration: configuration, progress: progress, observers: observers,
                isTurnedAway: admission == .turnedAway))
    }

    private static func requestDecoder(_ configuration: ListenerConfiguration) -> ByteToMessageHandler<
        HTTPRequestDecoder
    > {
        var limits = NIOHTTPDecoderLimitConfiguration()
        // The parser counts the target among the fields; it has a limit of its own, checked when the head is complete.
        limits.maxHeaderListSize = configuration.headerBytes + RequestAdmission.targetLimit
        limits.maxHeaderFieldSize = max(configuration.headerBytes, RequestAdmission.targetLimit)
        limits.maxHeaderFieldCount = 100
        return ByteToMessageHandler(HTTPRequestDecoder(leftOverBytesStrategy: .dropBytes, limitConfiguration: limits))
    }

    /// Whether the parser reads a method; a request with any other is answered 400.
    package static func reads(method name: String) -> Bool {
        if name == "M-SEARCH" { return true }
        if case .RAW = HTTPMethod(rawValue: name) { return false }
        return name != "MSEARCH"
    }

    /// How many processors this process may run on; event loops beyond them would only take turns.
    private static var processors: Int {
        // `sched_getaffinity(2)`, whose declaration Swift does not import.
        typealias Affinity = @convention(c) (pid_t, Int, UnsafeMutableRawPointer?) -> CInt
        guard let affinity = dlsym(nil, "sched_getaffinity").map({ unsafeBitCast($0, to: Affinity.self) }) else {
            return System.coreCount
        }
        var set = [UInt64](repeating: 0, count: 128)
        guard affinity(0, 8 * set.count, &set) == 0 else { return System.coreCount }
        return max(1, min(set.reduce(0) { $0 + $1.nonzeroBitCount }, System.coreCount))
    }

    /// Every connection is a descriptor, and so is every transfer: as many as this user may have.
    private static func raiseDescriptorLimit() {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0, limit.rlim_cur < limit.rlim_max
        else { return }
        limit.rlim_cur = min(limit.rlim_max, 65_536)
        // Where it is refused, the limit stays what it was.
        _ = setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }

    private static func reason(_ error: any Error) -> String {
        if let error = error as? IOError { return String(cString: strerror(error.errnoCode)) }
        if error is SocketAddressError || error is NIOConnectionError { return "there is no such address here" }
        return "\(error)"
    }
}
