import NIOCore

/// Tracks the received bytes of request headers that the parser has not delivered yet, even if earlier requests precede
/// them. Used only on the connection's event loop.
final class HeadProgress {
    /// Whether any byte has arrived.
    private(set) var hasBegun = false
    /// Whether the request line was complete. If so, an exceeded limit means that a header field is too long.
    private(set) var hasRequestLine = false
    /// Whether the parser has read the headers of a request but not the end of its body.
    private(set) var isInBody = false
    /// Whether the body is chunked, so that its length is not known in advance.
    private var isChunked = false
    /// The number of body bytes in the buffer that is being passed to the parser.
    private var bodyBytes = 0
    /// Whether the part of the body that the parser has consumed ends in an empty line.
    private var endsInEmptyLine = false
    /// Called with the first byte.
    var onFirstByte: () -> Void = {}

    /// Records that the parser has delivered the headers of a request. The following bytes belong to the body or to the
    /// next request.
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

    /// Passes on bytes that begin within a body, and detects whether the next request begins after it.
    ///
    /// If a body has a length, the parser consumes as many bytes as it delivers. A chunked body ends in an empty line,
    /// as headers do.
    fileprivate func watch(_ bytes: ByteBuffer, _ handOn: () -> Void) {
        (bodyBytes, endsInEmptyLine) = (0, isChunked)
        handOn()
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

/// A handler before the parser that passes on the headers of one request at a time. The parser reports nothing until
/// the headers of a request are complete.
///
/// The parser knows where headers end and whether a body follows (`HeadProgress.isInBody`). It has processed the
/// headers before it receives more bytes.
final class HeadWatch: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    private let progress: HeadProgress
    /// The state of the line ending at the current position within the headers, which is 1 after LF and 2 after LF CR.
    private var ends = 0

    init(_ progress: HeadProgress) { self.progress = progress }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var bytes = unwrapInboundIn(data)
        while bytes.readableBytes > 0, context.channel.isActive {
            if progress.isInBody {
                // If the next request begins in the same buffer, `watch` detects it.
                progress.watch(bytes) { context.fireChannelRead(wrapInboundOut(bytes)) }
                return
            }
            let (length, hasLineEnd) = bytes.withUnsafeReadableBytes { head($0) }
            guard let head = bytes.readSlice(length: length) else { return }
            progress.received(hasLineEnd: hasLineEnd)
            context.fireChannelRead(wrapInboundOut(head))
        }
    }

    /// Returns the number of bytes up to the first empty line, which ends the headers at the latest, and whether the
    /// bytes contain a line ending.
    private func head(_ bytes: UnsafeRawBufferPointer) -> (length: Int, hasLineEnd: Bool) {
        var (length, hasLineEnd) = (0, false)
        for byte in bytes {
            length += 1
            switch byte {
            case UInt8(ascii: "\n"):
                hasLineEnd = true
                if ends > 0 {
                    ends = 0
                    return (length, true)
                }
                ends = 1
            case UInt8(ascii: "\r"): ends = ends == 1 ? 2 : 0
            default: ends = 0
            }
        }
        return (length, hasLineEnd)
    }
}
