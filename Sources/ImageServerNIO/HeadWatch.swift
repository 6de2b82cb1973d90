import NIOCore

/// What has arrived of the head that the parser has not handed on yet, behind earlier requests or not; touched on the
/// connection's event loop only.
final class HeadProgress {
    /// Whether any byte has arrived.
    private(set) var hasBegun = false
    /// Whether the request line was complete, so that what is too long is a field.
    private(set) var hasRequestLine = false
    /// Whether the parser has seen a head whose body has not ended.
    private(set) var isInBody = false
    /// Whether that body is chunked, so that its length is not known beforehand.
    private var isChunked = false
    /// Bytes of the body in what is being handed to the parser.
    private var bodyBytes = 0
    /// Whether what the parser has taken of it ends in an empty line.
    private var endsInEmptyLine = false
    /// Whether what is being handed to the parser is as it came, so that fields in it may have lost bytes.
    fileprivate(set) var isUnchanged = false
    /// Called with the first byte.
    var onFirstByte: () -> Void = {}

    /// The parser has handed a head on: what comes next belongs to its body or to the next head.
    func headEnds(isChunked: Bool) {
        hasBegun = false
        hasRequestLine = false
        isInBody = true
        endsInEmptyLine = true
        self.isChunked = isChunked
    }

    func bodyContinues(_ count: Int) { bodyBytes += count }

    func bodyEnds() { isInBody = false }

    fileprivate func received(hasLineEnd: Bool) {
        guard !hasRequestLine else { return }
        if !hasBegun {
            hasBegun = true
            onFirstByte()
        }
        hasRequestLine = hasLineEnd
    }

    /// Has bytes handed on that begin within a body, and finds out whether a head has begun behind it.
    ///
    /// Of a body with a length the parser takes as many bytes as it hands on. A chunked one ends in an empty line, as a
    /// head does.
    fileprivate func watch(_ bytes: ByteBuffer, _ handOn: () -> Void) {
        (bodyBytes, endsInEmptyLine) = (0, isChunked)
        isUnchanged = true
        handOn()
        isUnchanged = false
        guard !isInBody else { return }
        var rest = bytes.readableBytesView
        rest = endsInEmptyLine ? rest.afterLastEmptyLine : rest.suffix(max(0, rest.count - bodyBytes))
        if !rest.isEmpty { received(hasLineEnd: rest.contains(UInt8(ascii: "\n"))) }
    }
}

extension ByteBufferView {
    fileprivate var afterLastEmptyLine: ByteBufferView {
        var ends = 0
        var start = startIndex
        for index in indices where self[index] != UInt8(ascii: "\r") {
            ends = self[index] == UInt8(ascii: "\n") ? ends + 1 : 0
            if ends == 2 { (start, ends) = (index + 1, 0) }
        }
        return self[start...]
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
                progress.watch(bytes) { context.fireChannelRead(wrapInboundOut(bytes)) }
                return
            }
            let part = bytes.withUnsafeReadableBytes { HeadPart($0, after: &ends) }
            guard let head = bytes.readSlice(length: part.length) else { return }
            progress.received(hasLineEnd: part.hasLineEnd)
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
