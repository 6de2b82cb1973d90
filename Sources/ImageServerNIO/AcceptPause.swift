import Glibc
import NIOCore

/// Stops accepting for a moment while descriptors or memory are used up, or while all sockets of the server are open.
///
/// The connection that could not be accepted stays in the listener's queue, so the socket stays readable, and an event
/// loop that tried again at once would do nothing else. NIO's own `AcceptBackoffHandler` delays the next read, but leaves
/// the listener registered for reading after an accept that failed; without `autoRead` it is not.
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
        // Others speak of one connection that failed before it was accepted.
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
        // A listener that was closed meanwhile accepts nothing either way.
        try? channel.syncOptions?.setOption(.autoRead, value: reads)
    }
}
