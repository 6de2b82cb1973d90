import Glibc
import HTTPCaching
import ImageServer
import NIOCore
import NIOHTTP1
import NIOPosix
import PipelineSupport

/// Handles one connection on its event loop. `ConnectionState` decides what to do, and the handler performs the
/// resulting actions. Each response is produced in a task, which is cancelled if the connection closes.
final class ConnectionHandler: ChannelDuplexHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundIn = IOData
    typealias OutboundOut = IOData

    /// The remaining part of a response body. It shares storage with the caches.
    private struct Outgoing {
        var body: ArraySlice<UInt8> = []
        /// The part of a file that contains the body, or nil if the body is in memory.
        var file: ServerResponse.FilePart?
        /// When the client must have received the complete response, or nil if the response consists of one part.
        var deadline: NIODeadline?
    }

    private let inForce: SetupInForce
    /// The setup of the last request.
    private var setup: ConnectionSetup
    private let progress: HeadProgress
    private let connection: OpenConnection
    /// The part of the budget that the response holds.
    private let claim: AnswerClaim

    private var context: ChannelHandlerContext?
    private var state: ConnectionState
    private var isAdvancing = false
    /// The task that produces the response.
    private var task: Task<Void, Never>?
    private var outgoing = Outgoing()
    private var began = ContinuousClock.now
    private var deadline: NIODeadline?
    private var timer: (at: NIODeadline, scheduled: Scheduled<Void>)?

    /// The size of the parts in which a body in memory is sent, in bytes. If the client does not receive a part within
    /// the idle time, the connection is closed.
    private static let partBytes = 64 << 10
    /// The size of the parts in which a file is sent, in bytes. The kernel sends them, so they are not copied.
    private static let filePartBytes = 256 << 10
    /// How long a client may continue to send after its request was refused.
    private static let lingering = TimeAmount.seconds(2)
    /// How long a client without a request in progress may still send a request after the server begins to stop. The
    /// response contains `Connection: close`, so a proxy does not lose a request to a connection that is being closed.
    private static let drainGracePeriod = TimeAmount.milliseconds(500)

    /// - Parameter connection: The entry of this connection in `Connections`.
    init(_ setup: SetupInForce, progress: HeadProgress, connection: OpenConnection) {
        inForce = setup
        self.setup = setup.now
        self.progress = progress
        self.connection = connection
        state = ConnectionState(refusal: connection.refusal)
        claim = AnswerClaim(connection.account, freeBodyBytes: Self.partBytes)
    }

    // MARK: Channel events

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        progress.onFirstByte = { [weak self] in self?.headBegins() }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        progress.onFirstByte = {}
        self.context = nil
    }

    func channelActive(context: ChannelHandlerContext) {
        headBegins()
        context.fireChannelActive()
    }

    func channelInactive(context: ChannelHandlerContext) {
        task?.cancel()
        state.closed()
        claim.release()
        deadline = nil
        timer?.scheduled.cancel()
        timer = nil
        context.fireChannelInactive()
    }

    func read(context: ChannelHandlerContext) {
        if state.mayRead() { context.read() }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let part = unwrapInboundIn(data)
        switch part {
        case .head(let head): progress.headEnds(isChunked: head.headers.contains(name: "transfer-encoding"))
        case .body(let bytes): progress.bodyContinues(bytes.readableBytes)
        case .end: progress.bodyEnds()
        }
        advance(state.received(.part(part)))
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard let error = error as? HTTPParserError else {
            // The parser discards all bytes after a malformed request. Other errors come from the connection.
            if !(error is ByteToMessageDecoderError) { close() }
            return
        }
        let limit = setup.configuration.headerBytes
        let problem = Problem(error, hasRequestLine: progress.hasRequestLine, headerBytes: limit)
        advance(state.received(.refusal(problem)))
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .drain? = event as? ServerEvent { advance(state.drain(isHeadBegun: progress.hasBegun)) }
        context.fireUserInboundEventTriggered(event)
    }

    // MARK: Actions

    /// Performs an action and the actions that follow from it. A nested call performs only its own action, because a
    /// part that the socket accepts immediately reports completion from within the call that sends it.
    private func advance(_ action: ConnectionState.Action?) {
        if let action { perform(action) }
        guard !isAdvancing else { return }
        isAdvancing = true
        defer { isAdvancing = false }
        while let action = state.next() { perform(action) }
    }

    private func perform(_ action: ConnectionState.Action) {
        switch action {
        case .begin(let head): begin(head)
        case .answer(let request, let number): ask(request, number)
        case .refuse(let problem, let isHead):
            let response = problem.response(now: setup.site.now())
            log(nil, nil, RequestLog.Response(response, isHead: isHead))
            send(response, isHead: isHead, keepsAlive: false, announcesKeepAlive: false)
        case .rest:
            connection.markIdle()
            arm(state.isDraining ? min(idle, Self.drainGracePeriod) : idle)
        case .read: context?.read()
        case .linger:
            // The client has received its response, so its connection slot may be given to another client.
            connection.markIdle()
            arm(Self.lingering)
            context?.close(mode: .output, promise: nil)
            context?.read()
        case .close: close()
        case .abort: abort()
        }
    }

    private func begin(_ head: HTTPRequestHead) {
        guard connection.markBusy() else { return close() }
        setup = inForce.now
        var head = head
        do throws(Problem) {
            head.uri = try setup.site.relativeTarget(head.uri)
            try connection.countRequest(head.uri)
            if setup.observers.isActive { began = .now }
            let method = Self.name(of: head.method)
            let fields = try head.headers.map { (name, value) throws(Problem) in try HeaderField(name, decoded: value) }
            if head.version == .http1_1, !state.isDraining,
                let hit = setup.site.hit(
                    method: method, target: head.uri, fields: fields, client: client(fields),
                    isSecure: isSecure(fields))
            {
                return send(hit, head, fields)
            }
            let limit = setup.configuration.bodyBytes
            var admission = try RequestAdmission(
                method: method, target: head.uri, version: (head.version.major, head.version.minor), fields: fields,
                bodyLimit: limit, isUpload: setup.site.isUpload)
            admission.request.client = client(fields)
            admission.request.isSecure = isSecure(fields)
            admission.request.isAdministrative = setup.configuration.isAdministrative
            var wantsBody = false
            if admission.readsBody || admission.leavesBody {
                let intake = setup.site.intake(of: admission.request)
                admission.request.intake = intake
                switch intake {
                case .unneeded: break
                case .wanted: wantsBody = true
                case .upload:
                    wantsBody = true
                    // An array that grows by doubling could take twice the memory.
                    admission.request.body.reserveCapacity(fields.first("content-length").flatMap { Int($0) } ?? 0)
                case .refused(let problem): admission.refuseBody(problem)
                }
            }
            if wantsBody, admission.leavesBody {
                admission.takeBody()
                writeInterim(Array("HTTP/1.1 100 Continue\r\n\r\n".utf8))
            }
            if let action = state.receive(admission, isBodyWanted: wantsBody, bodyLimit: limit) { perform(action) }
        } catch {
            perform(state.refuse(error, isHead: head.method == .HEAD))
        }
    }

    /// Returns the method as received. NIO's name for M-SEARCH differs from the name in HTTP.
    private static func name(of method: HTTPMethod) -> String {
        method == .MSEARCH ? "M-SEARCH" : method.rawValue
    }

    private func ask(_ request: ServerRequest, _ number: Int) {
        guard let context else { return }
        deadline = nil
        let setup = setup
        let loop = context.eventLoop
        let handler = NIOLoopBound(self, eventLoop: loop)
        task = Task {
            let response = await setup.site.respond(to: request) { interim in
                loop.execute {
                    guard handler.value.state.takesInterim(interim.status, of: number) else { return }
                    handler.value.writeInterim(interim.headBytes(keepsAlive: true))
                }
            }
            loop.execute { handler.value.answered(response) }
        }
    }

    private func answered(_ response: ServerResponse) {
        task = nil
        guard let (admission, keepsAlive) = state.answered() else { return }
        let response = claim.admitted(response, isHead: admission.request.isHead, now: setup.site.now())
        log(admission.request, admission.version, RequestLog.Response(response))
        send(
            response, isHead: admission.request.isHead, keepsAlive: keepsAlive,
            announcesKeepAlive: admission.announcesKeepAlive && keepsAlive)
    }

    private func writeInterim(_ head: [UInt8]) {
        context?.writeAndFlush(wrapOutboundOut(.byteBuffer(ByteBuffer(bytes: head))), promise: nil)
    }

    // MARK: Responses

    private func send(_ hit: PreparedAnswer, _ head: HTTPRequestHead, _ fields: [HeaderField]) {
        state.sends()
        let refusal =
            claim.reserve(hit.body[...])
            ? nil
            : setup.site.crossOrigin(hit.route?.grammar).applied(
                to: AnswerClaim.refused(hit.route, now: setup.site.now()),
                origin: fields.first { FieldLines.lowercased($0.name) == "origin" }?.value)
        if setup.observers.isActive {
            let request = ServerRequest(method: Self.name(of: head.method), target: head.uri, fields: fields)
            log(request, "HTTP/1.1", refusal.map { RequestLog.Response($0) } ?? RequestLog.Response(hit))
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
        let count = file?.range.count ?? body.count
        outgoing = Outgoing(
            body: body, file: file,
            deadline: count > Self.partBytes ? .now() + setup.configuration.time(for: count) : nil)
        sendPart(after: head)
    }

    /// Sends the next part of the body, so that a large body is never copied or read all at once.
    private func sendPart(after head: [UInt8] = []) {
        guard let context, state.isSending else { return }
        guard var rest = outgoing.file else {
            let body = outgoing.body.prefix(Self.partBytes)
            outgoing.body = outgoing.body.dropFirst(body.count)
            var part = context.channel.allocator.buffer(capacity: head.count + body.count)
            part.writeBytes(head)
            part.writeBytes(body)
            return write(.byteBuffer(part))
        }
        let part = rest.removeFirst(Self.filePartBytes)
        outgoing.file = rest.range.isEmpty ? nil : rest
        // The file has become shorter, so the announced number of bytes cannot be sent. Break the connection to inform
        // the client, because sendfile(2) would silently send fewer bytes.
        guard let region = part.region else { return abort() }
        if !head.isEmpty { context.write(wrapOutboundOut(.byteBuffer(ByteBuffer(bytes: head))), promise: nil) }
        write(.fileRegion(region), of: part.file)
    }

    /// Writes a part, and sends the next part when the write completes.
    private func write(_ part: IOData, of file: SpooledBody? = nil) {
        guard let context else { return }
        arm(outgoing.deadline.map { min(idle, $0 - .now()) } ?? idle)
        let promise = context.eventLoop.makePromise(of: Void.self)
        promise.futureResult.assumeIsolated().whenComplete { result in
            if case .fileRegion(let region) = part {
                withExtendedLifetime(file) { _ = try? region.fileHandle.takeDescriptorOwnership() }
            }
            switch result {
            case .failure: self.close()
            case .success where self.outgoing.body.isEmpty && self.outgoing.file == nil: self.sent()
            // Scheduled as a separate task, because a part that is accepted immediately would otherwise be sent from
            // within this write.
            case .success: context.eventLoop.assumeIsolated().execute { self.sendPart() }
            }
        }
        context.writeAndFlush(wrapOutboundOut(part), promise: promise)
    }

    private func sent() {
        outgoing = Outgoing()
        claim.release()
        advance(state.sent())
    }

    private func close() {
        deadline = nil
        context?.close(promise: nil)
    }

    /// Closes the connection without waiting for unsent data. Otherwise the system would keep the data for as long as
    /// the client likes.
    private func abort() {
        if let options = context?.channel as? any SocketOptionProvider {
            // If the option is refused, closing takes longer.
            options.setSoLinger(Glibc.linger(l_onoff: 1, l_linger: 0)).whenFailure { _ in }
        }
        close()
    }

    // MARK: Time

    private var idle: TimeAmount { setup.configuration.idle }

    /// Starts the time limit for receiving the headers of a request. This method is also called when the connection
    /// opens.
    private func headBegins() {
        if state.isWaiting { arm(connection.requestTimeout(idle)) }
    }

    /// Sets the deadline. The timer is rescheduled only if it would fire too late, so one timer serves many requests.
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
        advance(state.timeIsUp(isHeadBegun: progress.hasBegun, idleSeconds: setup.configuration.idleSeconds))
    }

    private func log(_ request: ServerRequest?, _ version: String?, _ answer: RequestLog.Response) {
        guard setup.observers.isActive else { return }
        let duration = request == nil ? Duration.zero : began.duration(to: .now)
        setup.observers.record(answer, isRequest: request != nil, duration) {
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

    private func isSecure(_ fields: [HeaderField]) -> Bool {
        setup.configuration.proxies.isSecure(peer: context?.remoteAddress?.ipAddress, fields: fields)
    }
}
