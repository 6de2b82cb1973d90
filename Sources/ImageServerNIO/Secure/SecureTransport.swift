#if TLS
    import ImageServer
    import NIOCore
    import NIOHTTP2
    import NIOSSL
    import NIOTLS

    /// TLS below HTTP/1.1 and HTTP/2; which of them a connection speaks is agreed by ALPN (RFC 7301).
    struct SecureTransport: Sendable {
        private let context: NIOSSLContext

        /// - Throws: what is wrong with the certificate or the key.
        init(_ files: TLSFiles, http2: Bool) throws(HTTPServer.StartError) {
            let chain = try Self.read(files.certificate, "certificate") { try NIOSSLCertificate.fromPEMFile($0) }
            let key = try Self.read(files.key, "key") { try NIOSSLPrivateKey(file: $0, format: .pem) }
            var configuration = TLSConfiguration.makeServerConfiguration(
                certificateChain: chain.map { .certificate($0) }, privateKey: .privateKey(key))
            // Older versions are deprecated (RFC 8996).
            configuration.minimumTLSVersion = .tlsv12
            configuration.applicationProtocols = (http2 ? ["h2"] : []) + ["http/1.1"]
            do {
                context = try NIOSSLContext(configuration: configuration)
            } catch {
                throw HTTPServer.StartError(
                    message: "`server.tls`: \(files.key) is not the key of the certificate in \(files.certificate)")
            }
        }

        private static func read<Value>(
            _ path: String, _ member: String, _ body: (String) throws -> Value
        ) throws(HTTPServer.StartError) -> Value {
            do {
                return try body(path)
            } catch {
                throw HTTPServer.StartError(message: "`server.tls`: no \(member) can be read from \(path) (PEM)")
            }
        }

        /// Gives a connection its handlers: those of TLS now, those of HTTP once the protocol is known.
        func prepare(_ place: ConnectionPlace, _ setup: SetupInForce) throws {
            let pipeline = place.channel.pipeline.syncOperations
            try pipeline.addHandler(NIOSSLServerHandler(context: context))
            try pipeline.addHandler(HandshakeWatch(place.patience(setup.now.configuration.idle)))
            try pipeline.addHandler(
                ApplicationProtocolNegotiationHandler { result, channel in
                    channel.eventLoop.makeCompletedFuture {
                        if result == .negotiated("h2") {
                            try Self.addHTTP2(to: place, setup)
                        } else {
                            try setup.addHTTP1(to: place, sendsFiles: false)
                        }
                    }
                })
        }

        private static func addHTTP2(to place: ConnectionPlace, _ setup: SetupInForce) throws {
            let channel = place.channel
            let limit = setup.now.configuration.headerBytes + RequestAdmission.targetLimit
            var connection = NIOHTTP2Handler.ConnectionConfiguration()
            connection.initialSettings = [
                HTTP2Setting(parameter: .maxConcurrentStreams, value: 100),
                HTTP2Setting(parameter: .maxHeaderListSize, value: limit),
            ]
            let pipeline = channel.pipeline.syncOperations
            let idle = place.patience(setup.now.configuration.idle)
            // A connection without a place is not to stay, however much it asks.
            let age = place.refusal == nil ? nil : idle
            let manager = NIOHTTP2ServerConnectionManagementHandler(
                eventLoop: channel.eventLoop,
                configuration: .init(
                    maxIdleTime: idle, maxAge: age, maxGraceTime: age, keepalive: nil))
            let watch = ConnectionWatch(place, idle + .seconds(2))
            let peer = channel.remoteAddress?.ipAddress
            _ = try pipeline.configureHTTP2Pipeline(
                mode: .server, connectionConfiguration: connection, streamConfiguration: .init(),
                streamDelegate: Streams(
                    watch: NIOLoopBound(watch, eventLoop: channel.eventLoop), manager: manager.http2StreamDelegate)
            ) { stream in
                stream.eventLoop.makeCompletedFuture {
                    let pipeline = stream.pipeline.syncOperations
                    try pipeline.addHandler(HTTP2FramePayloadToHTTP1ServerCodec())
                    try pipeline.addHandler(StreamHandler(setup.now, peer: peer, place))
                }
            }
            try pipeline.addHandler(watch)
            try pipeline.addHandler(manager)
            // The connection is active already; only this starts the timer of one that never asks for anything.
            manager.channelActive(context: try pipeline.context(handler: manager))
        }
    }

    /// Closes a connection whose handshake fails or is not complete in time. If the server stops meanwhile, the handlers of
    /// HTTP hear of it when they are there.
    private final class HandshakeWatch: ChannelInboundHandler, RemovableChannelHandler {
        typealias InboundIn = ByteBuffer

        private let time: TimeAmount
        private var timer: Scheduled<Void>?
        private var isDraining = false

        init(_ time: TimeAmount) { self.time = time }

        func handlerAdded(context: ChannelHandlerContext) {
            let channel = context.channel
            timer = context.eventLoop.scheduleTask(in: time) { channel.close(promise: nil) }
        }

        func handlerRemoved(context: ChannelHandlerContext) { timer?.cancel() }

        func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
            if case .drain? = event as? ServerEvent {
                isDraining = true
                return
            }
            context.fireUserInboundEventTriggered(event)
            if case .handshakeCompleted? = event as? TLSUserEvent {
                if isDraining { context.fireUserInboundEventTriggered(ServerEvent.drain) }
                // It is in the pipeline.
                context.pipeline.syncOperations.removeHandler(self, promise: nil)
            }
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }

    /// Tells both who watch a connection of its streams; NIO calls it on the connection's event loop.
    private struct Streams: NIOHTTP2StreamDelegate {
        let watch: NIOLoopBound<ConnectionWatch>
        let manager: NIOHTTP2ServerConnectionManagementHandler.HTTP2StreamDelegate

        func streamCreated(_ id: HTTP2StreamID, channel: any Channel) {
            watch.value.streamBegins()
            manager.streamCreated(id, channel: channel)
        }

        func streamClosed(_ id: HTTP2StreamID, channel: any Channel) {
            watch.value.streamEnds()
            manager.streamClosed(id, channel: channel)
        }
    }

    /// Tells NIO's connection handler when the server stops, and closes a connection that has failed, or that answers
    /// nothing when it is to end: NIO waits for the client's word.
    private final class ConnectionWatch: ChannelInboundHandler {
        typealias InboundIn = HTTP2Frame

        private let place: ConnectionPlace
        private let time: TimeAmount
        private var streams = 0
        private var timer: Scheduled<Void>?

        /// - Parameter time: how long a connection without requests lives.
        init(_ place: ConnectionPlace, _ time: TimeAmount) {
            self.place = place
            self.time = time
        }

        func handlerAdded(context: ChannelHandlerContext) { arm() }

        func handlerRemoved(context: ChannelHandlerContext) { timer?.cancel() }

        func channelInactive(context: ChannelHandlerContext) {
            timer?.cancel()
            context.fireChannelInactive()
        }

        func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
            context.fireUserInboundEventTriggered(event is ServerEvent ? ChannelShouldQuiesceEvent() : event)
        }

        func streamBegins() {
            streams += 1
            timer?.cancel()
            // If the place is given away already, the connection is being closed.
            _ = place.begins()
        }

        func streamEnds() {
            streams -= 1
            guard streams == 0 else { return }
            place.rests()
            if place.channel.isActive { arm() }
        }

        private func arm() {
            timer?.cancel()
            let channel = place.channel
            timer = channel.eventLoop.scheduleTask(in: time) { channel.close(promise: nil) }
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) {
            // Errors of one stream end that stream.
            if !(error is NIOHTTP2Errors.StreamError) { context.close(promise: nil) }
        }
    }
#endif
