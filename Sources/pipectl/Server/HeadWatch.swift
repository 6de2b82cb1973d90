import NIOCore

/// What has arrived of the next request's head; touched on the connection's event loop only.
final class HeadProgress {
    /// Whether any byte has arrived.
    private(set) var hasBegun = false
    /// Whether the request line was complete, so that what is too long is a field.
    private(set) var hasRequestLine = false
    /// Called with the first byte.
    var onFirstByte: () -> Void = {}

    /// Another head is awaited.
    func reset() {
        hasBegun = false
        hasRequestLine = false
    }

    fileprivate func received(_ bytes: ByteBuffer) {
        guard !hasRequestLine else { return }
        if !hasBegun, bytes.readableBytes > 0 {
            hasBegun = true
            onFirstByte()
        }
        hasRequestLine = bytes.readableBytesView.contains(UInt8(ascii: "\n"))
    }
}

/// Stands before the parser, which tells nothing until a head is complete.
final class HeadWatch: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    private let progress: HeadProgress

    init(_ progress: HeadProgress) { self.progress = progress }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        progress.received(unwrapInboundIn(data))
        context.fireChannelRead(data)
    }
}
