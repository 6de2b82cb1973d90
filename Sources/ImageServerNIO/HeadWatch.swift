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

    fileprivate func received(_ part: HeadPart) {
        guard !hasRequestLine else { return }
        if !hasBegun {
            hasBegun = true
            onFirstByte()
        }
        hasRequestLine = part.hasLineEnd
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
            let part = bytes.withUnsafeReadableBytes { HeadPart($0, after: &ends) }
            guard let head = bytes.readSlice(length: part.length) else { return }
            progress.received(part)
            context.fireChannelRead(wrapInboundOut(part.isASCII ? head : widened(head, context.channel.allocator)))
        }
    }

    private func widened(_ bytes: ByteBuffer, _ allocator: ByteBufferAllocator) -> ByteBuffer {
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

/// What one pass over received bytes says of those that are of the head.
private struct HeadPart {
    /// How many are of the head; no more than the parser would say, as an empty line ends it at the latest.
    private(set) var length = 0
    private(set) var isASCII = true
    private(set) var hasLineEnd = false

    /// - Parameter ends: line ends just before: 1 after LF, 2 after LF CR.
    init(_ bytes: UnsafeRawBufferPointer, after ends: inout Int) {
        var all: UInt8 = 0
        for byte in bytes {
            length += 1
            all |= byte
            switch byte {
            case UInt8(ascii: "\n"):
                hasLineEnd = true
                if ends > 0 {
                    ends = 0
                    isASCII = all < 0x80
                    return
                }
                ends = 1
            case UInt8(ascii: "\r"): ends = ends == 1 ? 2 : 0
            default: ends = 0
            }
        }
        isASCII = all < 0x80
    }
}
