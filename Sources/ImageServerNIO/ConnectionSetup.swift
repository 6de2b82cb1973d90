import ImageServer
import NIOCore
import NIOHTTP1

/// What every connection of a server shares, and the handlers it gets.
struct ConnectionSetup: Sendable {
    let site: Site
    let configuration: ListenerConfiguration
    let observers: RequestObservers

    /// The handlers of HTTP/1.1.
    ///
    /// - Parameters:
    ///   - isTurnedAway: whether the client is only told that there are too many.
    ///   - sendsFiles: whether the kernel can send files over the connection.
    func addHTTP1(to channel: any Channel, isTurnedAway: Bool, sendsFiles: Bool) throws {
        let progress = HeadProgress()
        let pipeline = channel.pipeline.syncOperations
        try pipeline.addHandler(HeadWatch(progress))
        try pipeline.addHandler(Self.requestDecoder(configuration))
        try pipeline.addHandler(
            ConnectionHandler(self, progress: progress, isTurnedAway: isTurnedAway, sendsFiles: sendsFiles))
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
