import ImageServer
import NIOCore
import NIOHTTP1
import Synchronization

/// State that the connections of a server share. A reload replaces the complete setup.
final class ConnectionSetup: Sendable {
    let site: Site
    let configuration: ListenerConfiguration
    let observers: RequestObservers

    init(_ site: Site, _ configuration: ListenerConfiguration, _ observers: RequestObservers) {
        self.site = site
        self.configuration = configuration
        self.observers = observers
    }

    static func requestDecoder(_ configuration: ListenerConfiguration) -> ByteToMessageHandler<HTTPRequestDecoder> {
        var limits = NIOHTTPDecoderLimitConfiguration()
        // The parser includes the target in the length of the fields. The target has a separate limit, which is checked
        // after all headers have arrived.
        limits.maxHeaderListSize = configuration.headerBytes + RequestAdmission.targetLimit
        limits.maxHeaderFieldSize = max(configuration.headerBytes, RequestAdmission.targetLimit)
        limits.maxHeaderFieldCount = 100
        return ByteToMessageHandler(HTTPRequestDecoder(leftOverBytesStrategy: .dropBytes, limitConfiguration: limits))
    }
}

/// The current setup. Each request uses the setup that is current when the request begins, also on existing
/// connections.
final class SetupInForce: Sendable {
    private let setup: Mutex<ConnectionSetup>

    init(_ setup: ConnectionSetup) { self.setup = Mutex(setup) }

    var now: ConnectionSetup { setup.withLock { $0 } }

    func replace(with setup: ConnectionSetup) { self.setup.withLock { $0 = setup } }

    /// Adds the handlers of a connection to its channel pipeline.
    func prepare(_ connection: OpenConnection) throws {
        let progress = HeadProgress()
        let pipeline = connection.channel.pipeline.syncOperations
        try pipeline.addHandler(HeadWatch(progress))
        try pipeline.addHandler(ConnectionSetup.requestDecoder(now.configuration))
        try pipeline.addHandler(ConnectionHandler(self, progress: progress, connection: connection))
    }
}
