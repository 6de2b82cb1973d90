import Glibc
import NIOCore
import NIOHTTP1
import NIOPosix

/// Listens, and gives every connection its handlers.
final class HTTPServer: Sendable {
    /// Why the server does not start, in words.
    struct StartError: Error { var message: String }

    /// Where it listens, with the port the system chose where none was given.
    let address: ListenAddress
    private let listener: any Channel
    private let connections: Connections
    private let log: RequestLog?

    private init(
        address: ListenAddress, listener: any Channel, connections: Connections, log: RequestLog?
    ) {
        self.address = address
        self.listener = listener
        self.connections = connections
        self.log = log
    }

    /// Starts listening at `settings.listen` of the site.
    static func start(_ site: Site) async throws(StartError) -> HTTPServer {
        raiseDescriptorLimit()
        let settings = site.settings
        let group = MultiThreadedEventLoopGroup(numberOfThreads: System.coreCount)
        let connections = Connections(limit: settings.connections)
        let log = settings.logsRequests ? RequestLog() : nil
        // The Swift 6.3 runtime can crash where two threads need a nested generic type for the first time (one start in
        // a hundred, with 30 clients at once). One thread makes the decoder's before there is a connection.
        _ = requestDecoder(site)
        let bootstrap = ServerBootstrap(group: group)
            .serverChannelOption(.backlog, value: 1024)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            // One read of the socket at a time: what a client pipelines beyond it waits in its own buffers.
            .childChannelOption(.maxMessagesPerRead, value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try prepare(channel, site, connections, log)
                }
            }
        do {
            let listener = try await bootstrap.bind(host: settings.listen.host, port: settings.listen.port).get()
            let address = ListenAddress(
                host: settings.listen.host, port: listener.localAddress?.port ?? settings.listen.port)
            return HTTPServer(address: address, listener: listener, connections: connections, log: log)
        } catch {
            // Nothing runs on the group yet that its end could cut short.
            try? await group.shutdownGracefully()
            throw StartError(message: "cannot listen on \(settings.listen): \(reason(error))")
        }
    }

    /// Stops accepting, lets every connection finish the answer it is giving, and ends what is left. The event loops run
    /// on; a server lives as long as its program.
    ///
    /// - Parameter patience: how long answers may take.
    /// - Returns: whether all of them were finished in that time.
    func stop(patience: Duration) async -> Bool {
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
        await log?.flush()
        return isFinished
    }

    private static func prepare(
        _ channel: any Channel, _ site: Site, _ connections: Connections, _ log: RequestLog?
    ) throws {
        let admission = connections.admit(channel)
        guard admission != .dropped else {
            channel.close(promise: nil)
            return
        }
        let progress = HeadProgress()
        let pipeline = channel.pipeline.syncOperations
        try pipeline.addHandler(HeadWatch(progress))
        try pipeline.addHandler(requestDecoder(site))
        try pipeline.addHandler(
            ConnectionHandler(
                site: site, progress: progress, log: log, isTurnedAway: admission == .turnedAway))
    }

    private static func requestDecoder(_ site: Site) -> ByteToMessageHandler<HTTPRequestDecoder> {
        var limits = NIOHTTPDecoderLimitConfiguration()
        // The parser counts the target among the fields; it has a limit of its own, checked when the head is complete.
        limits.maxHeaderListSize = site.settings.headerBytes + RequestAdmission.targetLimit
        limits.maxHeaderFieldSize = max(site.settings.headerBytes, RequestAdmission.targetLimit)
        limits.maxHeaderFieldCount = 100
        return ByteToMessageHandler(HTTPRequestDecoder(leftOverBytesStrategy: .dropBytes, limitConfiguration: limits))
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

/// Waiting that ends.
enum Patience {
    /// Runs `body`, and returns true when it ended within the time. Otherwise it goes on by itself, cancelled.
    static func waits(_ time: Duration, for body: @escaping @Sendable () async -> Void) async -> Bool {
        let (ends, end) = AsyncStream<Bool>.makeStream()
        let work = Task {
            await body()
            end.yield(true)
        }
        let clock = Task {
            // Cancelled, it has nothing more to say.
            guard (try? await Task.sleep(for: time)) != nil else { return }
            end.yield(false)
        }
        defer {
            work.cancel()
            clock.cancel()
        }
        for await isFinished in ends { return isFinished }
        return false
    }
}
