import Foundation
import Glibc
import PipelineSupport
import TestSupport
import Testing

@testable import pipectl

extension CommandTests {
    /// Equal requests to every server that runs the library: `pipectl serve`, and a Hummingbird application that mounts
    /// it below `/images`.
    @Suite struct MountedSite {
        enum Server: String, CaseIterable, Sendable {
            case pipectl, hummingbird

            /// Where `swift build --package-path Examples` puts a program. With `EXAMPLES=1` it must be there.
            static func example(_ name: String) -> String { Samples.folder + "/../Examples/.build/debug/" + name }
            static let application = example("image-app")
            static let areExamplesBuilt = getenv("EXAMPLES") != nil || access(application, X_OK) == 0

            static let built = allCases.filter { $0 == .pipectl || areExamplesBuilt }
        }

        /// A server that answers, and what stands before the site's paths.
        private struct Mounted: Sendable {
            let port: Int
            let prefix: String

            func ask(
                _ path: String, method: String = "GET", _ fields: KeyValuePairs<String, String> = [:],
                body: String = ""
            ) async throws -> RawResponse {
                let client = try await RawClient.connect(port)
                client.send(RunningServer.head(prefix + path, method: method, fields, closes: true) + body)
                let bytes = await client.receivedToEnd()
                return try #require(
                    RawResponse.all(in: bytes, heads: method == "HEAD").first, "\(path): \(bytes.prefix(200))")
            }
        }

        private static let token = "0123456789abcdef0123456789abcdef"

        private static func with(_ server: Server, _ body: (Mounted) async throws -> Void) async throws {
            switch server {
            case .pipectl:
                let settings = ["server.cors=*", "forwardFields=X-Tenant", "tags=cache-tag"]
                try await RunningServer.with(settings, environment: ["PIPECTL_ADMIN_TOKEN=" + token]) {
                    try await body(Mounted(port: $0.port, prefix: ""))
                }
            case .hummingbird: try await withApplication { try await body(Mounted(port: $0, prefix: "/images")) }
            }
        }

        /// Runs the application of Hummingbird; it must end in order.
        static func withApplication(_ body: (_ port: Int) async throws -> Void) async throws {
            let folder = ScratchFolder()
            let program = try HelperProgram([
                "env", "PORT=0", "LOOPBACK_ORIGINS=yes", "CACHE_FOLDER=" + folder("cache"), "ADMIN_TOKEN=" + token,
                Server.application,
            ])
            defer { program.stop() }
            let told = try #require(program.line(after: "listening on 127.0.0.1:"), "\(program.text)")
            try await body(try #require(Int(told.prefix { $0.isNumber })))
            program.terminate()
            #expect(await program.end() == 0, "\(program.text)")
        }

        @Test(arguments: Server.built)
        func `variants are made once, and HEAD, conditions and ranges have their answers`(server: Server) async throws {
            let origin = try FolderOrigin(folder: Samples.folder + "/originals", maxAge: 3600)
            defer { origin.stop() }
            try await Self.with(server) { site in
                let path = RunningServer.variant("thumbnail:64x64:fill,png", origin.url("/meadow-small.jpg"))
                let first = try await site.ask(path)
                #expect(first.status == 200 && first["content-type"] == "image/png")
                #expect(first.values("content-length") == [String(first.body.count)])
                #expect(first["etag"] == "\"\(sha256Hex(first.body))\"")
                #expect(first["cache-status"]?.hasPrefix("pipeline; fwd=uri-miss") == true)
                let second = try await site.ask(path)
                #expect(second.body == first.body && second["etag"] == first["etag"])
                #expect(second["cache-status"]?.hasSuffix("; detail=memory") == true)
                let head = try await site.ask(path, method: "HEAD")
                #expect(head.status == 200 && head.values("content-length") == [String(first.body.count)])
                let tag = try #require(first["etag"])
                let same = try await site.ask(path, ["If-None-Match": tag])
                #expect(same.status == 304 && same["etag"] == tag && same.body.isEmpty)
                let part = try await site.ask(path, ["Range": "bytes=2-5"])
                #expect(part.status == 206 && part.body == Array(first.body[2...5]))
                #expect(origin.requests.count == 1)
            }
        }

        @Test(arguments: Server.built)
        func `auto goes by Accept, and the source may be base64url`(server: Server) async throws {
            let origin = try FolderOrigin(folder: Samples.folder + "/originals", maxAge: 3600)
            defer { origin.stop() }
            try await Self.with(server) { site in
                let url = origin.url("/meadow-small.jpg")
                let source =
                    "b64:" + Data(url.utf8).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_")
                let path = "/variant/unsigned/thumbnail:32/" + source
                let webp = try await site.ask(path, ["Accept": "image/webp"])
                #expect(webp["content-type"] == "image/webp" && webp["vary"] == "Accept")
                let plain = try await site.ask(path)
                #expect(plain["content-type"] == "image/jpeg" && plain["vary"] == "Accept")
            }
        }

        @Test(arguments: Server.built)
        func `originals keep repeated fields and bytes beyond ASCII, large ones too`(server: Server) async throws {
            let large = (0..<20_000_000).map { UInt8(truncatingIfNeeded: $0 / 251 &+ $0) }
            let origin = try LoopbackOrigin { request in
                let body = request.path == "/large" ? large : Array("body".utf8)
                var head = "HTTP/1.1 200 OK\r\nContent-Type: image/x\r\nCache-Control: max-age=600\r\n"
                head += "Content-Language: de\r\nContent-Language: en\r\nContent-Length: \(body.count)\r\nWarning: caf"
                return OriginReply(
                    parts: [.bytes(Array(head.utf8) + [0xE9] + Array("\r\n\r\n".utf8) + body)], keepsAlive: true)
            }
            defer { origin.stop() }
            try await Self.with(server) { site in
                for _ in 0..<2 {
                    let small = try await site.ask(RunningServer.original(origin.url("/small")))
                    #expect(small.status == 200 && small.text == "body")
                    #expect(small.values("content-language") == ["de", "en"])
                    // Hummingbird takes what is no UTF-8 for U+FFFD.
                    #expect(small["warning"]?.hasPrefix("caf") == true)
                    if server == .pipectl { #expect(small["warning"] == "caf\u{E9}") }
                    let got = try await site.ask(RunningServer.original(origin.url("/large")))
                    #expect(got.status == 200 && sha256Hex(got.body) == sha256Hex(large))
                }
            }
        }

        @Test(arguments: Server.built)
        func `origins get forwarded fields, pages CORS and tags, and operators purge`(server: Server) async throws {
            let origin = try FolderOrigin(folder: Samples.folder + "/originals", maxAge: 3600)
            defer { origin.stop() }
            let operators: KeyValuePairs = ["Authorization": "Bearer " + Self.token]
            try await Self.with(server) { site in
                let source = origin.url("/meadow-small.jpg")
                let path = RunningServer.variant("thumbnail:30,png", source)
                func fetches(_ count: Int, _ place: SourceLocation = #_sourceLocation) async throws {
                    var handling: [String] = []
                    for _ in 0..<2 {
                        let answer = try await site.ask(path, ["X-Tenant": "a", "Origin": "https://a.test"])
                        #expect(answer.status == 200 && answer["cache-tag"]?.isEmpty == false, sourceLocation: place)
                        #expect(answer["access-control-allow-origin"] == "*", sourceLocation: place)
                        handling.append(answer["cache-status"] ?? "")
                    }
                    let tenants = origin.requests.map { $0["x-tenant"] ?? "" }
                    #expect(tenants == Array(repeating: "a", count: count), "\(handling)", sourceLocation: place)
                }
                try await fetches(1)
                let asked: KeyValuePairs = ["Origin": "https://a.test", "Access-Control-Request-Method": "GET"]
                let preflight = try await site.ask(path, method: "OPTIONS", asked)
                #expect(preflight.status == 204 && preflight["access-control-allow-origin"] == "*")

                let one = "/source/" + RunningServer.encoded(source)
                #expect(try await site.ask(one, method: "DELETE").status == 401)
                try await fetches(1)
                let purged = try await site.ask(one, method: "DELETE", operators)
                #expect(purged.status == 200 && purged.text.contains(#""records":1,"#), "\(purged.text)")
                try await fetches(2)
                let json = #"{"sources":["\#(source)"],"mode":"hard"}"#
                let many = try await site.ask(
                    "/purge", method: "POST",
                    ["Authorization": "Bearer " + Self.token, "Content-Length": "\(json.utf8.count)"], body: json)
                #expect(many.status == 200 && many.text.contains(#""records":1,"#), "\(many.text)")
                try await fetches(3)

                #expect(try await site.ask("/ready").status == 200)
                let metrics = try await site.ask("/metrics", operators)
                #expect(metrics.status == 200 && metrics.text.contains("image_pipeline_folder_entries"))
            }
        }

        @Test(arguments: Server.built)
        func `errors are problems, and say nothing of an image`(server: Server) async throws {
            try await Self.with(server) { site in
                #expect(try await site.ask("/health").text == "ok\n")
                let recipe = try await site.ask(RunningServer.variant("thumbnial:3", "http://127.0.0.1:1/a.jpg"))
                #expect(recipe.status == 400 && recipe.problem == "invalid-recipe")
                #expect(recipe["content-type"] == "application/problem+json" && recipe["cache-control"] == "no-store")
                let path = try await site.ask("/nothing")
                #expect(path.status == 404 && path.problem == "unknown-path")
                let origin = try await site.ask(RunningServer.variant("thumbnail:3", "http://127.0.0.1:1/a.jpg"))
                #expect(origin.status == 502)
                let slash = try await site.ask("/original/unsigned/http:/127.0.0.1/a.jpg")
                #expect(slash.status == 400 && slash.problem == "invalid-source")
            }
        }
    }
}
