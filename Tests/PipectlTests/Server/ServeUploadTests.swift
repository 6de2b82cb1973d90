import PipelineSupport
import TestSupport
import Testing
import Variants

@testable import pipectl

extension CommandTests {
    /// Pictures as the bodies of POST requests (`server.uploads`), as bytes on connections.
    @Suite struct ServeUpload {
        private static let path = "/variant/unsigned/thumbnail:20,png"
        private static let picture = Samples.bytes("originals/night-tiny.jpg")

        private static func head(
            _ target: String = path, length: Int? = picture.count, lines: String = ""
        ) -> String {
            let framing = length.map { "Content-Length: \($0)" } ?? "Transfer-Encoding: chunked"
            return "POST \(target) HTTP/1.1\r\nHost: test\r\n\(framing)\r\n\(lines)\r\n"
        }

        /// A chunk of a body.
        private static func chunk(_ bytes: [UInt8]) -> [UInt8] {
            Array((String(bytes.count, radix: 16) + "\r\n").utf8) + bytes + Array("\r\n".utf8)
        }

        private static func with(
            _ settings: [String] = [], config: String? = nil, _ body: (RunningServer) async throws -> Void
        ) async throws {
            let folder = ScratchFolder()
            let server = try await RunningServer.start(
                ["server.uploads=true"] + settings, folder: folder,
                config: config.map { folder.write($0, to: "settings.yaml") })
            do { try await body(server) } catch {
                await server.kill()
                throw error
            }
            #expect(await server.stop().exit == 0)
        }

        /// The response to bytes of a client that does not close, and whether the server closed.
        private static func end(_ server: RunningServer, _ bytes: [UInt8], from address: String = "127.0.0.1")
            async throws -> RawResponse?
        {
            let client = try await RawClient.connect(server.port, from: address)
            client.send(bytes)
            return RawResponse.all(in: await client.receivedToEnd()).last
        }

        @Test func `uploads follow each other on a connection, with a length, in chunks and after 100`() async throws {
            try await Self.with { server in
                let client = try await RawClient.connect(server.port)
                client.send(Array(Self.head().utf8) + Self.picture)
                let first = await client.responses(1)
                #expect(first.map(\.status) == [200] && first.first?["content-type"] == "image/png")
                client.send(Array(Self.head(length: nil).utf8) + Self.chunk(Array(Self.picture[..<99])))
                client.send(Self.chunk(Array(Self.picture[99...])) + Self.chunk([]))
                #expect(await client.responses(2).map(\.status) == [200, 200])
                client.send(Self.head(length: Self.picture.count, lines: "Expect: 100-continue\r\n"))
                #expect(await client.responses(3).map(\.status) == [200, 200, 100])
                client.send(Self.picture + Array(RunningServer.head("/health").utf8))
                let all = await client.responses(5)
                #expect(all.map(\.status) == [200, 200, 100, 200, 200])
                #expect(all.dropLast().filter { $0.status == 200 }.allSatisfy { $0.body == first.first?.body })
                await client.close()
            }
        }

        @Test func `a refused upload is answered without its body, and the connection ends`() async throws {
            let signed = "/variant/web.AAAA/thumbnail:20,png"
            try await Self.with(["limits.bytes=90kB", "server.rate=0.001", "server.idleSeconds=10"]) { server in
                for (target, length, status) in [
                    (signed, 80_000, 403), ("/variant/unsigned/nothing", 80_000, 400), (Self.path, 90_001, 413),
                    (Self.path + "/a.jpg", 80_000, 400),
                ] {
                    for expects in ["", "Expect: 100-continue\r\n"] {
                        let client = try await RawClient.connect(server.port)
                        client.send(Self.head(target, length: length, lines: expects))
                        let answers = RawResponse.all(in: await client.receivedToEnd())
                        #expect(answers.map(\.status) == [status], "\(target)")
                        #expect(answers.first?["connection"] == "close" && answers.first?.problem != nil)
                    }
                }
                #expect(
                    try await Self.end(server, Array(Self.head(lines: "Connection: close\r\n").utf8) + Self.picture)?
                        .status == 200)
                // The second is beyond the rate.
                let late = try await Self.end(server, Array(Self.head().utf8))
                #expect(late?.status == 429 && late?["retry-after"] != nil)
            }
        }

        @Test func `without the setting a POST is a 405`() async throws {
            try await RunningServer.with { server in
                let client = try await RawClient.connect(server.port)
                client.send(Array(Self.head().utf8) + Self.picture)
                let answer = await client.responses(1)
                #expect(answer.map(\.status) == [405] && answer.first?["allow"] == "GET, HEAD")
                #expect(try await Self.end(server, Array(Self.head(length: 100_000_000).utf8))?.status == 413)
                await client.close()
            }
        }

        @Test func `a chunked body ends at the limit`() async throws {
            try await Self.with(["limits.bytes=4000"]) { server in
                let answer = try await Self.end(
                    server, Array(Self.head(length: nil).utf8) + Self.chunk(Self.picture) + Self.chunk(Self.picture))
                #expect(answer?.status == 413 && answer?.text.contains("4000 bytes (`limits.bytes`") == true)
            }
        }

        @Test func `a body that never ends is given up once its time is over`() async throws {
            try await Self.with(["server.idleSeconds=1", "limits.bytes=40kB"]) { server in
                // One client may use 80,000 bytes.
                let chunks = try await RawClient.connect(server.port)
                chunks.send(Self.head(length: nil))
                chunks.trickle("1\r\na\r\n")
                let short = try await RawClient.connect(server.port)
                short.send(Array(Self.head(length: 30_000).utf8) + Self.picture)
                // A client that leaves.
                let left = try await RawClient.connect(server.port)
                left.send(Self.head(length: 30_000, lines: "Expect: 100-continue\r\n"))
                #expect(await left.responses(1).map(\.status) == [100])
                await left.close()
                for client in [chunks, short] {
                    let answers = RawResponse.all(in: await client.receivedToEnd())
                    #expect(answers.map(\.problem) == ["request-timeout"])
                }
                // All of the memory is free again.
                try await Self.fill(server, 40_000)
            }
        }

        /// Begins as many uploads as fit in memory, and waits until the server wants their bodies.
        @discardableResult
        private static func fill(_ server: RunningServer, _ length: Int) async throws -> [RawClient] {
            var clients: [RawClient] = []
            for address in ["127.0.0.2", "127.0.0.2", "127.0.0.3", "127.0.0.4"] {
                let client = try await RawClient.connect(server.port, from: address)
                client.send(head(length: length, lines: "Expect: 100-continue\r\n"))
                #expect(await client.responses(1).map(\.status) == [100], "\(address)")
                clients.append(client)
            }
            return clients
        }

        @Test func `beyond the memory for uploads others get a 503, until one is done`() async throws {
            try await Self.with(["limits.bytes=\(Self.picture.count)"]) { server in
                let held = try await Self.fill(server, Self.picture.count)
                for address in ["127.0.0.2", "127.0.0.5"] {
                    let refused = try await Self.end(server, Array(Self.head().utf8), from: address)
                    #expect(refused?.status == 503 && refused?["retry-after"] == "1")
                }
                // A chunked body is refused when it needs memory.
                let chunked = try await Self.end(
                    server, Array(Self.head(length: nil).utf8) + Self.chunk(Self.picture), from: "127.0.0.5")
                #expect(chunked?.status == 503 && chunked?.problem == "overloaded")
                held[0].send(Self.picture)
                #expect(await held[0].responses(2).map(\.status) == [100, 200])
                let late = try await Self.end(
                    server, Array(Self.head(lines: "Connection: close\r\n").utf8) + Self.picture, from: "127.0.0.5")
                #expect(late?.status == 200)
                for client in held { await client.close() }
            }
        }

        /// The bytes that Nextcloud's preview provider sends.
        @Test(arguments: [
            ("autorotate", "fit", "jpeg", "48", "64"), ("autorotate", "smartcrop", "webp", "64", "64"),
            ("convert", "fit", "png", "48", "64"),
        ])
        func `a preview of Nextcloud`(
            first: String, second: String, type: String, width: String, height: String
        ) async throws {
            let key = "0123456789abcdef"
            let convert = first == "convert" ? ",\"params\":{\"type\":\"\(type)\"}" : ""
            let operations =
                "[{\"operation\":\"\(first)\"\(convert)},{\"operation\":\"\(second)\",\"params\":{\"width\":64,\"height\":64,"
                + "\"stripmeta\":\"true\",\"type\":\"\(type)\",\"norotation\":\"true\",\"quality\":\"80\"}}]"
            let settings = "grammars: {imaginary: {path: /imaginary, key: \(key)}}\n"
            try await Self.with(config: settings) { server in
                func bytes(_ key: String) -> [UInt8] {
                    Array(
                        ("POST /imaginary/pipeline?operations=\(RunningServer.encoded(operations))&key=\(key) HTTP/1.1\r\n"
                            + "Host: imaginary:9000\r\nContent-Length: \(Self.turned.count)\r\n"
                            + "User-Agent: Nextcloud Server Crawler\r\nAccept-Encoding: gzip\r\n\r\n").utf8)
                        + Self.turned
                }
                let client = try await RawClient.connect(server.port)
                client.send(bytes(key))
                let answer = try #require(await client.responses(1).first)
                #expect(answer.status == 200 && answer["content-type"] == "image/\(type)", "\(answer.text)")
                #expect(answer["image-width"] == width && answer["image-height"] == height)
                let header = try ImageHeader.probe(answer.body)
                #expect("\(header.width)" == width && "\(header.height)" == height)
                await client.close()
                let wrong = try await Self.end(server, bytes("0"))
                #expect(wrong?.status == 403 && wrong?["content-type"] == "application/json")
            }
        }

        /// 800 × 600 pixels, turned to 600 × 800 by its orientation.
        private static let turned = Samples.bytes("originals/exif-orientation-6.jpg")
    }
}
