import PipelineSupport
import Glibc
import NIOCore
import NIOPosix
import Synchronization

@testable import pipectl

/// One connection to a server: sends bytes unchanged, and collects the received ones.
final class RawClient: Sendable {
    private struct State {
        var bytes: [UInt8] = []
        var isClosed = false
        var wasReset = false
        var waiting: [(isEnough: @Sendable ([UInt8]) -> Bool, CheckedContinuation<[UInt8], Never>)] = []
    }

    private let state: SharedState
    private let channel: any Channel

    private init(_ channel: any Channel, _ state: SharedState) {
        self.channel = channel
        self.state = state
    }

    /// Connects to 127.0.0.1.
    ///
    /// - Parameters:
    ///   - address: the client's own, in 127.0.0.0/8.
    ///   - reads: false for a client that does not read.
    static func connect(
        _ port: Int, from address: String = "127.0.0.1", reads: Bool = true
    ) async throws -> RawClient {
        let state = SharedState()
        let channel = try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            .bind(to: try SocketAddress(ipAddress: address, port: 0))
            .channelOption(.autoRead, value: reads)
            .channelOption(.maxMessagesPerRead, value: UInt(reads ? 4 : 1))
            .channelOption(
                .recvAllocator,
                value: reads
                    ? AdaptiveRecvByteBufferAllocator() as any RecvByteBufferAllocator
                    : FixedSizeRecvByteBufferAllocator(capacity: 2048)
            )
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Collector(state))
                }
            }
            .connect(host: "127.0.0.1", port: port).get()
        return RawClient(channel, state)
    }

    /// Sends text as UTF-8; what cannot be sent any more is lost, as on any connection.
    func send(_ text: String) { send(Array(text.utf8)) }

    func send(_ bytes: [UInt8]) {
        channel.writeAndFlush(ByteBuffer(bytes: bytes), promise: nil)
    }

    /// The received bytes once there are enough, or once the server has closed.
    func received(until isEnough: @escaping @Sendable ([UInt8]) -> Bool) async -> [UInt8] {
        await state.received(until: isEnough)
    }

    /// Everything until the server closes.
    func receivedToEnd() async -> [UInt8] { await received { _ in false } }

    /// This number of responses, in order; fewer if the server closes before.
    ///
    /// - Parameter heads: whether they answer HEAD and so have no body.
    func responses(_ count: Int, heads: Bool = false) async -> [RawResponse] {
        var (found, start, seen) = ([RawResponse](), 0, -1)
        while true {
            // Parsing on the event loop would hold up the clients of other tests.
            let bytes = await received { [seen] in $0.count > seen }
            while let (response, end) = RawResponse.first(in: bytes[start...], heads: heads) {
                found.append(response)
                start = end
            }
            if found.count >= count || bytes.count == seen { return found }
            seen = bytes.count
        }
    }

    /// Sends the text again and again, with a pause before each, until the connection ends: a client that is slow on
    /// purpose.
    func trickle(_ text: String, every pause: TimeAmount = .milliseconds(50)) {
        let channel = channel
        let task = channel.eventLoop.scheduleRepeatedTask(initialDelay: pause, delay: pause) { _ in
            channel.writeAndFlush(ByteBuffer(string: text), promise: nil)
        }
        channel.closeFuture.whenComplete { _ in task.cancel() }
    }

    /// Reads once; for a client that does not read otherwise.
    func read() { channel.read() }

    /// Reads once in a while until the connection ends; for a client that does not read otherwise.
    func sip(every pause: TimeAmount = .milliseconds(50)) {
        let channel = channel
        let task = channel.eventLoop.scheduleRepeatedTask(initialDelay: pause, delay: pause) { _ in channel.read() }
        channel.closeFuture.whenComplete { _ in task.cancel() }
    }

    /// Whether the connection ended with a reset instead of an end of the stream.
    var wasReset: Bool { state.wasReset }

    /// Closes, and waits for it.
    func close() async {
        try? await channel.close()
    }

    private final class SharedState: Sendable {
        private let state = Mutex(State())

        var wasReset: Bool { state.withLock { $0.wasReset } }

        func reset() { state.withLock { $0.wasReset = true } }

        func append(_ bytes: [UInt8], isEnd: Bool = false) {
            let done = state.withLock { state in
                state.bytes += bytes
                if isEnd { state.isClosed = true }
                let all = state.bytes
                let done = state.waiting.filter { isEnd || $0.isEnough(all) }.map { ($0.1, all) }
                state.waiting.removeAll { isEnd || $0.isEnough(all) }
                return done
            }
            for (continuation, bytes) in done { continuation.resume(returning: bytes) }
        }

        func received(until isEnough: @escaping @Sendable ([UInt8]) -> Bool) async -> [UInt8] {
            await withCheckedContinuation { continuation in
                let done = state.withLock { state -> [UInt8]? in
                    if state.isClosed || isEnough(state.bytes) { return state.bytes }
                    state.waiting.append((isEnough, continuation))
                    return nil
                }
                if let done { continuation.resume(returning: done) }
            }
        }
    }

    private final class Collector: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        private let state: SharedState

        init(_ state: SharedState) { self.state = state }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            state.append(Array(unwrapInboundIn(data).readableBytesView))
        }

        func channelInactive(context: ChannelHandlerContext) { state.append([], isEnd: true) }

        func errorCaught(context: ChannelHandlerContext, error: any Error) {
            if (error as? IOError)?.errnoCode == ECONNRESET { state.reset() }
            context.close(promise: nil)
        }
    }
}

/// A response as received.
struct RawResponse: Sendable {
    var status: Int
    /// Lines in order, names as sent, a scalar a byte.
    var lines: [(name: String, value: String)]
    var body: [UInt8]

    /// The first value of a field.
    subscript(name: String) -> String? { values(name).first }

    /// All values of a field, in order.
    func values(_ name: String) -> [String] {
        lines.filter { $0.name.lowercased() == name.lowercased() }.map(\.value)
    }

    var text: String { String(decoding: body, as: UTF8.self) }

    /// A problem's `type`, the part after the last colon; nil for other responses.
    var problem: String? {
        guard self["content-type"] == "application/problem+json",
            case .string(let type)? = SettingValue.parsed(text)["type"]
        else { return nil }
        return type.split(separator: ":").last.map(String.init)
    }

    /// The complete responses among the bytes.
    static func all(in bytes: [UInt8], heads: Bool = false) -> [RawResponse] {
        var found: [RawResponse] = []
        var rest = bytes[...]
        while let (response, end) = first(in: rest, heads: heads) {
            found.append(response)
            rest = rest[end...]
        }
        return found
    }

    fileprivate static func first(in bytes: ArraySlice<UInt8>, heads: Bool) -> (RawResponse, end: Int)? {
        let stop: [UInt8] = [13, 10, 13, 10]
        guard bytes.count >= 4,
            let end = bytes.indices.dropLast(3).first(where: { bytes[$0..<($0 + 4)].elementsEqual(stop) })
        else { return nil }
        let head = String(String.UnicodeScalarView(bytes[..<end].map { Unicode.Scalar($0) }))
        var texts = head.split(separator: "\r\n", omittingEmptySubsequences: false)
        let first = texts.removeFirst().split(separator: " ", omittingEmptySubsequences: false)
        guard first.count >= 2, first[0] == "HTTP/1.1", let status = Int(first[1]) else { return nil }
        let lines = texts.compactMap { text -> (name: String, value: String)? in
            guard let colon = text.firstIndex(of: ":") else { return nil }
            return (String(text[..<colon]), String(text[text.index(after: colon)...].drop { $0 == " " }))
        }
        var response = RawResponse(status: status, lines: lines, body: [])
        let start = end + 4
        let hasBody = !heads && status >= 200 && status != 204 && status != 304
        let length = hasBody ? response["content-length"].flatMap { Int($0) } ?? 0 : 0
        guard bytes.endIndex - start >= length else { return nil }
        response.body = Array(bytes[start..<(start + length)])
        return (response, start + length)
    }
}
