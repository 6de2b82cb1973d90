import Glibc
import Pipeline
import PipelineSupport
import TestSupport
import Testing

@testable import pipectl

extension CommandTests {
    /// Outputs, logs and answers contain neither secrets of a source's URL nor the identity of a bucket's owner.
    @Suite struct Secrets {
        private static let query =
            "?v=1&X-Amz-Signature=PLANTED1&sig=PLANTED2&token=PLANTED3&Key-Pair-Id=PLANTED4&Policy=PLANTED5"
            + "&x%2Dgoog-signature=PLANTED6&AWSAccessKeyId=PLANTED7;Signature=PLANTED8&Expires=99"

        /// URLs within others, percent-encoded up to twice, in queries and in paths.
        private static let nested = [
            "?u=http%3A%2F%2Fu%3APLANTED%40h%2Fx.jpg", "/http://u:PLANTED@h/x.jpg",
            "?u=http%253A%252F%252Fh%253FX-Amz-Signature%253DPLANTED", "?u=h%3Fs%2569g%3DPLANTED",
            "/http%3A%2F%2Fh%2Fx.jpg%3Fsig%3DPLANTED", "/a.jpg;sig=PLANTED",
        ]

        /// The whole answer to a request, as text.
        private static func answer(_ server: RunningServer, _ target: String) async throws -> String {
            let client = try await RawClient.connect(server.port)
            client.send(RunningServer.head(target, closes: true))
            return String(decoding: await client.receivedToEnd(), as: UTF8.self)
        }

        @Test(arguments: ["combined", "json"])
        func `what is shown, logged and reported has no signatures, tokens and passwords`(_ log: String) async throws {
            let folder = ScratchFolder()
            let origin = try FolderOrigin(folder: Samples.folder + "/originals", maxAge: 3600)
            defer { origin.stop() }
            func url(_ name: String) -> String {
                origin.url("/\(name)").replacing("//", with: "//user:PLANTED0@") + Self.query
            }
            let settings = [
                "server.accessLog=\(log)", "log.level=info", "log.format=\(log == "json" ? "json" : "text")",
            ]
            let server = try await RunningServer.start(settings, folder: folder)
            var shown: [(String, String)] = []
            // The `Link` of a source without userinfo, too.
            let plain = origin.url("/grey.jpg" + Self.query)
            for target in [
                RunningServer.variant("thumbnail:20,png", url("night-tiny.jpg")),
                RunningServer.variant("thumbnail:20,png", plain), RunningServer.original(plain),
                "/info/unsigned/" + RunningServer.encoded(plain), "/source/" + plain,
                RunningServer.variant("png", url("missing.jpg")), RunningServer.original(url("missing.jpg")),
                RunningServer.variant("png", "user:PLANTED@127.0.0.1/a.jpg"), "/page/cache.json",
                "/variant/unsigned/png/" + plain,
            ] + Self.nested.map({ RunningServer.original(origin.url("/night-tiny.jpg" + $0)) }) {
                let answer = try await Self.answer(server, target)
                // The first line and the fields, and what is no picture.
                shown.append((target, answer))
            }
            let ended = await server.stop()
            #expect(ended.exit == 0 && ended.text.contains("night-tiny.jpg") && ended.text.contains("Expires=99"))
            // Lines stay whole behind a secret.
            for line in (ended.text + ended.errors).split(separator: "\n") where line.hasPrefix("{") {
                #expect((try? JSONParser.parse(Array(line.utf8))) != nil, "\(line)")
            }
            shown += [("access log", ended.text), ("log", ended.errors)]

            let list = folder.write("\(url("night-tiny.jpg"))\n\(url("missing.jpg"))\n", to: "list.txt")
            let report = folder("report.jsonl")
            let local = ["--set", "allowPrivateAddresses=true", "--cache", folder("cache")]
            for words in [
                ["cache", "list"], ["cache", "list", "--json"], ["cache", "inspect", url("night-tiny.jpg")],
                ["explain", url("night-tiny.jpg"), "-r", "png"], ["explain", url("night-tiny.jpg"), "--json"],
                ["explain", url("missing.jpg")], ["info", url("night-tiny.jpg")], ["info", url("missing.jpg")],
                ["get", url("night-tiny.jpg"), "-r", "png", "-o", folder("a.png"), "--json"],
                ["get", url("night-tiny.jpg"), "-r", "png", "-o", folder("a.png")],
                ["get", url("missing.jpg"), "-r", "png", "-o", folder("a.png")],
                ["get", "user:PLANTED@a.test/b.jpg", "-r", "png", "-o", folder("a.png")],
                ["get", "user:PLANTED@127.0.0.1:80/b.jpg?sig=PLANTED", "-r", "png", "-o", folder("a.png")],
                ["get", "http://user:PLANTED/x@127.0.0.1/b.jpg", "-r", "png", "-o", folder("a.png")],
                ["info", "https:/user:PLANTED@127.0.0.1/b.jpg"], ["info", "ftp://user:PLANTED@127.0.0.1/b.jpg"],
                ["explain", "user:PLANTED@127.0.0.1/b.jpg"],
                ["batch", list, "-r", "png", "-o", folder("out"), "--report", report, "--gallery", folder("g.html")],
                ["batch", list, "-r", "webp", "-o", folder("out"), "-v", "--json"],
                ["batch", list, "-r", "png", "-o", folder("out"), "--dry-run"],
            ] {
                let needsNone = words.first == "cache" && words[1] != "inspect"
                let ended = try await ChildProgram.run(
                    words + (needsNone ? ["--cache", folder("cache")] : local), folder: folder.path)
                shown.append((words.joined(separator: " "), ended.text + ended.errors))
            }
            for file in [report, folder("g.html")] {
                shown.append((file, String(decoding: try #require(ScratchFolder.bytes(at: file)), as: UTF8.self)))
            }
            for (name, text) in shown {
                // Basic authentication sends it in Base64.
                let at = text.firstRange(of: "PLANTED") ?? text.firstRange(of: Base64.text(Array("user:PLANTED0".utf8)))
                let near = at.map { text[..<$0.lowerBound].suffix(200) + text[$0.lowerBound...].prefix(80) }
                #expect(near == nil, "\(name.prefix(60)): \(near ?? "")")
            }
        }

        @Test func `of an object only what is about the picture passes, and errors are ours`() async throws {
            let picture = ScratchFolder.bytes(at: Samples.folder + "/originals/night-tiny.jpg") ?? []
            let store = try LoopbackOrigin { request in
                let owner: KeyValuePairs = [
                    "x-amz-meta-owner": "PLANTED", "x-amz-server-side-encryption-aws-kms-key-id": "PLANTED",
                    "x-amz-request-id": "PLANTED", "Server": "PLANTED", "x-amz-version-id": "PLANTED",
                    "Content-Type": "image/jpeg", "ETag": "\"a\"", "Content-Language": "en",
                    "Cache-Control": "max-age=60",
                ]
                if request.path.hasSuffix("a.jpg") { return .response(200, owner, body: picture) }
                let text = "<Error><Code>AccessDenied</Code><HostId>PLANTED</HostId></Error>"
                return .response(
                    request.path.hasSuffix("gone.jpg") ? 404 : 403, owner, body: Array(text.utf8))
            }
            defer { store.stop() }
            for forwarded in ["[]", "[\"*\"]"] {
                let settings = [
                    "s3={\"endpoint\":\"\(store.url(""))\",\"accessKey\":\"K\",\"secretKey\":\"S\"}",
                    "forwardFields=\(forwarded)", "acceptedTypes=[\"*/*\"]", "sources.allow=[\"s3://photos\"]",
                ]
                try await RunningServer.with(settings) { server in
                    // Fetched, and from memory.
                    for _ in 0..<2 {
                        let good = try await server.ask(RunningServer.original("s3://photos/a.jpg"))
                        #expect(good.status == 200 && good["etag"] == "\"a\"" && good["content-language"] == "en")
                        #expect(good["content-type"] == "image/jpeg" && good["cache-control"] == "max-age=60")
                        for name in ["x-amz-meta-owner", "x-amz-request-id", "server", "x-amz-version-id"] {
                            #expect(good[name] == nil, "\(name)")
                        }
                    }
                    for (name, status) in [("gone.jpg", 404), ("secret.jpg", 502)] {
                        let text = try await Self.answer(server, RunningServer.original("s3://photos/\(name)"))
                        #expect(text.hasPrefix("HTTP/1.1 \(status)"), "\(text.prefix(80))")
                        #expect(text.contains("application/problem+json") && !text.contains("PLANTED"))
                    }
                }
            }
        }
    }
}
