import Glibc
import NIOCore

/// Briefly stops accepting connections if file descriptors or memory are exhausted, or if all sockets of the server are
/// in use.
///
/// A connection that could not be accepted stays in the listener's queue, so the socket stays readable, and an event
/// loop that retried immediately would be busy with nothing else. NIO's `AcceptBackoffHandler` delays the next read but
/// leaves the listener registered for reading after a failed accept. Disabling `autoRead` removes the registration.
final class AcceptPause: ChannelInboundHandler {
    typealias InboundIn = any Channel

    private static let length = TimeAmount.milliseconds(250)
    private static let causes: Set<CInt> = [EMFILE, ENFILE, ENOBUFS, ENOMEM]

    private let connections: Connections

    init(_ connections: Connections) { self.connections = connections }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if !connections.countSocket(unwrapInboundIn(data)) { Self.pause(context.channel, connections) }
        context.fireChannelRead(data)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // Other errors concern a single connection that failed before it was accepted.
        guard let error = error as? IOError, Self.causes.contains(error.errnoCode) else { return }
        Self.pause(context.channel, connections)
    }

    private static func pause(_ channel: any Channel, _ connections: Connections) {
        setReads(false, channel)
        channel.eventLoop.scheduleTask(in: length) {
            if connections.hasSocketsLeft { setReads(true, channel) } else { pause(channel, connections) }
        }
    }

    private static func setReads(_ reads: Bool, _ channel: any Channel) {
        // Setting the option fails if the listener has been closed. A closed listener accepts no connections.
        try? channel.syncOptions?.setOption(.autoRead, value: reads)
    }
}
