import Glibc
package import ImageServer
import NIOCore
import NIOHTTP1
import NIOPosix

/// Listens, and gives every connection its handlers.
package final class HTTPServer: Sendable {
    /// Why the server does not start, as a message for its operator.
    package struct StartError: Error { package var message: String }

    private let group: MultiThreadedEventLoopGroup
    private let listeners: [Listener]
    let connections: Connections
    private let setup: SetupInForce

    private init(
        group: MultiThreadedEventLoopGroup, listeners: [Listener], connections: Connections, setup: SetupInForce
    ) {
        self.group = group
        self.listeners = listeners
        self.connections = connections
        self.setup = setup
    }

    /// Starts listening.
    ///
    /// - Parameter observers: record each request.
    package static func start(
        _ site: Site, _ configuration: ListenerConfiguration, observers: RequestObservers = RequestObservers()
    ) async throws(StartError) -> HTTPServer {
        let setup = SetupInForce(try ConnectionSetup(site, configuration, observers))
        let group = MultiThreadedEventLoopGroup(numberOfThreads: processors)
        let connections = Connections(configuration)
        // The Swift 6.3 runtime can crash where two threads need a nested generic type for the first time (one start in
        // a hundred, with 30 clients at once). One thread makes the decoder's before there is a connection.
        _ = ConnectionSetup.requestDecoder(configuration)
        let bootstrap = {
            ServerBootstrap(group: group)
                .serverChannelOption(.backlog, value: 1024)
                .serverChannelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.addHandler(AcceptPause(connections))
                    }
                }
                // One read of the socket at a time: what a client pipelines beyond it waits in its own buffers.
                .childChannelOption(.maxMessagesPerRead, value: 1)
                .childChannelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture { try prepare(channel, setup, connections) }
                }
        }
        var listeners: [Listener] = []
        let places =
            configuration.passed.isEmpty ? [configuration.listen] : configuration.passed.map { .descriptor($0) }
        for place in places {
            do {
                listeners.append(try await Listener.open(place, bootstrap))
            } catch {
                for listener in listeners { await listener.close() }
                // Nothing runs on the group yet that its end could cut short.
                try? await group.shutdownGracefully()
                throw StartError(message: "cannot listen on \(place): \(reason(error))")
            }
        }
        return HTTPServer(group: group, listeners: listeners, connections: connections, setup: setup)
    }

    /// Makes ready to answer by another site and configuration. Where the server listens, how many connections it
    /// takes, and whether they are operators', stays. A connection keeps the TLS that it began with.
    ///
    /// - Returns: what puts them in force, for every request that begins after it.
    /// - Throws: what is wrong with a changed certificate or key; nothing has changed then.
    package func reload(
        _ site: Site, _ configuration: ListenerConfiguration
    ) throws(StartError) -> @Sendable () -> Void {
        var configuration = configuration
        configuration.isAdministrative = setup.now.configuration.isAdministrative
        let changed = try ConnectionSetup(site, configuration, setup.now.observers)
        return { [setup] in setup.replace(with: changed) }
    }

    /// Where it listens, with the port the system chose where none was given.
    package var addresses: [ListenAddress] { listeners.map(\.address) }

    /// Stops accepting, lets every connection finish the answer it is giving, and ends what is left. The event loops run
    /// on; a server lives as long as its program.
    ///
    /// - Parameter patience: how long answers may take.
    /// - Returns: whether all of them were finished in that time.
    package func stop(patience: Duration) async -> Bool {
        for listener in listeners { await listener.pause() }
        // NIO closes a connection without a word if its listener closes while it is being set up, which takes a turn of the
        // connection's loop and then one of the listener's. With a passed socket its client would be lost in a restart.
        for _ in 0..<2 {
            for loop in group.makeIterator() { try? await loop.submit {}.get() }
        }
        for listener in listeners { await listener.close() }
        connections.drain()
        let connections = connections
        let isFinished = await Patience.waits(patience) { await connections.allClosed() }
        if !isFinished {
            connections.closeAll()
            await connections.allClosed()
        }
        // The loops end with the program: a task that is being cancelled may still want to report to one.
        await setup.now.observers.flush(patience: .seconds(1))
        return isFinished
    }

    /// Whether the program is built with the trait TLS.
    package static var speaksTLS: Bool {
        #if TLS
            return true
        #else
            return false
        #endif
    }

    /// nil for plain HTTP.
    static func secureTransport(
        _ configuration: ListenerConfiguration
    ) throws(StartError) -> SecureTransport? {
        guard let files = configuration.tls else { return nil }
        #if TLS
            return try SecureTransport(files, http2: configuration.http2)
        #else
            throw StartError(
                message: "`server.tls` (\(files.certificate)): this program was built without TLS; "
                    + "build it with the package trait TLS: `swift build --traits TLS`")
        #endif
    }

    private static func prepare(
        _ channel: any Channel, _ setup: SetupInForce, _ connections: Connections
    ) throws {
        let peer = channel.remoteAddress?.ipAddress
        let isProxy = setup.now.configuration.proxies.trusts(peer: peer)
        guard let place = connections.admit(channel, from: isProxy ? nil : peer.map(RateLimit.network)) else {
            channel.close(promise: nil)
            return
        }
        try setup.prepare(place)
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

    private static func reason(_ error: any Error) -> String {
        if let error = error as? StartError { return error.message }
        if let error = error as? IOError { return String(cString: strerror(error.errnoCode)) }
        if error is SocketAddressError || error is SocketAddressError.UnknownHost || error is NIOConnectionError {
            return "there is no such address here"
        }
        return "\(error)"
    }
}
