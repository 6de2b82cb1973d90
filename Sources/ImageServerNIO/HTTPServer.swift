import Glibc
package import ImageServer
import NIOCore
import NIOHTTP1
import NIOPosix

/// An HTTP/1.1 server for a `Site`, based on SwiftNIO.
package final class HTTPServer: Sendable {
    /// The reason why the server cannot start, as a message for the operator.
    package struct StartError: Error, CustomStringConvertible {
        package var message: String
        package var description: String { message }
    }

    private static let shared = MultiThreadedEventLoopGroup(numberOfThreads: processors)

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
    /// - Parameters:
    ///   - observers: The logs and metrics that record each request.
    ///   - sharesLoops: Whether all such servers in the process share event loops, as in tests with many servers.
    ///     Defaults to false, so that each server has its own event loops.
    package static func start(
        _ site: Site, _ configuration: ListenerConfiguration, observers: RequestObservers = RequestObservers(),
        sharesLoops: Bool = false
    ) async throws(StartError) -> HTTPServer {
        let setup = SetupInForce(ConnectionSetup(site, configuration, observers))
        let group = sharesLoops ? shared : MultiThreadedEventLoopGroup(numberOfThreads: processors)
        let connections = Connections(configuration)
        // The Swift 6.3 runtime can crash if two threads instantiate a nested generic type for the first time (once in
        // 100 starts, with 30 simultaneous clients). One thread instantiates the decoder's type before there is a
        // connection.
        _ = ConnectionSetup.requestDecoder(configuration)
        let bootstrap = {
            ServerBootstrap(group: group)
                .serverChannelOption(.backlog, value: 1024)
                .serverChannelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.addHandler(AcceptPause(connections))
                    }
                }
                // One read of the socket at a time. Further pipelined requests wait in the client's buffers.
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
                // The group has no work yet that the shutdown could interrupt.
                if !sharesLoops { try? await group.shutdownGracefully() }
                throw StartError(message: "cannot listen on \(place): \(reason(error))")
            }
        }
        return HTTPServer(group: group, listeners: listeners, connections: connections, setup: setup)
    }

    /// Replaces the site and the configuration for requests that begin from now on. The addresses, the number of
    /// connections and `isAdministrative` do not change.
    package func reload(_ site: Site, _ configuration: ListenerConfiguration) {
        var configuration = configuration
        configuration.isAdministrative = setup.now.configuration.isAdministrative
        setup.replace(with: ConnectionSetup(site, configuration, setup.now.observers))
    }

    /// The addresses on which the server listens, with the port that the system chose if none was given.
    package var addresses: [ListenAddress] { listeners.map(\.address) }

    /// Stops accepting connections, lets each connection finish its current response, and closes the remaining
    /// connections. The event loops keep running, because a server lives as long as the program.
    ///
    /// - Parameter timeout: How long responses may take.
    /// - Returns: Whether all responses were finished in time.
    package func stop(timeout: Duration) async -> Bool {
        for listener in listeners { await listener.pause() }
        // NIO silently closes a connection if its listener closes while the connection is being set up. The setup takes
        // one iteration of the connection's event loop and one of the listener's. With socket activation, such a client
        // would be lost in a restart.
        for _ in 0..<2 {
            for loop in group.makeIterator() { try? await loop.submit {}.get() }
        }
        for listener in listeners { await listener.close() }
        connections.drain()
        let connections = connections
        let isFinished = await Timeout.run(timeout) { await connections.allClosed() }
        if !isFinished {
            connections.closeAll()
            await connections.allClosed()
        }
        // The event loops run until the program exits, because a cancelled task may still report to one of them.
        await setup.now.observers.flush(timeout: .seconds(1))
        return isFinished
    }

    private static func prepare(
        _ channel: any Channel, _ setup: SetupInForce, _ connections: Connections
    ) throws {
        let peer = channel.remoteAddress?.ipAddress
        let isProxy = setup.now.configuration.proxies.trusts(peer: peer)
        guard let connection = connections.admit(channel, from: isProxy ? nil : peer.map(RateLimit.network)) else {
            channel.close(promise: nil)
            return
        }
        try setup.prepare(connection)
    }

    /// Whether the parser accepts a method. Requests with other methods receive a 400.
    package static func reads(method name: String) -> Bool {
        if name == "M-SEARCH" { return true }
        if case .RAW = HTTPMethod(rawValue: name) { return false }
        return name != "MSEARCH"
    }

    /// The number of processors on which this process may run. Having more event loops than processors has no benefit.
    private static var processors: Int {
        // `sched_getaffinity(2)` is not imported by Swift.
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
            return "this machine does not have this address; `ip address` lists the addresses"
        }
        return "\(error)"
    }
}
