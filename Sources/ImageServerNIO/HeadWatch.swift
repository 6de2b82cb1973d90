import NIOCore

/// What has arrived of the next request's head; touched on the connection's event loop only.
final class HeadProgress {
    /// Whether any byte has arrived.
    private(set) var hasBegun = false
    /// Whether the request line was complete, so that what is too long is a field.
    private(set) var hasRequestLine = false
    /// Whether the parser has seen a head whose body has not ended.
    var isInBody = false
    /// Whether what is being handed to the parser is as it came, so that fields in it may have lost bytes.
    fileprivate(set) var isUnchanged = false
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
/// Field values are bytes (RFC 9110 §5.5): what is beyond ASCII in a head is handed on as the UTF-8 of its ISO-8859-1
/// reading, so that nothing is lost and one scalar is one byte. Bodies go through as they are: longer than they are said
/// to be, they would end in what the parser takes for another request. Where a head ends, and whether a body follows, the
/// parser says (`HeadProgress.isInBody`): it has looked at a head before more is handed to it.
final class HeadWatch: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    private let progress: HeadProgress
    /// Line ends that are just behind us within the head, so far: 1 after LF, 2 after LF CR.
    private var ends = 0

    init(_ progress: HeadProgress) { self.progress = progress }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var bytes = unwrapInboundIn(data)
        while bytes.readableBytes > 0, context.channel.isActive {
            if progress.isInBody {
                // A head that follows in the same bytes is handed on with them, and known by that.
                progress.isUnchanged = true
                context.fireChannelRead(wrapInboundOut(bytes))
                progress.isUnchanged = false
                return
            }
            guard let head = bytes.readSlice(length: headLength(bytes.readableBytesView)) else { return }
            progress.received(head)
            context.fireChannelRead(wrapInboundOut(widened(head, context.channel.allocator)))
        }
    }

    /// How many bytes are of the head; no more than the parser would say, as an empty line ends it at the latest.
    private func headLength(_ bytes: ByteBufferView) -> Int {
        var count = 0
        for byte in bytes {
            count += 1
            switch byte {
            case UInt8(ascii: "\n") where ends > 0:
                ends = 0
                return count
            case UInt8(ascii: "\n"): ends = 1
            case UInt8(ascii: "\r"): ends = ends == 1 ? 2 : 0
            default: ends = 0
            }
        }
        return count
    }

    private func widened(_ bytes: ByteBuffer, _ allocator: ByteBufferAllocator) -> ByteBuffer {
        guard bytes.readableBytesView.contains(where: { $0 >= 0x80 }) else { return bytes }
        var widened = allocator.buffer(capacity: bytes.readableBytes * 2)
        for byte in bytes.readableBytesView {
            if byte < 0x80 {
                widened.writeInteger(byte)
            } else {
                widened.writeInteger(0xC0 | byte >> 6)
                widened.writeInteger(0x80 | byte & 0x3F)
            }
        }
        return widened
    }
}
