@testable import PipelineFetching
import PipelineSupport
import TestSupport
import Testing

/// When transfers that move, or do not, are ended.
struct TransferLimitTests {
    /// A transfer that began at second 1000, with limits of one second, except the total.
    private static func transfer(body: [UInt8] = [], totalSeconds: Double) throws -> Transfer {
        var configuration = FetchConfiguration()
        (configuration.headTimeout, configuration.stallTimeout) = (.seconds(1), .seconds(1))
        var request = FetchRequest(url: try SourceURL("http://a.test/"))
        request.body = body
        let transfer = Transfer(
            Hop(
                request: request, lines: [], expectsPart: false, byteLimit: 1 << 30, totalSeconds: totalSeconds),
            TransferSettings(configuration))
        transfer.start(now: 1000)
        #expect(transfer.connected(now: 1000))
        return transfer
    }

    @Test(arguments: [15.0, .infinity])
    func `a body that moves is ended by the total limit alone, and by nothing if there is none`(total: Double) throws {
        let transfer = try Self.transfer(totalSeconds: total)
        let began = SystemClock.monotonic.seconds
        transfer.start(now: began)
        for line in ["HTTP/1.1 200 OK\r\n", "Content-Length: 900000\r\n", "\r\n"] {
            #expect(Array(line.utf8).withUnsafeBytes { transfer.receive(line: $0) })
        }
        var ended: Double?
        for second in stride(from: 2.0, to: 200, by: 1.5) where ended == nil {
            #expect([UInt8](repeating: 0, count: 2000).withUnsafeBytes { transfer.receive(body: $0) })
            let error = transfer.exceededLimit(now: began + second, sending: (0, false))
            if error != nil { ended = second }
            if let error { #expect(error.code == .timeout && error.message.contains("fetch.totalSeconds")) }
        }
        #expect((ended != nil) == total.isFinite)
        if !total.isFinite { #expect(transfer.exceededLimit(now: began + 400, sending: (0, false))?.code == .stalled) }
    }

    @Test func `without a total limit a body is sent for as long as it moves, and answered in time`() throws {
        let transfer = try Self.transfer(body: [1], totalSeconds: .infinity)
        for second in 1...500 {
            #expect(transfer.exceededLimit(now: 1000 + Double(second) / 2, sending: (second * 1000, true)) == nil)
        }
        // It has been taken over, and the answer is due.
        #expect(transfer.exceededLimit(now: 1250.9, sending: (500_000, false)) == nil)
        let late = transfer.exceededLimit(now: 1251.5, sending: (500_000, false))
        #expect(late?.code == .timeout && late?.message.contains("fetch.headerSeconds") == true)
        let stuck = transfer.exceededLimit(now: 1251.5, sending: (500_400, true))
        #expect(
            stuck?.code == .stalled && stuck?.message.contains("the request's body stalled: only 400 bytes") == true)
        // With one, the total limit is the only one.
        let limited = try Self.transfer(body: [1], totalSeconds: 15)
        #expect(limited.exceededLimit(now: 1014, sending: (0, true)) == nil)
        #expect(limited.exceededLimit(now: 1015, sending: (9, true))?.code == .timeout)
    }

    @Test func `a body that the origin does not take is a stall`() async throws {
        // It takes connections, and reads nothing.
        let port = try RefusingPort(listens: true)
        var configuration = FetchConfiguration()
        configuration.allowPrivateAddresses = .all
        (configuration.totalTimeout, configuration.stallTimeout) = (.seconds(0), .seconds(0.2))
        let transport = CurlTransport(configuration)
        defer { transport.shutdown() }
        var request = FetchRequest(url: try SourceURL(port.url("/a")))
        (request.method, request.body) = ("PUT", [UInt8](repeating: 7, count: 32 << 20))
        let sent = request
        let error = await #expect(throws: FetchError.self) { _ = try await transport.fetch(sent) }
        #expect(
            error?.code == .stalled && error?.message.contains("fetch.stallSeconds") == true, "\(error?.message ?? "")")
    }
}
