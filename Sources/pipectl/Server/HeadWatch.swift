import NIOCore

/// What has arrived of the next request's head; touched on the connection's event loop only.
final class HeadProgress {
    /// Whether any byte has arrived.
    private(set) var hasBegun = false
    /// Whether the request line was complete, so that what is too long is a field.
    private(set) var hasRequestLine = false
    /// Whether bytes beyond ASCII ever arrived on the connection, and were made longer.
    fileprivate(set) var isTranscoded = false
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

/// Stands before the parser, which tells nothing until a head is complete, and takes field values for UTF-8.
///
/// Field values are bytes (RFC 9110 §5.5): what is beyond ASCII is handed on as the UTF-8 of its ISO-8859-1 reading, so
/// that nothing is lost and one scalar is one byte. That makes bodies longer than they are said to be; a connection on
/// which it happened ends with the first request that has one (`ConnectionHandler`).
final class HeadWatch: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    private let progress: HeadProgress

    init(_ progress: HeadProgress) { self.progress = progress }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let bytes = unwrapInboundIn(data)
        progress.received(bytes)
        guard bytes.readableBytesView.contains(where: { $0 >= 0x80 }) else { return context.fireChannelRead(data) }
        progress.isTranscoded = true
        var widened = context.channel.allocator.buffer(capacity: bytes.readableBytes * 2)
        for byte in bytes.readableBytesView {
            if byte < 0x80 {
                widened.writeInteger(byte)
            } else {
                widened.writeInteger(0xC0 | byte >> 6)
                widened.writeInteger(0x80 | byte & 0x3F)
            }
        }
        context.fireChannelRead(wrapInboundOut(widened))
    }
}
