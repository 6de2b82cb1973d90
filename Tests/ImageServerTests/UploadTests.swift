import HTTPCaching
import HTTPTypes
import TestSupport
import Testing
import Variants

@testable import ImageServer
@testable import Pipeline

/// Variants of pictures that clients send (`server.uploads`).
@Suite struct UploadTests {
    private typealias Bench = HitTests.Bench

    private static let path = "/variant/unsigned/thumbnail:20,png"

    private static func post(
        _ target: String = path, _ fields: [HeaderField] = [], method: String = "POST", from client: String? = nil,
        body: [UInt8] = []
    ) -> ServerRequest {
        var request = ServerRequest(method: method, target: target, fields: [HeaderField("Host", "a")] + fields)
        (request.client, request.body) = (client, body)
        return request
    }

    private static func with(
        _ change: (inout ServerConfiguration, inout PipelineConfiguration) -> Void = { _, _ in },
        _ body: (Bench) async throws -> Void
    ) async throws {
        try await HitTests.with(
            {
                $0.uploads = true
                change(&$0, &$1)
            }, body)
    }

    /// The status of the refusal before the body is read, or nil if the body is read.
    private static func refusal(_ request: ServerRequest, _ bench: Bench) -> Int? {
        switch bench.site.intake(of: request) {
        case .refused(let problem): problem.kind.status
        case .upload, .wanted, .unneeded: nil
        }
    }

    // MARK: Responses

    @Test func `two uploads of the same bytes render once, and share the variant of a GET`() async throws {
        try await Self.with { bench in
            let picture = Bench.sample("night-tiny.jpg")
            let first = await bench.site.respond(to: Self.post(body: picture))
            #expect(first.status == 200 && first["content-type"] == "image/png")
            #expect(first["cache-status"] == "pipeline; hit; detail=rendered")
            let entry = RequestLog.Entry(client: "::1", request: Self.post(), .init(first), milliseconds: 1)
            #expect(RequestLog.line(entry).hasPrefix("::1 POST /variant/thumbnail:20,png 200 "))
            let header = try ImageHeader.probe(Array(first.body))
            #expect(header.width == 20)
            let second = await bench.site.respond(to: Self.post(body: picture))
            #expect(second["cache-status"] == "pipeline; hit; detail=memory" && second.body == first.body)
            let get = await bench.ask(bench.variant)
            #expect(get.body == first.body)
            #expect(get["server-timing"]?.contains("encode") != true)
            let other = await bench.site.respond(to: Self.post(body: Bench.sample("balloon.webp")))
            #expect(other["cache-status"] == "pipeline; hit; detail=rendered" && other.body != first.body)
            #expect(bench.site.uploads.bytes == 0)
        }
    }

    @Test func `an answer to POST has no validators, is not stored, and ignores conditions and ranges`() async throws {
        try await Self.with { bench in
            let picture = Bench.sample("night-tiny.jpg")
            for fields in [
                [], [HeaderField("If-None-Match", "*")], [HeaderField("If-Match", "\"a\"")],
                [HeaderField("Range", "bytes=0-3")], [HeaderField("Cache-Control", "only-if-cached")],
            ] {
                let answer = await bench.site.respond(to: Self.post(Self.path, fields, body: picture))
                #expect(answer.status == 200 && (try? ImageHeader.probe(Array(answer.body))) != nil, "\(fields)")
                #expect(answer.fields.filter { $0.name == "Cache-Control" }.map(\.value) == ["no-store"])
                for name in ["etag", "last-modified", "accept-ranges", "content-location", "vary"] {
                    #expect(answer[name] == nil, "\(name)")
                }
                #expect(answer["x-content-type-options"] == "nosniff" && answer["content-security-policy"] != nil)
            }
        }
    }

    @Test func `Accept chooses the format, and presets apply`() async throws {
        let presets = try RecipePresets(["card": "thumbnail:20"])
        try await Self.with({ settings, _ in
            settings.presets = presets
            settings.recipes.presetsOnly = true
        }) { bench in
            let accept = [HeaderField("Accept", "image/webp")]
            let request = Self.post("/variant/unsigned/@card", accept, body: Bench.sample("night-tiny.jpg"))
            #expect(await bench.site.respond(to: request)["content-type"] == "image/webp")
            #expect(Self.refusal(Self.post(), bench) == 403)
        }
    }

    @Test func `what is no picture is refused as for GET`() async throws {
        try await Self.with { bench in
            for (body, status) in [
                (Array("<html></html>".utf8), 415), ([], 415),
                (ScratchFolder.bytes(at: Samples.broken("giant-header.png")) ?? [], 413),
                (Array(Bench.sample("balloon-alpha.png").prefix(400)), 422),
            ] {
                let answer = await bench.site.respond(to: Self.post(body: body))
                #expect(answer.status == status, "\(answer.status) \(answer.note ?? "")")
                #expect(answer["content-type"] == "application/problem+json")
            }
            #expect(bench.site.uploads.bytes == 0)
        }
    }

    @Test func `server.fallback replaces a damaged upload`() async throws {
        try await Self.with({ settings, _ in settings.fallback = Bench.sample("night-tiny.jpg") }) { bench in
            let damaged = Array(Bench.sample("balloon-alpha.png").prefix(400))
            let answer = await bench.site.respond(to: Self.post(body: damaged))
            #expect(answer.status == 422 && answer["content-type"] == "image/png")
        }
    }

    // MARK: Access

    @Test func `without the setting a POST is a 405, and its body is not a picture`() async throws {
        try await HitTests.with { bench in
            for target in [Self.path, bench.variant] {
                let answer = await bench.site.respond(to: Self.post(target, body: Bench.sample("night-tiny.jpg")))
                #expect(answer.status == 405 && answer["allow"] == "GET, HEAD")
                #expect(
                    !bench.site.isUpload(Self.post(target)) && bench.site.intake(of: Self.post(target)) == .unneeded)
            }
        }
        try await Self.with { bench in
            let answer = await bench.site.respond(to: Self.post(bench.variant, method: "PUT"))
            #expect(answer.status == 405 && answer["allow"] == "GET, HEAD, POST")
            for target in ["/original/unsigned/a.jpg", "/info/unsigned/a.jpg"] {
                #expect(await bench.site.respond(to: Self.post(target)).status != 200)
                #expect(!bench.site.isUpload(Self.post(target)))
            }
        }
    }

    @Test func `everything but the picture is checked before the body is read`() async throws {
        try await Self.with({
            $0.referrers = ["a.test"]
            $0.recipes.sizes = [20]
            $0.recipes.refusesOtherSizes = true
            $1.rendering.limits.bytes = 5_000
        }) { bench in
            let form = HeaderField("Content-Type", "multipart/form-data; boundary=a")
            for (request, status) in [
                (Self.post("/variant/web.AAAA/thumbnail:20,png"), 403),
                (Self.post("/variant/unsigned/thumbnil:20"), 400),
                (Self.post("/variant/unsigned/thumbnail:21"), 400), (Self.post(bench.variant), 400),
                (Self.post("/variant/unsigned"), 400), (Self.post("/variant/unsigned/"), nil),
                (Self.post(Self.path + "/"), 400), (Self.post(Self.path + "?a=1"), 400),
                (Self.post(Self.path + "?v=1"), nil), (Self.post(Self.path + "?exp=4102444800"), 403),
                (Self.post(Self.path, [HeaderField("Content-Length", "5001")]), 413),
                (Self.post(Self.path, [HeaderField("Content-Length", "99999999999999999999")]), 413),
                (Self.post(Self.path, [HeaderField("Content-Length", "5000")]), nil),
                (Self.post(Self.path, [HeaderField("Content-Encoding", "gzip")]), 415),
                (Self.post(Self.path, [form]), 415),
                (Self.post(Self.path, [HeaderField("Content-Type", "application/octet-stream")]), nil),
                (Self.post(Self.path, [HeaderField("Referer", "https://b.test/")]), 403),
                (Self.post(Self.path, [HeaderField("CDN-Loop", bench.site.settings.loop.entry)]), 508),
            ] {
                #expect(Self.refusal(request, bench) == status, "\(request.target) \(request.fields)")
                if let status { #expect(await bench.site.respond(to: request).status == status) }
            }
            #expect(bench.origin.requests.isEmpty && bench.site.uploads.bytes == 0)
        }
        try await Self.with({ settings, _ in settings.routes = [.original] }) { bench in
            #expect(Self.refusal(Self.post(), bench) == 403)
        }
    }

    @Test func `a signature permits either an upload or a source`() async throws {
        let key = try SignatureTests.key()
        try await Self.with({ settings, _ in settings.signature = Signature(allowUnsigned: false, keys: [key]) }) {
            bench in
            let path = key.uploadPath(recipe: "thumbnail:20,png")
            let picture = Bench.sample("night-tiny.jpg")
            #expect(await bench.site.respond(to: Self.post(path, body: picture)).status == 200)
            let source = "/" + bench.source
            let get = key.variantPath(recipe: "thumbnail:20,png", source: bench.origin.url("/a.jpg"))
            #expect(await bench.ask(get).status == 200)
            #expect(await bench.ask(path).status == 400)
            #expect(await bench.ask(path + source).status == 403)
            #expect(Self.refusal(Self.post(get), bench) == 400)
            // The same signature before the recipe alone.
            let segments = get.split(separator: "/")
            let cut = "/" + segments.prefix(3).joined(separator: "/")
            for wrong in [cut, Self.path, path.replacing("20", with: "21"), path + source] {
                #expect(Self.refusal(Self.post(wrong), bench) == 403, "\(wrong)")
            }
            let expiring = key.uploadPath(recipe: "png", expiry: bench.site.now() + 30)
            #expect(Self.refusal(Self.post(expiring), bench) == nil)
            bench.advance(31)
            #expect(Self.refusal(Self.post(expiring), bench) == 403)
        }
    }

    @Test func `without keys only this machine uploads, and no page of another site`() async throws {
        try await Self.with({ settings, _ in
            settings.signature = Signature(allowUnsigned: false)
            settings.signature.servesThisMachine = true
        }) { bench in
            var request = Self.post(from: "127.0.0.1", body: Bench.sample("night-tiny.jpg"))
            request.fields = [HeaderField("Host", "localhost")]
            #expect(await bench.site.respond(to: request).status == 200)
            var page = request
            page.fields.append(HeaderField("Sec-Fetch-Site", "cross-site"))
            #expect(Self.refusal(page, bench) == 403)
            request.client = "192.0.2.1"
            #expect(Self.refusal(request, bench) == 403)
        }
    }

    @Test func `each upload counts towards server.rate, once`() async throws {
        try await Self.with({ settings, _ in settings.rate = RateLimit(rate: 0.2) }) { bench in
            let picture = Bench.sample("night-tiny.jpg")
            for _ in 0..<2 {
                var request = Self.post(from: "192.0.2.1", body: picture)
                request.intake = bench.site.intake(of: request)
                #expect(await bench.site.respond(to: request).status == 200)
            }
            let late = Self.post(from: "192.0.2.1", body: picture)
            #expect(Self.refusal(late, bench) == 429)
            let answer = await bench.site.respond(to: late)
            #expect(answer.status == 429 && answer["retry-after"] != nil)
            #expect(await bench.site.respond(to: Self.post(from: "192.0.2.2", body: picture)).status == 200)
            #expect(bench.site.uploads.bytes == 0)
        }
    }

    @Test func `a preflight request names POST`() async throws {
        try await Self.with({ settings, _ in settings.crossOrigin = ["*"] }) { bench in
            let fields = [
                HeaderField("Origin", "https://a.test"), HeaderField("Access-Control-Request-Method", "POST"),
            ]
            let answer = await bench.site.respond(to: Self.post(Self.path, fields, method: "OPTIONS"))
            #expect(answer.status == 204 && answer["access-control-allow-methods"] == "GET, HEAD, POST")
        }
    }

    // MARK: Memory

    @Test func `uploads hold at most four pictures of the largest size, and one client two`() async throws {
        try await Self.with({ $1.rendering.limits.bytes = 10_000 }) { bench in
            func permit(_ client: String, _ length: Int? = 10_000) throws -> UploadPermit {
                let fields = length.map { [HeaderField("Content-Length", "\($0)")] } ?? []
                switch bench.site.intake(of: Self.post(Self.path, fields, from: client)) {
                case .upload(let permit): return permit
                case .refused(let problem): throw problem
                case .unneeded, .wanted: throw Problem(.internalError)
                }
            }
            func kind(_ client: String, _ length: Int = 10_000) -> String? {
                do { _ = try permit(client, length) } catch { return (error as? Problem)?.kind.name }
                return nil
            }
            var held = [try permit("192.0.2.1"), try permit("192.0.2.1")]
            #expect(kind("192.0.2.1", 1) == "overloaded" && kind("192.0.2.2") == nil)
            held += [try permit("192.0.2.2"), try permit("192.0.2.3", 9_000)]
            #expect(kind("192.0.2.4", 1_001) == "overloaded" && kind("192.0.2.4", 1_000) == nil)
            // The length of a chunked body is not known in advance.
            let growing = try permit("192.0.2.4", nil)
            try growing.reserve(1_000)
            #expect(throws: Problem.self) { try growing.reserve(1_001) }
            #expect(bench.site.uploads.bytes == 40_000)
            let refused = await bench.site.respond(to: Self.post(from: "192.0.2.4", body: [1]))
            #expect(refused.status == 503 && refused["retry-after"] == "1")
            held.removeFirst()
            try growing.reserve(10_000)
            #expect(throws: Problem.self) { try growing.reserve(10_001) }
            held.removeAll()
            #expect(bench.site.uploads.bytes == 10_000)
            withExtendedLifetime(growing) {}
        }
    }

    // MARK: Mounted

    @Test func `a mounted site reads an upload in pieces, up to the limit`() async throws {
        try await Self.with({ $1.rendering.limits.bytes = 4_000 }) { bench in
            func status(_ path: String, _ pieces: [[UInt8]]) async -> (Int, read: Int) {
                let (body, source) = AsyncStream<[UInt8]>.makeStream()
                for piece in pieces { source.yield(piece) }
                source.finish()
                let request = HTTPRequest(method: .post, scheme: "http", authority: "a", path: path)
                let (head, _) = await bench.site.respond(to: request, body: body)
                var left = 0
                for await _ in body { left += 1 }
                return (head.status.code, pieces.count - left)
            }
            let picture = Bench.sample("night-tiny.jpg")
            let pieces = [Array(picture[..<2_000]), Array(picture[2_000...]), []]
            #expect(await status(Self.path, pieces) == (200, 3))
            #expect(await status(Self.path, pieces + [picture, picture]) == (413, 4))
            #expect(await status("/variant/web.AAAA/png", pieces) == (403, 0))
            #expect(bench.site.uploads.bytes == 0)
        }
    }
}
