import Glibc
import NIOCore

/// Stops accepting for a moment when descriptors or memory are used up.
///
/// The connection that could not be accepted stays in the listener's queue, so the socket stays readable, and an event
/// loop that tried again at once would do nothing else. NIO's own `AcceptBackoffHandler` delays the next read, but leaves
/// the listener registered for reading after an accept that failed; without `autoRead` it is not.
final class AcceptPause: ChannelInboundHandler {
    typealias InboundIn = any Channel

    private static let length = TimeAmount.milliseconds(250)
    private static let causes: Set<CInt> = [EMFILE, ENFILE, ENOBUFS, ENOMEM]

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // Others speak of one connection that failed before it was accepted.
        guard let error = error as? IOError, Self.causes.contains(error.errnoCode) else { return }
        let channel = context.channel
        Self.setReads(false, channel)
        context.eventLoop.scheduleTask(in: Self.length) { Self.setReads(true, channel) }
    }

    private static func setReads(_ reads: Bool, _ channel: any Channel) {
        // A listener that was closed meanwhile accepts nothing either way.
        try? channel.syncOptions?.setOption(.autoRead, value: reads)
    }
}
