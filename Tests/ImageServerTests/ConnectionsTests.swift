import NIOEmbedded
import Testing

@testable import ImageServerNIO

/// The choice of the connection that gives way to another one.
@Suite struct ConnectionsTests {
    private static func connections() -> Connections {
        var configuration = ListenerConfiguration()
        configuration.connections = 1
        return Connections(configuration)
    }

    /// Without a place are at most eight connections.
    @Test func `connections of one address without a place leave another's probe alone`() throws {
        let connections = Self.connections()
        var channels: [EmbeddedChannel] = []
        func admitted(from address: String) -> OpenConnection? {
            channels.append(EmbeddedChannel())
            return connections.admit(channels.last!, from: address)
        }
        let busy = try #require(admitted(from: "a"))
        #expect(busy.markBusy())
        // One has connected and not asked yet; the others are being answered.
        let probe = try #require(admitted(from: "b"))
        for _ in 0..<7 {
            let place = try #require(admitted(from: "a"))
            #expect(place.markBusy())
        }
        #expect(admitted(from: "a") == nil)
        #expect(probe.markBusy(), "the probe has lost its place")
        // Another probe takes the place of one of the many.
        #expect(admitted(from: "c") != nil)
        for channel in channels { _ = try? channel.finish() }
    }
}
