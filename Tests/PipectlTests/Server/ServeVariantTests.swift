import Pipeline
import TestSupport
import Testing
import Variants

@testable import pipectl

extension CommandTests {
    @Suite struct ServeVariant {
        private static func origin() throws -> FolderOrigin {
            try FolderOrigin(folder: Samples.folder + "/originals", maxAge: 3600)
        }

        /// Width and height of the decoded picture.
        private static func decoded(_ bytes: [UInt8]) async throws -> (width: Int, height: Int) {
            let pipeline = try ImagePipeline()
            let pixels = try await pipeline.pixels(for: ImageRequest(.bytes(bytes, name: "an answer")))
            await pipeline.shutdown()
            return (pixels.width, pixels.height)
        }

        @Test func `a thumbnail is made once and carries what a client needs to keep it`() async throws {
            let origin = try Self.origin()
            defer { origin.stop() }
            try await RunningServer.with { server in
                let path = RunningServer.variant("thumbnail:64x64:fill,png", origin.url("/meadow-small.jpg"))
                let first = try await server.ask(path)
                #expect(first.status == 200 && first["content-type"] == "image/png")
                #expect(try await Self.decoded(first.body) == (64, 64))
                #expect(first.values("content-length") == [String(first.body.count)])
                #expect(first["etag"] == "\"\(sha256Hex(first.body))\"")
                #expect(first["cache-control"]?.hasPrefix("max-age=3") == true && first["age"] == nil)
                #expect(first["cache-status"]?.hasPrefix("pipeline; fwd=uri-miss; ttl=3") == true)
                #expect(first["cache-status"]?.hasSuffix("; stored") == true)
                // libvips decodes while the steps ask for pixels, so that no part of the time is the decoder's alone.
                for part in [
                    "open;desc=", "operations;desc=\"decoding and applying the steps\";dur=", "encode;desc=",
                ] {
                    #expect(first["server-timing"]?.contains(part) == true, "\(part)")
                }
                #expect(first["server-timing"]?.contains("decode;") == false)
                #expect(first["x-content-type-options"] == "nosniff" && first["vary"] == nil)
                #expect(first["content-security-policy"]?.contains("sandbox") == true)
                #expect(first["last-modified"] != nil && first["date"] != nil && first["expires"] == nil)

                let second = try await server.ask(path)
                #expect(second.body == first.body && second["etag"] == first["etag"])
                #expect(second["cache-status"]?.hasPrefix("pipeline; hit; ttl=3") == true)
                #expect(second["cache-status"]?.hasSuffix("; detail=memory") == true)
                #expect(origin.requests.count == 1)

                let head = try await server.ask(path, method: "HEAD")
                #expect(head.status == 200 && head["content-length"] == first["content-length"])
                #expect(head["etag"] == first["etag"])
            }
        }

        @Test func `a client that has the picture gets 304, and a part where it asks for one`() async throws {
            let origin = try Self.origin()
            defer { origin.stop() }
            try await RunningServer.with { server in
                let path = RunningServer.variant("thumbnail:40,jpeg", origin.url("/night-tiny.jpg"))
                let whole = try await server.ask(path)
                let tag = try #require(whole["etag"])
                let modified = try #require(whole["last-modified"])
                for tags in [tag, "W/\(tag)", "\"other\", \(tag)", "*"] {
                    let same = try await server.ask(path, ["If-None-Match": tags])
                    #expect(same.status == 304 && same["etag"] == tag && same["content-length"] == nil)
                    #expect(same["cache-control"]?.hasPrefix("max-age=") == true)
                }
                #expect(try await server.ask(path, ["If-None-Match": "\"other\""]).status == 200)
                #expect(try await server.ask(path, ["If-Modified-Since": modified]).status == 304)
                let part = try await server.ask(path, ["Range": "bytes=2-5"])
                #expect(part.status == 206 && part.body == Array(whole.body[2...5]))
                #expect(part["content-range"] == "bytes 2-5/\(whole.body.count)" && part["content-length"] == "4")
                let beyond = try await server.ask(path, ["Range": "bytes=\(whole.body.count)-"])
                #expect(beyond.status == 416 && beyond["content-range"] == "bytes */\(whole.body.count)")
            }
        }

        @Test func `auto takes what the client accepts, and says that it did`() async throws {
            let origin = try Self.origin()
            defer { origin.stop() }
            try await RunningServer.with { server in
                for recipe in ["thumbnail:32", "thumbnail:32,auto"] {
                    let path = RunningServer.variant(recipe, origin.url("/meadow-small.jpg"))
                    let webp = try await server.ask(path, ["Accept": "image/avif,image/webp,*/*;q=0.8"])
                    #expect(webp["content-type"] == "image/webp" && webp["vary"] == "Accept")
                    let plain = try await server.ask(path, ["Accept": "image/*,*/*"])
                    #expect(plain["content-type"] == "image/jpeg" && plain["vary"] == "Accept")
                    #expect(plain["etag"] != webp["etag"])
                }
                let kept = RunningServer.variant("thumbnail:32,original", origin.url("/meadow-small.jpg"))
                let original = try await server.ask(kept, ["Accept": "image/webp"])
                #expect(original["content-type"] == "image/jpeg" && original["vary"] == nil)
                let gone = RunningServer.variant("thumbnail:32", origin.url("/nothing.jpg"))
                let error = try await server.ask(gone, ["Accept": "image/webp"])
                #expect(error.status == 404 && error["vary"] == "Accept")
                let negotiated = RunningServer.variant("thumbnail:32", origin.url("/meadow-small.jpg"))
                for (target, fields, status) in [
                    (negotiated, ["If-Match": "\"other\""], 412), (RunningServer.variant("nonsense", "x"), [:], 400),
                    (RunningServer.variant("thumbnail:32", "no-url"), [:], 400),
                    ("/variant/unsigned/thumbnail:32/a/b", [:], 400),
                ] as [(String, KeyValuePairs<String, String>, Int)] {
                    let refused = try await server.ask(target, fields)
                    #expect(refused.status == status && refused["vary"] == "Accept", "\(target)")
                }
                let named = RunningServer.variant("thumbnail:32,png", origin.url("/meadow-small.jpg"))
                let unmet = try await server.ask(named, ["If-Match": "\"other\""])
                #expect(unmet.status == 412 && unmet["vary"] == nil)
            }
        }

        @Test func `every failure has its status, its type, and is never stored`() async throws {
            let images = try Self.origin()
            let broken = try FolderOrigin(folder: Samples.folder + "/broken", maxAge: 3600)
            let odd = try LoopbackOrigin { request in
                switch request.path {
                case "/500": .response(500)
                case "/410": .response(410)
                case "/close": .close
                case "/hang": .hang
                case "/html": .response(200, ["Content-Type": "text/html"], body: Array("<p>".utf8))
                default: .response(404)
                }
            }
            defer { for stop in [images.stop, broken.stop, odd.stop] { stop() } }
            let settings = ["fetch.totalSeconds=2", "limits.pixels=1000000", "recipes.allow=png,thumbnail:8,jpeg"]
            try await RunningServer.with(settings) { server in
                let cases: [(String, Int, String)] = [
                    ("/variant/unsigned/png/ftp%3A%2F%2Fh%2Fa", 400, "invalid-source"),
                    ("/variant/unsigned/pgn/\(RunningServer.encoded(odd.url("/a")))", 400, "invalid-recipe"),
                    ("/variant/unsigned/png/\(odd.url("/a"))", 404, "not-found"),
                    ("/variant/k1.abc/png/\(RunningServer.encoded(odd.url("/a")))", 403, "bad-signature"),
                    (RunningServer.variant("thumbnail:9", odd.url("/a")), 403, "recipe-not-allowed"),
                    (RunningServer.variant("png", odd.url("/a")), 404, "not-found"),
                    (RunningServer.variant("png", odd.url("/410")), 404, "not-found"),
                    (RunningServer.variant("png", images.url("/dusk-2mp.jpg")), 413, "over-limit"),
                    (RunningServer.variant("png", odd.url("/html")), 415, "not-an-image"),
                    (RunningServer.variant("png", broken.url("/empty.jpg")), 415, "not-an-image"),
                    (RunningServer.variant("png", broken.url("/gzip26.bin")), 415, "not-an-image"),
                    (RunningServer.variant("png", odd.url("/500")), 502, "origin-failed"),
                    (RunningServer.variant("png", odd.url("/close")), 502, "origin-failed"),
                    (RunningServer.variant("png", odd.url("/hang")), 504, "origin-timeout"),
                    ("/nowhere", 404, "unknown-path"),
                ]
                for (path, status, type) in cases {
                    let answer = try await server.ask(path)
                    #expect(answer.status == status && answer.problem == type, "\(path): \(answer.text)")
                    #expect(answer["cache-control"] == "no-store" && answer["etag"] == nil)
                }
                #expect(try await server.ask(RunningServer.variant("@x", odd.url("/a"))).status == 400)
                let posted = try await server.ask("/health", method: "POST")
                #expect(posted.status == 405 && posted["allow"] == "GET, HEAD")
                #expect(
                    try await server.ask(RunningServer.variant("thumbnail:8,auto", images.url("/grey.jpg"))).status
                        == 403)
                #expect(
                    try await server.ask(RunningServer.variant("thumbnail:8x8", images.url("/grey.jpg"))).status == 200)
            }
        }

        @Test func `an address of the inner network and an unsigned URL are refused unless allowed`() async throws {
            let origin = try Self.origin()
            defer { origin.stop() }
            let path = RunningServer.variant("png", origin.url("/night-tiny.jpg"))
            try await RunningServer.with(["allowPrivateAddresses=false"]) { server in
                let answer = try await server.ask(path, ["X-Forwarded-For": "192.0.2.1"])
                #expect(answer.status == 403 && answer.problem == "source-refused")
                #expect(!answer.text.contains("127.0.0.1"))
            }
            let keys = #"keys={"a":"00112233445566778899aabbccddeeff"}"#
            try await RunningServer.with(["allowUnsigned=false", keys]) { server in
                let unsigned = try await server.ask(path)
                #expect(unsigned.problem == "bad-signature")
                #expect(try await server.ask("/health").status == 200)
            }
            #expect(origin.requests.isEmpty)
        }

        @Test func `a client's no-cache asks the origin only where it is honoured`() async throws {
            let origin = try Self.origin()
            defer { origin.stop() }
            let path = RunningServer.variant("thumbnail:16,png", origin.url("/night-tiny.jpg"))
            for (setting, asked) in [("honourClientNoCache=false", 1), ("honourClientNoCache=true", 3)] {
                try await RunningServer.with([setting]) { server in
                    _ = try await server.ask(path)
                    let again = try await server.ask(path, ["Cache-Control": "no-cache"])
                    let isHit = again["cache-status"]?.hasPrefix("pipeline; hit") == true
                    #expect(again.status == 200 && isHit == (asked == 1))
                    #expect(again["cache-status"]?.contains("fwd-status=304") == (asked == 3))
                    let calm = try await server.ask(path)
                    #expect(calm["cache-status"]?.hasPrefix("pipeline; hit") == true)
                    #expect(origin.requests.count == asked)
                }
            }
        }

        @Test func `two hundred clients at once get the same picture from one fetch`() async throws {
            let origin = try Self.origin()
            defer { origin.stop() }
            try await RunningServer.with { server in
                let path = RunningServer.variant("thumbnail:48,webp", origin.url("/forest-portrait.jpg"))
                let tags = try await withThrowingTaskGroup(of: String?.self) { group in
                    for _ in 0..<200 {
                        group.addTask {
                            let answer = try await server.ask(path)
                            return answer.status == 200 ? answer["etag"] : "\(answer.status) \(answer.text)"
                        }
                    }
                    return try await group.reduce(into: Set<String?>()) { $0.insert($1) }
                }
                #expect(tags.count == 1 && tags.first??.hasPrefix("\"") == true, "\(tags)")
                #expect(origin.requests.count == 1)
            }
        }

        @Test func `what was stored outlives the server, also one that was killed`() async throws {
            let origin = try Self.origin()
            defer { origin.stop() }
            let folder = ScratchFolder()
            let path = RunningServer.variant("thumbnail:24,png", origin.url("/meadow-small.jpg"))
            let other = RunningServer.variant("thumbnail:25,png", origin.url("/meadow-small.jpg"))
            let first = try await RunningServer.with(folder: folder) { try await $0.ask(path) }
            let killed = try await RunningServer.start(folder: folder, isProgram: true)
            let again = try await killed.ask(path)
            #expect(again["cache-status"]?.hasSuffix("detail=disk") == true && again.body == first.body)
            #expect(try await killed.ask(other).status == 200)
            killed.child.signal(9)
            #expect(await killed.child.end.exit == 137)
            try await RunningServer.with(folder: folder) { server in
                let last = try await server.ask(path)
                #expect(last["cache-status"]?.hasSuffix("detail=disk") == true && last.body == first.body)
                #expect(try await server.ask(other).status == 200)
            }
            #expect(origin.requests.count == 1)
        }
    }
}
