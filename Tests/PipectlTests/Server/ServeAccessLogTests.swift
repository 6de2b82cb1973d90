import PipelineSupport
import Glibc
import ImageServer
import TestSupport
import Testing
import Variants

@testable import pipectl

extension CommandTests {
    /// The setting `server.accessLog`, at the program.
    @Suite struct ServeAccessLog {
        /// Lines on stdout of a server that has answered all of the requests.
        private func lines(_ settings: [String], _ use: (RunningServer) async throws -> Void) async throws
            -> [Substring]
        {
            let server = try await RunningServer.start(settings)
            do { try await use(server) } catch {
                await server.kill()
                throw error
            }
            let ended = await server.stop()
            #expect(ended.exit == 0, "\(ended.errors)")
            return ended.lines
        }

        /// Sends bytes on a new connection, and reads until the server closes it.
        private func send(_ text: String, to server: RunningServer) async throws {
            let client = try await RawClient.connect(server.port)
            client.send(text)
            _ = await client.receivedToEnd()
        }

        @Test func `combined lines are those of NCSA, and no client forges one`() async throws {
            let origin = try FolderOrigin(folder: Samples.folder + "/originals", maxAge: 3600)
            defer { origin.stop() }
            let url = origin.url("/night-tiny.jpg")
            let path = RunningServer.variant("thumbnail:16,png", url)
            var length = ""
            let lines = try await lines(["server.accessLog=combined", "server.trustedProxies=127.0.0.0/8"]) { server in
                let first = try await server.ask(
                    path, ["User-Agent": "curl/8 \"x\\y\" \té", "Referer": "https://a.test/"])
                length = first["content-length"] ?? ""
                // From memory, on the event loop.
                let hit = RunningServer.head(path, ["X-Forwarded-For": "192.0.2.7"])
                let client = try await RawClient.connect(server.port)
                client.send(hit)
                _ = await client.responses(1)
                client.send(RunningServer.head(path, method: "HEAD"))
                client.send(RunningServer.head("/health\"x", closes: true))
                _ = await client.receivedToEnd()
                try await send("GET /a\u{1}b HTTP/1.1\r\nHost: a\r\n\r\n", to: server)
                try await send("GET /health HTTP/1.0\r\n\r\n", to: server)
                try await send("nonsense \" - - [x] \"GET / HTTP/1.1\" 200\r\n\r\n", to: server)
            }
            let time = #"\[\d\d/[A-Z][a-z]{2}/20\d\d:\d\d:\d\d:\d\d \+0000\]"#
            let shown = "/variant/thumbnail:16,png/\(url)".replacing(".", with: "\\.").replacing("?", with: "\\?")
            let patterns = [
                #"127\.0\.0\.1 - - \#(time) "GET \#(shown) HTTP/1\.1" 200 \#(length) "https://a\.test/" "curl/8 \\x22x\\x5Cy\\x22 \\x09\\xC3\\xA9""#,
                #"192\.0\.2\.7 - - \#(time) "GET \#(shown) HTTP/1\.1" 200 \#(length) "-" "-""#,
                #"127\.0\.0\.1 - - \#(time) "HEAD \#(shown) HTTP/1\.1" 200 0 "-" "-""#,
                #"127\.0\.0\.1 - - \#(time) "GET /health\\x22x/\.\.\. HTTP/1\.1" 404 \d+ "-" "-""#,
                #"127\.0\.0\.1 - - \#(time) "-" 400 \d+ "-" "-""#,
                #"127\.0\.0\.1 - - \#(time) "GET /health HTTP/1\.0" 200 \d+ "-" "-""#,
                #"127\.0\.0\.1 - - \#(time) "-" 400 \d+ "-" "-""#,
            ]
            try #require(lines.count == patterns.count, "\(lines)")
            for (line, pattern) in zip(lines, patterns) {
                #expect(try Regex(pattern).wholeMatch(in: line) != nil, "\(line)\n\(pattern)")
            }
        }

        @Test func `JSON lines name cache, problem, client and trace, and signatures are not among it`() async throws {
            let origin = try FolderOrigin(folder: Samples.folder + "/originals", maxAge: 3600)
            defer { origin.stop() }
            let path = RunningServer.original(origin.url("/night-tiny.jpg"))
            let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
            let lines = try await lines(["server.accessLog=json"]) { server in
                _ = try await server.ask(
                    path, ["User-Agent": "a\"é", "Referer": "https://a.test/", "traceparent": parent])
                _ = try await server.ask("/original/geheim.geheim/http%3A%2F%2Fa.test?exp=12")
                try await send("nonsense\r\n\r\n", to: server)
            }
            try #require(lines.count == 3, "\(lines)")
            let values = lines.map { SettingValue.parsed(String($0)) }
            #expect(values[0]["status"] == .int(200) && values[0]["protocol"] == .string("HTTP/1.1"))
            #expect(values[0]["client"] == .string("127.0.0.1") && values[0]["method"] == .string("GET"))
            #expect(values[0]["target"] == .string("/original/" + origin.url("/night-tiny.jpg")))
            #expect(values[0]["userAgent"] == .string("a\"é") && values[0]["referer"] == .string("https://a.test/"))
            guard case .string(let cache)? = values[0]["cache"] else { Issue.record("no cache"); return }
            #expect(cache.hasPrefix("pipeline; fwd=uri-miss") && values[0]["note"] == nil)
            #expect(values[0]["traceId"] == .string("0af7651916cd43dd8448eb211c80319c") && values[1]["traceId"] == nil)
            #expect(values[1]["status"] == .int(403) && values[1]["note"] == .string("bad-signature"))
            #expect(values[2]["status"] == .int(400) && values[2]["target"] == nil && values[2]["method"] == nil)
            #expect(!lines.joined().contains("geheim"))
            for value in values {
                guard case .string(let time)? = value["ts"] else { Issue.record("no time"); continue }
                #expect(try Regex(#"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"#).wholeMatch(in: time) != nil, "\(time)")
            }
        }

        @Test func `JSON lines name the picture of every answer, hits too, and sources of the default base`()
            async throws
        {
            let origin = try FolderOrigin(folder: Samples.folder + "/originals", maxAge: 3600)
            defer { origin.stop() }
            let variant = "/variant/unsigned/thumbnail:16,png/night-tiny.jpg"
            let original = "/original/unsigned/night-tiny.jpg"
            let settings = [
                "server.accessLog=json", #"baseURLs={"photos":"\#(origin.url("/"))"}"#, "defaultBase=photos",
            ]
            let lines = try await lines(settings) { server in
                for target in [variant, original] {
                    let tag = try await server.ask(target)["etag"] ?? ""
                    // The second answer is from memory, on the event loop.
                    let client = try await RawClient.connect(server.port)
                    client.send(RunningServer.head(target))
                    client.send(RunningServer.head(target, ["If-None-Match": tag]))
                    client.send(RunningServer.head(target, ["Range": "bytes=0-3"], closes: true))
                    _ = await client.receivedToEnd()
                }
                _ = try await server.ask("/health")
            }
            try #require(lines.count == 9, "\(lines)")
            let values = lines.map { SettingValue.parsed(String($0)) }
            for value in [values[1], values[5]] {
                guard case .string(let cache)? = value["cache"] else { Issue.record("no cache: \(value)"); continue }
                #expect(cache.hasPrefix("pipeline; hit") && cache.hasSuffix("detail=memory"), "\(cache)")
            }
            let header = try ImageHeader.probe(
                try #require(ScratchFolder.bytes(at: Samples.original("night-tiny.jpg"))))
            for (first, format, target) in [(0, "png", "/variant/thumbnail:16,png/"), (4, "jpeg", "/original/")] {
                let key = values[first]["key"]
                guard case .string(let digits)? = key else { Issue.record("no key: \(lines[first])"); continue }
                #expect(digits.count == 64)
                for value in values[first..<(first + 4)] {
                    #expect(value["format"] == .string(format) && value["key"] == key, "\(value)")
                    #expect(value["target"] == .string(target + "night-tiny.jpg"))
                    if format == "jpeg" { #expect(value["size"] == .string("\(header.width)x\(header.height)")) }
                }
            }
            guard case .string(let size)? = values[1]["size"] else { Issue.record("no size"); return }
            #expect(size.hasPrefix("16x") && values[0]["size"] == values[1]["size"])
            #expect(values[8]["format"] == nil && values[8]["size"] == nil && values[8]["key"] == nil)
        }

        @Test func `without the setting nothing is on stdout, and -v is as it was`() async throws {
            let lines = try await lines(["log.level=info"]) { server in
                let answer = try await server.ask("/health")
                #expect(answer.status == 200)
            }
            #expect(lines.isEmpty)
        }

        @Test func `what a client sends is escaped byte by byte`() {
            let text = "a\"b\\c\u{7f}\r\n\u{0}\u{ff}\u{20ac}"
            #expect(AccessLog.escaped(text) == #"a\x22b\x5Cc\x7F\x0D\x0A\x00\xFF\xE2\x82\xAC"#)
            let answer = RequestLog.Response(ServerResponse(status: 400, body: Array("problem".utf8)))
            var entry = RequestLog.Entry(client: "-", request: nil, answer, milliseconds: 0.5)
            entry.time = 1_795_573_194
            #expect(AccessLog.combined.line(entry) == #"- - - [25/Nov/2026:02:19:54 +0000] "-" 400 7 "-" "-""#)
            #expect(
                AccessLog.json.line(entry)
                    == #"{"ts":"2026-11-25T02:19:54.000Z","client":"-","status":400,"bytes":7,"milliseconds":0.5}"#)
        }

        @Test func `a stdout that is not read holds up neither answers nor the end`() async throws {
            let folder = ScratchFolder()
            let fifo = folder("fifo")
            #expect(mkfifo(fifo, 0o600) == 0)
            // Held open and never read: a pipe takes 64 KiB, then writing to it blocks.
            let held = open(fifo, O_RDWR)
            defer { close(held) }
            let child = try ChildProgram(
                [
                    "-c",
                    "exec \(ChildProgram.path) serve --listen 127.0.0.1:0 --cache \(folder("cache")) "
                        + "--set allowUnsigned=true --set server.accessLog=combined > \(fifo)",
                ], program: "sh",
                folder: folder.path)
            let told = await child.waitForOutput("listening on http://127.0.0.1:")
            let port = Int(told.split(separator: "http://127.0.0.1:").last?.prefix { $0.isNumber } ?? "")
            let client = try await RawClient.connect(try #require(port))
            let agent = String(repeating: "a", count: 4000)
            for count in 1...40 {
                client.send(RunningServer.head("/health", ["User-Agent": agent]))
                #expect(await client.responses(count).count == count)
            }
            await client.close()
            child.signal(SIGTERM)
            #expect(await child.end.exit == 0)
        }
    }
}
