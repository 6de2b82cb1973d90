import PipelineSupport
import TestSupport
import Testing
import Variants

@testable import pipectl

extension CommandTests {
    /// The routes that the application of Hummingbird has beside the site's: uploads, pictures of them, progress.
    @Suite(.enabled(if: MountedSite.Server.built.contains(.hummingbird), "Examples is not built"))
    struct ImageAppRoutes {
        private static func bytes(_ path: String) throws -> [UInt8] { try #require(ScratchFolder.bytes(at: path)) }

        private static func ask(
            _ port: Int, _ path: String, method: String = "GET", _ fields: KeyValuePairs<String, String> = [:],
            body: [UInt8]? = nil
        ) async throws -> RawResponse {
            let client = try await RawClient.connect(port)
            var head = RunningServer.head(path, method: method, fields, closes: true)
            if let body { head = head.replacing("Host:", with: "Content-Length: \(body.count)\r\nHost:") }
            client.send(Array(head.utf8) + (body ?? []))
            let bytes = await client.receivedToEnd()
            return try #require(
                RawResponse.all(in: bytes, heads: method == "HEAD").first, "\(path): \(bytes.prefix(200))")
        }

        @Test func `an upload is answered with its size, its BlurHash and four variants`() async throws {
            try await MountedSite.withApplication { port in
                let picture = try Self.bytes(Samples.original("exif-orientation-6.jpg"))
                let answer = try await Self.ask(port, "/photos/a1", method: "POST", body: picture)
                #expect(answer.status == 200 && answer["content-type"]?.hasPrefix("application/json") == true)
                let told = SettingValue.parsed(answer.text)
                #expect(told["width"] == .int(600) && told["height"] == .int(800))
                guard case .string(let hash)? = told["blurHash"], case .object(let variants)? = told["variants"] else {
                    Issue.record("\(answer.text)")
                    return
                }
                #expect(hash.count == 28)
                let expected = ["icon": (64, 64), "card": (320, 240), "page": (600, 800), "print": (600, 800)]
                #expect(Set(variants.map(\.name)) == Set(expected.keys))
                for variant in variants {
                    guard case .string(let path) = variant.value else { continue }
                    let got = try await Self.ask(port, path)
                    let header = try ImageHeader.probe(got.body)
                    #expect(got.status == 200 && got["content-type"] == header.format.mediaType)
                    let size = try #require(expected[variant.name])
                    #expect(header.width == size.0 && header.height == size.1, "\(variant.name)")
                }
                #expect(try await Self.ask(port, "/photos/a1/variants/huge").status == 404)
            }
        }

        @Test func `a picture of an upload has validators, HEAD and a new version with the next upload`() async throws {
            try await MountedSite.withApplication { port in
                for name in ["meadow-small.jpg", "dusk-2mp.jpg"] {
                    let picture = try Self.bytes(Samples.original(name))
                    #expect(try await Self.ask(port, "/photos/a1", method: "POST", body: picture).status == 200)
                }
                let first = try await Self.ask(port, "/photos/a1/thumb", ["Accept": "image/webp"])
                #expect(first.status == 200 && first["content-type"] == "image/webp" && first["vary"] == "Accept")
                #expect(first["cache-control"] == "public, max-age=60")
                let tag = try #require(first["etag"])
                let fields: KeyValuePairs = ["Accept": "image/webp", "If-None-Match": tag]
                let same = try await Self.ask(port, "/photos/a1/thumb", fields)
                #expect(same.status == 304 && same.body.isEmpty && same["etag"] == tag)
                let head = try await Self.ask(port, "/photos/a1/thumb", method: "HEAD", ["Accept": "image/webp"])
                #expect(head.status == 200 && head["content-length"] == String(first.body.count))
                let other = try Self.bytes(Samples.original("forest-portrait.jpg"))
                #expect(try await Self.ask(port, "/photos/a1", method: "POST", body: other).status == 200)
                let new = try await Self.ask(port, "/photos/a1/thumb", fields)
                #expect(new.status == 200 && new["etag"] != tag)
                // The site's own routes know the store as well.
                let variant = RunningServer.variant("thumbnail:30,png", "photos:a1")
                #expect(try await Self.ask(port, "/images" + variant).status == 200)
            }
        }

        @Test func `what is missing, no picture, broken or too large is refused, and nothing of it kept`() async throws
        {
            try await MountedSite.withApplication { port in
                #expect(try await Self.ask(port, "/photos/a1/thumb").status == 404)
                let text = try await Self.ask(port, "/photos/a1", method: "POST", body: Array("no picture".utf8))
                #expect(text.status == 415 && text.text.contains("the upload"), "\(text.text)")
                let cut = try Self.bytes(Samples.folder + "/broken/truncated.jpg")
                #expect(try await Self.ask(port, "/photos/a1", method: "POST", body: cut).status == 422)
                let large = [UInt8](repeating: 0, count: 20_000_001)
                #expect(try await Self.ask(port, "/photos/a1", method: "POST", body: large).status == 413)
                #expect(try await Self.ask(port, "/photos/a1/thumb").status == 404)
                #expect(try await Self.ask(port, "/photos/progress").status == 400)
            }
        }

        // MARK: Progress

        /// A connection that reads server-sent events.
        private struct Events {
            let client: RawClient

            init(_ port: Int, _ source: String) async throws {
                client = try await RawClient.connect(port)
                client.send(RunningServer.head("/photos/progress?source=" + RunningServer.encoded(source)))
            }

            /// The events up to one with this name, or up to the end of the connection: names and data.
            func events(until name: String) async -> [(name: String, data: SettingValue)] {
                let mark = Array("event: \(name)\n".utf8)
                let bytes = await client.received { bytes in
                    // An event is one chunk.
                    guard let start = bytes.firstRange(of: mark)?.upperBound else { return false }
                    return bytes[start...].firstRange(of: Array("\n\n".utf8)) != nil
                }
                let lines = String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isNewline)
                return zip(lines, lines.dropFirst()).compactMap { line, next in
                    guard line.hasPrefix("event: "), next.hasPrefix("data: ") else { return nil }
                    return (String(line.dropFirst(7)), SettingValue.parsed(next.dropFirst(6)))
                }
            }
        }

        /// The names, repeated ones once.
        private static func order(_ events: [(name: String, data: SettingValue)]) -> [String] {
            events.reduce(into: []) { if $0.last != $1.name { $0.append($1.name) } }
        }

        /// The first hundred bytes of a picture, and the rest once the gate is open.
        private static func gated(_ picture: [UInt8], _ gate: BlockingGate) -> OriginReply {
            var reply = OriginReply.response(
                200, ["Content-Type": "image/jpeg", "Cache-Control": "max-age=600"], body: picture)
            guard case .bytes(let all)? = reply.parts.first else { return .close }
            let first = all.count - picture.count + 100
            reply.parts = [.bytes(Array(all[..<first])), .wait(gate), .bytes(Array(all[first...]))]
            return reply
        }

        @Test func `two clients see the progress of one fetch, each in order, and a third one the stored picture`()
            async throws
        {
            let picture = try Self.bytes(Samples.original("dusk-2mp.jpg"))
            let gate = BlockingGate()
            let origin = try LoopbackOrigin { _ in Self.gated(picture, gate) }
            defer {
                gate.open()
                origin.stop()
            }
            try await MountedSite.withApplication { port in
                let clients = try await [Events(port, origin.url("/a.jpg")), Events(port, origin.url("/a.jpg"))]
                for client in clients {
                    let events = await client.events(until: "progress")
                    #expect(Self.order(events) == ["fetching", "progress"])
                    #expect(events.last?.data["expected"] == .int(picture.count))
                }
                // A client that leaves takes nothing from the others.
                let leaver = try await Events(port, origin.url("/a.jpg"))
                _ = await leaver.events(until: "progress")
                await leaver.client.close()
                gate.open()
                for client in clients {
                    let events = await client.events(until: "finished")
                    #expect(Self.order(events) == ["fetching", "progress", "rendering", "finished"])
                    let last = try #require(events.last { $0.name == "progress" }).data
                    #expect(last["received"] == .int(picture.count) && last["expected"] == .int(picture.count))
                    let finished = try #require(events.last).data
                    #expect(finished["width"] == .int(640))
                    guard case .string(let path)? = finished["path"] else { continue }
                    let shown = try await Self.ask(port, path)
                    #expect(shown.status == 200 && shown["cache-status"]?.hasSuffix("; detail=memory") == true)
                }
                let late = try await Events(port, origin.url("/a.jpg")).events(until: "finished")
                #expect(Self.order(late) == ["cached", "finished"])
                #expect(origin.requests.count == 1)
            }
        }

        @Test func `clients that leave end their loads, and the fetch if no other client waits for it`() async throws {
            let picture = try Self.bytes(Samples.original("dusk-2mp.jpg"))
            let gate = BlockingGate()
            let origin = try LoopbackOrigin { request in
                if request.path == "/kept.jpg" { return Self.gated(picture, gate) }
                return .raw("HTTP/1.1 200 OK\r\nContent-Length: \(picture.count)\r\n\r\nabc", then: [.hang])
            }
            defer {
                gate.open()
                origin.stop()
            }
            try await MountedSite.withApplication { port in
                let stays = try await Events(port, origin.url("/kept.jpg"))
                _ = await stays.events(until: "progress")
                let leave = try await [Events(port, origin.url("/left.jpg")), Events(port, origin.url("/left.jpg"))]
                for client in leave { _ = await client.events(until: "progress") }
                for client in leave { await client.client.close() }
                try await waitWhile { origin.openConnections > 1 }
                gate.open()
                let events = await stays.events(until: "finished")
                #expect(Self.order(events) == ["fetching", "progress", "rendering", "finished"])
                #expect(origin.requests.count == 2)
            }
        }

        @Test func `what cannot be loaded ends with an event that says why`() async throws {
            let origin = try FolderOrigin(folder: Samples.folder + "/broken")
            defer { origin.stop() }
            try await MountedSite.withApplication { port in
                for (source, events, reason) in [
                    (origin.url("/html-as.jpg"), ["fetching", "progress", "failed"], "not an image"),
                    (Samples.original("dusk.webp"), ["failed"], "http"),
                    ("photos:none", ["fetching", "failed"], "photos:none"),
                ] {
                    let told = try await Events(port, source).events(until: "failed")
                    #expect(Self.order(told) == events)
                    guard case .string(let message)? = told.last?.data["message"] else { continue }
                    #expect(message.contains(reason), "\(message)")
                }
            }
        }
    }
}
