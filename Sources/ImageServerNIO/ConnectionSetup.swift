import ImageServer
import NIOCore
import NIOHTTP1
import Synchronization

/// What the connections of a server share. A reload replaces it as a whole.
final class ConnectionSetup: Sendable {
    let site: Site
    let configuration: ListenerConfiguration
    let observers: RequestObservers
    /// nil for plain HTTP.
    let transport: SecureTransport?

    /// - Throws: what is wrong with the certificate or its key.
    init(
        _ site: Site, _ configuration: ListenerConfiguration, _ observers: RequestObservers
    ) throws(HTTPServer.StartError) {
        self.site = site
        self.configuration = configuration
        self.observers = observers
        transport = try HTTPServer.secureTransport(configuration)
    }

    static func requestDecoder(_ configuration: ListenerConfiguration) -> ByteToMessageHandler<HTTPRequestDecoder> {
        var limits = NIOHTTPDecoderLimitConfiguration()
        // The parser counts the target among the fields; it has a limit of its own, checked when the head is complete.
        limits.maxHeaderListSize = configuration.headerBytes + RequestAdmission.targetLimit
        limits.maxHeaderFieldSize = max(configuration.headerBytes, RequestAdmission.targetLimit)
        limits.maxHeaderFieldCount = 100
        return ByteToMessageHandler(HTTPRequestDecoder(leftOverBytesStrategy: .dropBytes, limitConfiguration: limits))
    }
}

/// The setup in force: each request is answered by the one that it finds, on connections that are open already too.
final class SetupInForce: Sendable {
    private let setup: Mutex<ConnectionSetup>

    init(_ setup: ConnectionSetup) { self.setup = Mutex(setup) }

    var now: ConnectionSetup { setup.withLock { $0 } }

    func replace(with setup: ConnectionSetup) { self.setup.withLock { $0 = setup } }

    /// Gives a connection its handlers, those of TLS first where it is spoken.
    func prepare(_ place: ConnectionPlace) throws {
        #if TLS
            if let transport = now.transport { return try transport.prepare(place, self) }
        #endif
        try addHTTP1(to: place, sendsFiles: true)
    }

    /// The handlers of HTTP/1.1.
    ///
    /// - Parameter sendsFiles: whether the kernel can send files over the connection.
    func addHTTP1(to place: ConnectionPlace, sendsFiles: Bool) throws {
        let progress = HeadProgress()
        let pipeline = place.channel.pipeline.syncOperations
        try pipeline.addHandler(HeadWatch(progress))
        try pipeline.addHandler(ConnectionSetup.requestDecoder(now.configuration))
        try pipeline.addHandler(
            ConnectionHandler(self, progress: progress, place: place, sendsFiles: sendsFiles))
    }
}
