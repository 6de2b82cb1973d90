import Glibc
import HTTPCaching
import ImageServer
import NIOCore
import NIOHTTP1
import NIOPosix
import PipelineSupport

/// One connection of a client: requests in, answers out, one at a time and in order.
///
/// While a request is worked on nothing more is read, so a client that sends faster than it listens fills its own
/// buffers, not ours. What the parser had already taken waits in `queue`. All of it happens on the connection's event
/// loop; only the work itself runs in a task, which ends with the connection.
final class ConnectionHandler: ChannelDuplexHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundIn = IOData
    typealias OutboundOut = IOData

    private enum State {
        /// Between requests, or a head is arriving.
        case waiting
        /// A head is there, its body is being read, and thrown away unless it is wanted.
        case receiving(RequestAdmission, bodyBytes: Int)
        /// The task works.
        case answering(RequestAdmission, Task<Void, Never>)
        /// The answer is on its way.
        case sending
        /// The answer is sent and our side is closed; what the client still sends is thrown away, so that it reads the
        /// answer before it sees a reset (RFC 9112 §9.6).
        case lingering
        case closed
    }

    private enum Item {
        case part(HTTPServerRequestPart)
        case refusal(Problem)
    }

    private let inForce: SetupInForce
    /// That of the last request.
    private var setup: ConnectionSetup
    private let progress: HeadProgress
    private let place: ConnectionPlace
    private let sendsFiles: Bool

    private var context: ChannelHandlerContext?
    private var state = State.waiting
    private var queue = CircularBuffer<Item>()
    /// Nothing is read after the answer that is being given.
    private var endsAfterAnswer = false
    private var lingers = false
    private var isDraining = false
    private var isEmptyingQueue = false
    /// How many requests were begun, this one included.
    private var answers = 0
    private var wantsRead = false
    private var began = ContinuousClock.now
    /// Whether the body of the request that is being received goes anywhere, and what has come of it.
    private var isBodyWanted = false
    private var incoming: [UInt8] = []
    /// What is still to be sent of the answer's body; it shares its bytes with the caches.
    private var outgoing: ArraySlice<UInt8> = []
    /// The same where it lies in a file.
    private var outgoingFile: ServerResponse.FilePart?
    /// What the answer holds.
    private let claim: AnswerClaim
    /// When the client must have taken the whole answer; nil if it has one part.
    private var answerDeadline: NIODeadline?
    private var deadline: NIODeadline?
    private var timer: (at: NIODeadline, scheduled: Scheduled<Void>)?

    /// Parts of pipelined requests that may wait; they come from one read of the socket.
    private static let queueLimit = 16_384
    /// Bytes of an answer that are handed over at once; a part that is not taken within the idle time ends it.
    private static let partBytes = 256 << 10
    /// The same if the answers of all connections hold as much as they may.
    private static let leastPart = 64 << 10
    /// How long a client may go on sending after it was refused.
    private static let lingering = TimeAmount.seconds(2)
    /// How long a client without a request may still send one when the server stops. Its answer says `Connection: close`,
    /// so that a proxy loses no request to a connection that ends.
    private static let farewell = TimeAmount.milliseconds(500)

    /// - Parameters:
    ///   - place: this connection's.
    ///   - sendsFiles: whether the kernel can send files over the connection.
    init(_ setup: SetupInForce, progress: HeadProgress, place: ConnectionPlace, sendsFiles: Bool) {
        inForce = setup
        self.setup = setup.now
        self.progress = progress
        self.place = place
        self.sendsFiles = sendsFiles
        claim = AnswerClaim(place.share, partBytes: Self.partBytes, leastPart: Self.leastPart)
    }

    // MARK: Events of the channel

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        progress.onFirstByte = { [weak self] in self?.headBegins() }
        // Behind TLS the connection is active before this handler is there.
        if context.channel.isActive { connected() }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        progress.onFirstByte = {}
        self.context = nil
    }

    func channelActive(context: ChannelHandlerContext) {
        connected()
        context.fireChannelActive()
    }

    private func connected() { arm(place.patience(idle)) }

    func channelInactive(context: ChannelHandlerContext) {
        if case .answering(_, let task) = state { task.cancel() }
        state = .closed
        queue.removeAll()
        claim.release()
        deadline = nil
        timer?.scheduled.cancel()
        timer = nil
        context.fireChannelInactive()
    }

    func read(context: ChannelHandlerContext) {
        switch state {
        case .waiting, .receiving, .lingering: context.read()
        case .answering, .sending, .closed: wantsRead = true
        }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let part = unwrapInboundIn(data)
        switch part {
        case .head(let head):
            progress.headEnds(isChunked: head.headers.contains(name: "transfer-encoding"))
            if progress.isUnchanged, !head.headers.allSatisfy({ $0.value.utf8.allSatisfy { $0 < 0x80 } }) {
                return take(
                    .refusal(Problem(.malformedRequest, "fields beyond ASCII right behind a body are not read")))
            }
        case .body(let bytes): progress.bodyContinues(bytes.readableBytes)
        case .end: progress.bodyEnds()
        }
        take(.part(part))
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard let error = error as? HTTPParserError else {
            // What comes after a malformed request is thrown away; anything else is the connection's own trouble.
            if !(error is ByteToMessageDecoderError) { close() }
            return
        }
        let limit = setup.configuration.headerBytes
        take(.refusal(Problem(error, hasRequestLine: progress.hasRequestLine, headerBytes: limit)))
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .drain? = event as? ServerEvent {
            isDraining = true
            if case .waiting = state, !progress.hasBegun { arm(min(idle, Self.farewell)) }
        }
        context.fireUserInboundEventTriggered(event)
    }

    // MARK: Requests

    private func take(_ item: Item) {
        if endsAfterAnswer {
            lingers = true
            return
        }
        switch state {
        case .waiting, .receiving: process(item)
        case .answering, .sending:
            guard queue.count < Self.queueLimit else { return close() }
            queue.append(item)
        case .lingering, .closed: break
        }
    }

    private func process(_ item: Item) {
        switch item {
        case .refusal(let problem): refuse(problem)
        case .part(.head(let head)): begin(head)
        case .part(.body(let bytes)):
            guard case .receiving(let admission, let count) = state else { return }
            let total = count + bytes.readableBytes
            let limit = setup.configuration.bodyBytes
            guard total <= limit else {
                return refuse(Problem(.bodyTooLarge, "at most \(limit) bytes are read (`server.bodyBytes`)"))
            }
            if isBodyWanted { incoming.append(contentsOf: bytes.readableBytesView) }
            state = .receiving(admission, bodyBytes: total)
        case .part(.end):
            if case .receiving(let admission, _) = state { answer(admission) }
        }
    }

    private var idle: TimeAmount { setup.configuration.idle }

    private func begin(_ head: HTTPRequestHead) {
        guard place.begins() else { return close() }
        setup = inForce.now
        var head = head
        do throws(Problem) {
            head.uri = try setup.site.below(head.uri)
            try place.admits(head.uri)
        } catch {
            return refuse(error, isHead: head.method == .HEAD)
        }
        if setup.observers.isActive { began = .now }
        let method = Self.name(of: head.method)
        let fields = head.headers.map { HeaderField($0.name, $0.value.trimmingSpace()) }
        if head.version == .http1_1, !isDraining,
            let hit = setup.site.hit(method: method, target: head.uri, fields: fields)
        {
            return send(hit, head, fields)
        }
        do throws(Problem) {
            var admission = try RequestAdmission(
                method: method, target: head.uri, version: (head.version.major, head.version.minor), fields: fields,
                bodyLimit: setup.configuration.bodyBytes)
            if admission.readsBody || admission.leavesBody, setup.site.wantsBody(of: admission.request) {
                isBodyWanted = true
                if admission.leavesBody {
                    admission.takeBody()
                    context?.writeAndFlush(
                        wrapOutboundOut(.byteBuffer(ByteBuffer(string: "HTTP/1.1 100 Continue\r\n\r\n"))), promise: nil)
                }
            }
            if admission.keepsAlive || admission.readsBody {
                state = .receiving(admission, bodyBytes: 0)
            } else {
                answer(admission)
            }
        } catch {
            refuse(error, isHead: head.method == .HEAD)
        }
    }

    /// The method as it came; NIO knows one by another name than HTTP.
    private static func name(of method: HTTPMethod) -> String {
        method == .MSEARCH ? "M-SEARCH" : method.rawValue
    }

    private func answer(_ admission: RequestAdmission) {
        guard let context else { return }
        deadline = nil
        endsAfterAnswer = !admission.keepsAlive || place.refusal != nil
        lingers = admission.leavesBody
        let setup = setup
        let loop = context.eventLoop
        let handler = NIOLoopBound(self, eventLoop: loop)
        var request = admission.request
        request.body = incoming
        request.client = client(request.fields)
        request.isAdministrative = setup.configuration.isAdministrative
        (isBodyWanted, incoming) = (false, [])
        answers += 1
        let answer = answers
        let task = Task { [request] in
            let response = await setup.site.respond(to: request) { interim in
                loop.execute { handler.value.pass(interim, of: answer) }
            }
            loop.execute { handler.value.answered(response) }
        }
        state = .answering(admission, task)
    }

    /// Hands an interim response on (RFC 9110 §15.2); one that comes too late, from a validation in the background say,
    /// is dropped.
    private func pass(_ interim: ServerResponse, of answer: Int) {
        guard case .answering(let admission, _) = state, answer == answers, admission.takesInterim, let context,
            (102..<200).contains(interim.status)
        else { return }
        context.writeAndFlush(
            wrapOutboundOut(.byteBuffer(ByteBuffer(bytes: interim.headBytes(keepsAlive: true)))), promise: nil)
    }

    private func answered(_ response: ServerResponse) {
        guard case .answering(let admission, _) = state else { return }
        if isDraining { endsAfterAnswer = true }
        let response = claim.admitted(response, isHead: admission.request.isHead, now: setup.site.now())
        log(admission.request, admission.version, RequestLog.Answer(response))
        send(
            response, isHead: admission.request.isHead, keepsAlive: !endsAfterAnswer,
            announcesKeepAlive: admission.announcesKeepAlive && !endsAfterAnswer)
    }

    /// Answers what is no proper request, and ends the connection: where the next one begins is not known.
    private func refuse(_ problem: Problem, isHead: Bool = false) {
        endsAfterAnswer = true
        lingers = true
        queue.removeAll()
        let response = problem.response(now: setup.site.now())
        log(nil, nil, RequestLog.Answer(response, isHead: isHead))
        send(response, isHead: isHead, keepsAlive: false, announcesKeepAlive: false)
    }

    // MARK: Answers

    private func send(_ hit: PreparedAnswer, _ head: HTTPRequestHead, _ fields: [HeaderField]) {
        let refusal = claim.holds(hit.body[...]) ? nil : AnswerClaim.refusal.response(now: setup.site.now())
        if setup.observers.isActive {
            let request = ServerRequest(method: Self.name(of: head.method), target: head.uri, fields: fields)
            log(request, "HTTP/1.1", refusal.map { RequestLog.Answer($0) } ?? RequestLog.Answer(hit))
        }
        if let refusal { return send(refusal, isHead: false, keepsAlive: true, announcesKeepAlive: false) }
        send(hit.body[...], nil, after: hit.head)
    }

    private func send(_ response: ServerResponse, isHead: Bool, keepsAlive: Bool, announcesKeepAlive: Bool) {
        let hasBody = response.mayHaveBody && !isHead
        send(
            hasBody ? response.body : [], hasBody ? response.file : nil,
            after: response.headBytes(keepsAlive: keepsAlive, announcesKeepAlive: announcesKeepAlive))
    }

    private func send(_ body: ArraySlice<UInt8>, _ file: ServerResponse.FilePart?, after head: [UInt8]) {
        state = .sending
        (outgoing, outgoingFile) = (body, file)
        let count = file?.range.count ?? body.count
        answerDeadline = count > Self.partBytes ? .now() + setup.configuration.time(for: count) : nil
        sendPart(after: head)
    }

    /// Hands over the next part of the body, so that a large one is never copied or read as a whole.
    private func sendPart(after head: [UInt8] = []) {
        guard let context, case .sending = state else { return }
        guard var rest = outgoingFile else {
            let body = outgoing.prefix(claim.nextPart(of: outgoing.count))
            outgoing = outgoing.dropFirst(body.count)
            return write(head, body)
        }
        let part = rest.removeFirst(sendsFiles ? Self.partBytes : claim.nextPart(of: rest.range.count))
        outgoingFile = rest.range.isEmpty ? nil : rest
        guard sendsFiles else { return sendBytes(of: part, after: head) }
        // What was announced cannot be sent: only a connection that breaks says so. sendfile(2) would send less.
        guard let region = part.region else { return abort() }
        if !head.isEmpty { context.write(wrapOutboundOut(.byteBuffer(ByteBuffer(bytes: head))), promise: nil) }
        write(.fileRegion(region), of: part.file)
    }

    /// Reads a part of a file, and sends it as any other body.
    private func sendBytes(of part: ServerResponse.FilePart, after head: [UInt8]) {
        guard let context else { return }
        part.bytes(for: context.channel).assumeIsolated().whenComplete { result in
            guard case .sending = self.state else { return }
            guard case .success(let bytes?) = result else { return self.abort() }
            if !head.isEmpty {
                self.context?.write(self.wrapOutboundOut(.byteBuffer(ByteBuffer(bytes: head))), promise: nil)
            }
            self.write(.byteBuffer(bytes))
        }
    }

    /// Copies the bytes.
    private func write(_ head: [UInt8], _ body: ArraySlice<UInt8>) {
        guard let context else { return }
        var part = context.channel.allocator.buffer(capacity: head.count + body.count)
        part.writeBytes(head)
        part.writeBytes(body)
        write(.byteBuffer(part))
    }

    /// Goes on with the next part when this one is taken.
    private func write(_ part: IOData, of file: SpooledBody? = nil) {
        guard let context else { return }
        arm(answerDeadline.map { min(idle, $0 - .now()) } ?? idle)
        let promise = context.eventLoop.makePromise(of: Void.self)
        promise.futureResult.assumeIsolated().whenComplete { result in
            if case .fileRegion(let region) = part {
                withExtendedLifetime(file) { _ = try? region.fileHandle.takeDescriptorOwnership() }
            }
            guard case .sending = self.state else { return }
            switch result {
            case .failure: self.close()
            case .success where self.outgoing.isEmpty && self.outgoingFile == nil: self.sent()
            // Not from within the write: a part that is taken at once would nest the next one in this one.
            case .success: context.eventLoop.assumeIsolated().execute { self.sendPart() }
            }
        }
        context.writeAndFlush(wrapOutboundOut(part), promise: promise)
    }

    private func sent() {
        outgoing = []
        outgoingFile = nil
        claim.release()
        // What the client has sent beyond this request would make closing a reset, which could overtake the answer.
        guard !endsAfterAnswer else { return lingers || isDraining ? linger() : close() }
        state = .waiting
        place.rests()
        arm(isDraining ? min(idle, Self.farewell) : idle)
        // An answer that is sent at once ends here again: the outermost call goes on with the queue.
        if isEmptyingQueue { return }
        isEmptyingQueue = true
        defer { isEmptyingQueue = false }
        while let item = queue.popFirst() {
            process(item)
            switch state {
            case .waiting, .receiving: continue
            case .answering, .sending, .lingering, .closed: return
            }
        }
        if wantsRead {
            wantsRead = false
            context?.read()
        }
    }

    private func linger() {
        guard let context else { return }
        state = .lingering
        queue.removeAll()
        arm(Self.lingering)
        context.close(mode: .output, promise: nil)
        context.read()
    }

    private func close() {
        deadline = nil
        context?.close(promise: nil)
    }

    /// Closes without waiting for what was not taken: the system would keep it for as long as the client likes.
    private func abort() {
        if let options = context?.channel as? any SocketOptionProvider {
            // Where it is refused, closing takes longer.
            options.setSoLinger(Glibc.linger(l_onoff: 1, l_linger: 0)).whenFailure { _ in }
        }
        close()
    }

    // MARK: Time

    private func headBegins() {
        if case .waiting = state { arm(place.patience(idle)) }
    }

    /// Moves the deadline. The timer itself is moved only where it would ring too late: one timer serves many requests.
    private func arm(_ amount: TimeAmount) {
        let deadline = NIODeadline.now() + amount
        self.deadline = deadline
        if let timer {
            guard deadline < timer.at else { return }
            timer.scheduled.cancel()
        }
        schedule(deadline)
    }

    private func schedule(_ time: NIODeadline) {
        guard let context else { return }
        let scheduled = context.eventLoop.assumeIsolated().scheduleTask(deadline: time) { self.timerRings() }
        timer = (time, scheduled)
    }

    private func timerRings() {
        timer = nil
        guard let deadline else { return }
        guard deadline <= .now() else { return schedule(deadline) }
        self.deadline = nil
        if case .waiting = state, let refusal = place.refusal { return refuse(refusal) }
        switch state {
        case .waiting where !progress.hasBegun: isDraining ? linger() : close()
        case .waiting, .receiving:
            refuse(
                Problem(
                    .requestTimeout, "it was not complete within \(JSONText.number(setup.configuration.idleSeconds)) s")
            )
        case .sending: abort()
        case .lingering: close()
        case .answering, .closed: break
        }
    }

    private func log(_ request: ServerRequest?, _ version: String?, _ answer: RequestLog.Answer) {
        guard setup.observers.isActive else { return }
        let duration = request == nil ? Duration.zero : began.duration(to: .now)
        setup.observers.record(request?.target, status: answer.status, bytes: answer.bytes, duration) {
            var entry = RequestLog.Entry(
                client: client(request?.fields ?? []) ?? "-", request: request, answer,
                milliseconds: duration / .milliseconds(1))
            (entry.time, entry.version) = (setup.site.now(), version)
            return entry
        }
    }

    private func client(_ fields: [HeaderField]) -> String? {
        setup.configuration.proxies.client(peer: context?.remoteAddress?.ipAddress, fields: fields)
    }
}
