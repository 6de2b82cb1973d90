import Glibc
import ImageServer
import NIOCore
import Pipeline
import PipelineSupport
import TestSupport
import Testing

@testable import ImageServerNIO
@testable import pipectl

extension CommandTests {
    /// The bytes that answers hold while clients read slowly or not at all: a server in this process, so that they can
    /// be counted.
    @Suite struct ServeBudget {
        private static let long = 20_000_000

        /// A server before an origin of originals that are not stored, 20 MB below `/long` and 100 kB elsewhere.
        private static func with(
            cacheControl: String = "no-store", freeSpace: Int = 0,
            _ change: (inout ListenerConfiguration) throws -> Void,
            _ body: (HTTPServer, Int, (String) -> String) async throws -> Void
        ) async throws {
            let bytes = [UInt8](repeating: 7, count: long)
            let origin = try LoopbackOrigin { request in
                .response(
                    200, ["Content-Type": "image/x", "Cache-Control": cacheControl],
                    body: request.path.hasPrefix("/long") ? bytes : Array(bytes[..<100_000]))
            }
            defer { origin.stop() }
            let folder = ScratchFolder()
            var configuration = PipelineConfiguration()
            configuration.cacheFolder = folder("cache")
            configuration.disk.freeSpace = freeSpace
            configuration.fetch.allowPrivateAddresses = .all
            let pipeline = try ImagePipeline(configuration)
            var settings = ServerConfiguration()
            settings.allowUnsigned = true
            for number in 1...4 { truncate(folder.write("BM", to: "pictures/\(number).bmp"), long) }
            settings.baseURLs = ["pictures": "file://" + folder("pictures")]
            var listener = ListenerConfiguration()
            listener.listen = .tcp(host: "127.0.0.1", port: 0)
            try change(&listener)
            let server = try await HTTPServer.start(
                try Site(pipeline: pipeline, settings: settings, now: { SystemClock.unix.seconds }), listener)
            guard case .tcp(_, let port)? = server.addresses.first else { return }
            do {
                try await body(server, port) { RunningServer.original(origin.url($0)) }
            } catch {
                _ = await server.stop(timeout: .zero)
                await pipeline.shutdown()
                throw error
            }
            _ = await server.stop(timeout: .zero)
            #expect(server.connections.budget.bytes == 0 && server.connections.budget.answers == 0)
            await pipeline.shutdown()
        }

        /// A client that has read the beginning of an answer and reads no more.
        private static func reader(_ port: Int, _ target: String, from address: String) async throws -> RawClient {
            let client = try await RawClient.connect(port, from: address, reads: false)
            client.send(RunningServer.head(target))
            client.read()
            _ = await client.received { !$0.isEmpty }
            return client
        }

        private static func status(_ port: Int, _ target: String, from address: String) async throws -> RawResponse? {
            let client = try await RawClient.connect(port, from: address)
            client.send(RunningServer.head(target, closes: true))
            return RawResponse.all(in: await client.receivedToEnd()).first
        }

        /// With a disk above its floor of free space they lie in files, else in memory.
        @Test(arguments: [0, 1 << 60])
        func `long originals that are not read have a bound, and pictures are answered beside them`(
            freeSpace: Int
        ) async throws {
            // Three quarters are for long bodies, and three quarters of a quarter for the bodies of one address.
            try await Self.with(freeSpace: freeSpace, { $0.answerBytes = 120_000_000 }) { server, port, target in
                let budget = server.connections.budget
                var readers = [try await Self.reader(port, target("/long/1"), from: "127.0.0.1")]
                let second = try await Self.status(port, target("/long/2"), from: "127.0.0.1")
                #expect(second?.status == 503 && second?["retry-after"] != nil && second?.problem == "overloaded")
                for number in 2...4 {
                    readers.append(try await Self.reader(port, target("/long/\(number)"), from: "127.0.0.\(number)"))
                }
                #expect(budget.bytes == 4 * Self.long)
                #expect(try await Self.status(port, target("/long/5"), from: "127.0.0.5")?.status == 503)
                for address in ["127.0.0.1", "127.0.0.5"] {
                    let picture = try await Self.status(port, target("/short"), from: address)
                    #expect(picture?.status == 200 && picture?.body.count == 100_000)
                }
                await readers[0].close()
                try await waitWhile { budget.bytes >= 4 * Self.long }
                #expect(try await Self.status(port, target("/long/5"), from: "127.0.0.5")?.body.count == Self.long)
                for reader in readers { await reader.close() }
                try await waitWhile { budget.bytes > 0 }
            }
        }

        @Test func `files of a folder that are not read take nothing`() async throws {
            try await Self.with({ $0.answerBytes = 120_000_000 }) { server, port, target in
                var readers: [RawClient] = []
                for number in 1...4 {
                    let file = RunningServer.original("pictures:\(number).bmp")
                    readers.append(try await Self.reader(port, file, from: "127.0.0.1"))
                }
                let budget = server.connections.budget
                #expect(budget.bytes == 0 && budget.answers == 4)
                #expect(try await Self.status(port, target("/long/1"), from: "127.0.0.1")?.body.count == Self.long)
                for reader in readers { await reader.close() }
                try await waitWhile { budget.answers > 0 }
            }
        }

        @Test func `a client that takes less than the least rate over a whole answer is disconnected`() async throws {
            // Each part is taken in time, the whole would take 20 s.
            try await Self.with({ ($0.idleSeconds, $0.answerRate) = (5, 20_000_000) }) { _, port, target in
                let client = try await RawClient.connect(port, reads: false)
                client.send(RunningServer.head(target("/long")))
                client.sip(every: .milliseconds(2))
                #expect(await client.receivedToEnd().count < Self.long)
            }
        }
    }
}
