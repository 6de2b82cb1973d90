#if TLS
    import HTTPCaching
    import ImageServer
    import NIOCore
    import NIOHTTP1
    import NIOHTTP2
    import PipelineSupport

    /// One request of an HTTP/2 connection and its answer.
    ///
    /// Frames, flow control and the limits on what a connection may ask for are NIO's; this has what `ConnectionHandler`
    /// does for a request: admission, body, work, answer in parts, and their times.
    final class StreamHandler: ChannelInboundHandler {
        typealias InboundIn = HTTPServerRequestPart
        typealias OutboundOut = HTTPServerResponsePart

        private enum State {
            /// The request arrives.
            case receiving(RequestAdmission?)
            /// The task works.
            case answering(RequestAdmission, Task<Void, Never>)
            /// The answer is on its way, or done.
            case sending
        }

        private let setup: ConnectionSetup
        private let peer: String?
        private let place: ConnectionPlace
        private var state = State.receiving(nil)
        private var context: ChannelHandlerContext?
        private var isBodyWanted = false
        private var bodyBytes = 0
        private var incoming: [UInt8] = []
        private var outgoing: ArraySlice<UInt8> = []
        private var outgoingFile: ServerResponse.FilePart?
        /// What the answer holds.
        private let claim: AnswerClaim
        /// Whether the next part waits until the client takes something.
        private var isWaiting = false
        /// The answer that is being sent.
        private var sending: (bytes: Int, began: NIODeadline)?
        /// When the client must have done something.
        private var idleDeadline = NIODeadline.distantFuture
        private var timer: Scheduled<Void>?
        private let began = ContinuousClock.now

        /// Bytes of an answer that are handed over at once; a part that is not taken within the idle time ends the stream.
        private static let partBytes = 64 << 10
        /// The same if all answers, or those of this connection, hold as much as they may. A stream whose window is closed
        /// keeps its part, and a connection has a hundred of them.
        private static let leastPart = 4 << 10

        init(_ setup: ConnectionSetup, peer: String?, _ place: ConnectionPlace) {
            self.setup = setup
            self.peer = peer
            self.place = place
            claim = AnswerClaim(place.share, partBytes: Self.partBytes, leastPart: Self.leastPart)
        }

        func handlerAdded(context: ChannelHandlerContext) {
            self.context = context
            arm()
        }

        func handlerRemoved(context: ChannelHandlerContext) {
            timer?.cancel()
            self.context = nil
        }

        func channelInactive(context: ChannelHandlerContext) {
            if case .answering(_, let task) = state { task.cancel() }
            claim.release()
            timer?.cancel()
            context.fireChannelInactive()
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            guard case .receiving(let admission) = state else { return }
            switch unwrapInboundIn(data) {
            case .head(let head): begin(head)
            case .body(let bytes):
                bodyBytes += bytes.readableBytes
                let limit = setup.configuration.bodyBytes
                guard bodyBytes <= limit else {
                    return refuse(Problem(.bodyTooLarge, "at most \(limit) bytes are read (`server.bodyBytes`)"))
                }
                if isBodyWanted { incoming.append(contentsOf: bytes.readableBytesView) }
            case .end: if let admission { answer(admission) }
            }
        }

        private func begin(_ head: HTTPRequestHead) {
            let fields = head.headers.map { HeaderField($0.name, $0.value.trimmingSpace()) }
            var head = head
            do throws(Problem) {
                head.uri = try setup.site.below(head.uri)
                try place.admits(head.uri)
            } catch {
                return refuse(error)
            }
            if let hit = setup.site.hit(method: head.method.rawValue, target: head.uri, fields: fields) {
                guard claim.holds(hit.body[...]) else { return refuse(AnswerClaim.refusal) }
                let request = ServerRequest(method: head.method.rawValue, target: head.uri, fields: fields)
                log(request, RequestLog.Answer(hit))
                return send(hit.status, Self.fields(of: hit.head), hit.body[...], nil)
            }
            do throws(Problem) {
                var admission = try RequestAdmission(
                    method: head.method.rawValue, target: head.uri, version: (2, 0), fields: fields,
                    bodyLimit: setup.configuration.bodyBytes)
                isBodyWanted = setup.site.wantsBody(of: admission.request)
                if admission.leavesBody {
                    guard isBodyWanted else { return answer(admission) }
                    admission.takeBody()
                    let interim = HTTPResponseHead(version: .http2, status: .continue)
                    context?.writeAndFlush(wrapOutboundOut(.head(interim)), promise: nil)
                }
                state = .receiving(admission)
            } catch {
                refuse(error)
            }
        }

        private func answer(_ admission: RequestAdmission) {
            guard let context else { return }
            timer?.cancel()
            let site = setup.site
            let loop = context.eventLoop
            let handler = NIOLoopBound(self, eventLoop: loop)
            var request = admission.request
            request.body = incoming
            request.client = client(request.fields)
            request.isAdministrative = setup.configuration.isAdministrative
            incoming = []
            let task = Task { [request] in
                let response = await site.respond(to: request) { interim in
                    loop.execute { handler.value.pass(interim) }
                }
                loop.execute { handler.value.answered(response) }
            }
            state = .answering(admission, task)
        }

        private func pass(_ interim: ServerResponse) {
            guard case .answering = state, (102..<200).contains(interim.status) else { return }
            let head = Self.head(interim.status, interim.fields)
            context?.writeAndFlush(wrapOutboundOut(.head(head)), promise: nil)
        }

        private func answered(_ response: ServerResponse) {
            guard case .answering(let admission, _) = state else { return }
            let response = claim.admitted(response, isHead: admission.request.isHead, now: setup.site.now())
            log(admission.request, RequestLog.Answer(response))
            send(response, isHead: admission.request.isHead)
        }

        /// Answers what is no proper request; what is still to come of it is not read.
        private func refuse(_ problem: Problem) {
            let response = problem.response(now: setup.site.now())
            log(nil, RequestLog.Answer(response))
            send(response, isHead: false)
        }

        private func send(_ response: ServerResponse, isHead: Bool) {
            var fields = response.fields
            if response.mayHaveBody { fields.append(HeaderField("Content-Length", String(response.length))) }
            let hasBody = response.mayHaveBody && !isHead
            send(response.status, fields, hasBody ? response.body : [], hasBody ? response.file : nil)
        }

        private func send(
            _ status: Int, _ fields: [HeaderField], _ body: ArraySlice<UInt8>, _ file: ServerResponse.FilePart?
        ) {
            guard let context else { return }
            state = .sending
            outgoing = body
            outgoingFile = file
            sending = (file?.range.count ?? body.count, .now())
            claim.begins()
            context.write(wrapOutboundOut(.head(Self.head(status, fields))), promise: nil)
            sendPart()
        }

        /// Hands over the next part of the body; the one after it when the client's window had room for this one.
        private func sendPart() {
            guard let context else { return }
            arm()
            // What is handed over while the client takes nothing would wait here, in memory.
            isWaiting = !context.channel.isWritable
            if isWaiting { return }
            if var rest = outgoingFile {
                let part = rest.removeFirst(claim.nextPart(of: rest.range.count))
                outgoingFile = rest.range.isEmpty ? nil : rest
                part.bytes(for: context.channel).assumeIsolated().whenSuccess { bytes in
                    // What was announced cannot be sent: only a stream that breaks says so.
                    guard let bytes else { return self.close() }
                    self.write(bytes)
                }
                return
            }
            let part = outgoing.prefix(claim.nextPart(of: outgoing.count))
            outgoing = outgoing.dropFirst(part.count)
            guard !part.isEmpty else {
                context.writeAndFlush(wrapOutboundOut(.end(nil))).assumeIsolated().whenComplete { _ in self.ended() }
                return
            }
            write(ByteBuffer(bytes: part))
        }

        func channelWritabilityChanged(context: ChannelHandlerContext) {
            if isWaiting, context.channel.isWritable { sendPart() }
            context.fireChannelWritabilityChanged()
        }

        private func write(_ bytes: ByteBuffer) {
            guard let context else { return }
            let promise = context.eventLoop.makePromise(of: Void.self)
            promise.futureResult.assumeIsolated().whenComplete { result in
                guard case .success = result else { return self.close() }
                // Not from within the write: a part that is taken at once would nest the next one in this one.
                self.context?.eventLoop.assumeIsolated().execute { self.sendPart() }
            }
            context.writeAndFlush(wrapOutboundOut(.body(.byteBuffer(bytes))), promise: promise)
        }

        /// The answer is given; a client that still sends its request is to stop (RFC 9113 §8.1).
        private func ended() {
            claim.release()
            timer?.cancel()
            context?.close(promise: nil)
        }

        private func close() {
            timer?.cancel()
            context?.close(promise: nil)
        }

        /// When the client must have taken the whole answer. It takes the other answers of the connection at the same time,
        /// and its line is no faster for each of them than for all.
        private var answerDeadline: NIODeadline {
            guard let sending else { return .distantFuture }
            return sending.began + setup.configuration.time(for: sending.bytes + claim.takenOfOthers)
        }

        private func arm() {
            idleDeadline = .now() + setup.configuration.idle
            schedule()
        }

        private func schedule() {
            guard let context else { return }
            timer?.cancel()
            let deadline = min(idleDeadline, answerDeadline)
            timer = context.eventLoop.assumeIsolated().scheduleTask(deadline: deadline) {
                guard case .receiving = self.state else {
                    return min(self.idleDeadline, self.answerDeadline) > .now() ? self.schedule() : self.close()
                }
                let seconds = JSONText.number(self.setup.configuration.idleSeconds)
                self.refuse(Problem(.requestTimeout, "it was not complete within \(seconds) s"))
            }
        }

        private func log(_ request: ServerRequest?, _ answer: RequestLog.Answer) {
            guard setup.observers.isActive else { return }
            let duration = request == nil ? Duration.zero : began.duration(to: .now)
            setup.observers.record(request?.target, status: answer.status, bytes: answer.bytes, duration) {
                var entry = RequestLog.Entry(
                    client: client(request?.fields ?? []) ?? "-", request: request, answer,
                    milliseconds: duration / .milliseconds(1))
                entry.time = setup.site.now()
                entry.version = request == nil ? nil : "HTTP/2.0"
                return entry
            }
        }

        private func client(_ fields: [HeaderField]) -> String? {
            setup.configuration.proxies.client(peer: peer, fields: fields)
        }

        private static func head(_ status: Int, _ fields: [HeaderField]) -> HTTPResponseHead {
            var headers = HTTPHeaders()
            headers.reserveCapacity(fields.count)
            for field in fields {
                headers.add(
                    name: field.name,
                    // A line break or a zero makes a response malformed here (RFC 9113 §8.2.1).
                    value: String(
                        String.UnicodeScalarView(
                            field.value.unicodeScalars.map { [0, 10, 13].contains($0.value) ? " " : $0 })))
            }
            return HTTPResponseHead(
                version: .http2, status: HTTPResponseStatus(statusCode: status), headers: headers)
        }

        /// The fields of a head that is serialised already.
        private static func fields(of head: [UInt8]) -> [HeaderField] {
            head.split(separator: UInt8(ascii: "\n")).dropFirst().compactMap { line in
                guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { return nil }
                let value = line[(colon + 1)...].drop { $0 == UInt8(ascii: " ") }.dropLast()
                return HeaderField(
                    String(decoding: line[..<colon], as: UTF8.self),
                    String(String.UnicodeScalarView(value.map { Unicode.Scalar($0) })))
            }
        }
    }
#endif
