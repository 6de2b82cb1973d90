import HTTPCaching
import PipelineSupport
import Synchronization
import TestSupport
import Testing
import Variants

@testable import ImageServer
@testable import Pipeline

/// The URLs of imgproxy in a site.
@Suite struct ImgproxyGrammarTests {
    private static func with(
        _ members: [String: GrammarValue] = [:], _ body: (HitTests.Bench) async throws -> Void
    ) async throws {
        let all = members.merging(["path": "/imgproxy", "unsigned": true]) { own, _ in own }
        try await HitTests.with { site, _ in
            site.grammars["imgproxy"] = GrammarValue(.object(all.map { .init(name: $0.key, value: $0.value.json) }))
        } _: { bench in
            try await body(bench)
        }
    }

    private static func text(_ response: ServerResponse) -> String { String(decoding: response.body, as: UTF8.self) }

    @Test func `a picture has the header fields of imgproxy, and shares the variant of the plain recipe`() async throws
    {
        try await Self.with { bench in
            let url = bench.origin.url("/photos/my%20cat.jpg")
            let target = "/imgproxy/unsafe/rs:fit:40:40/q:70/plain/\(url.replacing("%", with: "%25"))@webp"
            let first = await bench.ask(target)
            #expect(first.status == 200 && first["content-type"] == "image/webp" && first["vary"] == nil)
            #expect(first["cache-control"] == "max-age=31536000, public")
            #expect(first["content-disposition"] == "inline; filename=\"my cat.webp\"")
            #expect(first["link"] == "<\(url)>; rel=\"canonical\"")
            let hit = try #require(bench.hit(target))
            #expect(hit.body == Array(first.body))
            #expect(String(decoding: hit.head, as: UTF8.self).contains("Cache-Control: max-age=31536000, public\r\n"))
            let base64 = Base64.urlText(Array(url.utf8))
            for other in ["/imgproxy/_/w:40/h:40/q:70/f:webp/\(base64)", "/imgproxy/_/q:70/s:40:40/\(base64).webp?x=1"]
            {
                #expect(await bench.ask(other).body == first.body, "\(other)")
            }
            #expect(bench.origin.requests.count == 1)
            let plain = await bench.ask(
                "/variant/unsigned/thumbnail:40x40,webp:70:keep=copyright/"
                    + PercentText.encoded(url, keeping: ""))
            #expect(plain.picture == first.picture && plain["cache-status"]?.contains("detail=memory") == true)
        }
    }

    @Test func `info has the names of imgproxy, of a local file too`() async throws {
        let folder = ScratchFolder()
        folder.write(try #require(ScratchFolder.bytes(at: Samples.original("meadow-small.jpg"))), to: "a b.jpg")
        try await Self.with(["localRoot": GrammarValue(.string(folder.path))]) { bench in
            for source in [bench.origin.url("/a.jpg"), "local:///a%20b.jpg"] {
                let answer = await bench.ask("/imgproxy/info/unsafe/plain/" + source)
                let json = Self.text(answer)
                #expect(answer.status == 200 && answer["content-type"] == "application/json", "\(json)")
                #expect(json.hasPrefix("{\"mime_type\":\"image/jpeg\",\"size\":"))
                for name in ["format", "width", "height", "orientation", "blurhash", "palette"] {
                    #expect(json.contains("\"\(name)\":"), "\(name)")
                }
                guard case .object(let members) = try JSONParser.parse(Array(json.utf8)) else {
                    Issue.record("\(json)")
                    return
                }
                #expect(members.first { $0.name == "size" }?.value == members.first { $0.name == "bytes" }?.value)
                let etag = try #require(answer["etag"])
                let again = await bench.ask(
                    "/imgproxy/info/unsafe/plain/" + source, [HeaderField("If-None-Match", etag)])
                #expect(again.status == 304)
                #expect(answer["content-disposition"] == nil)
            }
            #expect(bench.origin.requests.count == 1)
        }
    }

    @Test func `a fallback picture covers every failure of a permitted request`() async throws {
        let folder = ScratchFolder()
        let file = folder.write(try #require(ScratchFolder.bytes(at: Samples.original("balloon.webp"))), to: "f.webp")
        let members: [String: GrammarValue] = [
            "fallback": GrammarValue(.string(file)), "fallbackTtl": 60, "localRoot": GrammarValue(.string(folder.path)),
        ]
        try await Self.with(members) { bench in
            bench.answer.body.withLock { $0 = Array("no picture".utf8) }
            for source in [bench.origin.url("/a.jpg"), "local:///missing.jpg", "http://127.0.0.1:1/a.jpg"] {
                let answer = await bench.ask("/imgproxy/_/w:20/f:png/plain/" + source)
                #expect(answer.status == 200 && answer["content-type"] == "image/png", "\(source)")
                #expect(answer["cache-control"] == "max-age=60, public")
                let header = try ImageHeader.probe(Array(answer.body))
                #expect(header.width == 20)
            }
            let wrong = await bench.ask("/imgproxy/_/w:x/plain/" + bench.origin.url("/a.jpg"))
            #expect(wrong.status == 404)
        }
        try await Self.with(members.merging(["fallbackStatus": 404]) { $1 }) { bench in
            let answer = await bench.ask("/imgproxy/_/w:20/plain/local:///missing.jpg")
            #expect(answer.status == 404 && answer["content-type"]?.hasPrefix("image/") == true)
        }
        for wrong in [
            ["fallback": "/nowhere.png"], ["fallbackTtl": 3],
            ["fallback": GrammarValue(.string(file)), "fallbackStatus": 301],
        ] as [[String: GrammarValue]] {
            await #expect(throws: InvalidSetting.self) { try await Self.with(wrong) { _ in } }
        }
    }

    @Test func `a limit of bytes lowers the quality to 10 at most`() async throws {
        try await Self.with { bench in
            let source = "plain/" + bench.origin.url("/a.jpg") + "@jpg"
            let lowest = await bench.ask("/imgproxy/_/q:10/" + source)
            let whole = await bench.ask("/imgproxy/_/" + source)
            #expect(lowest.status == 200 && lowest.body.count < whole.body.count)
            let none = await bench.ask("/imgproxy/_/mb:1/" + source)
            #expect(none.status == 200 && none.body == lowest.body)
            #expect(bench.hit("/imgproxy/_/mb:1/" + source)?.body == Array(lowest.body))
            let limit = (lowest.body.count + whole.body.count) / 2
            let fitting = await bench.ask("/imgproxy/_/mb:\(limit)/" + source)
            #expect(fitting.status == 200 && fitting.body.count <= limit && fitting.body.count > lowest.body.count)
        }
    }

    @Test func `a URL can lower the size of originals, also of raw ones`() async throws {
        try await Self.with(["securityOptions": true]) { bench in
            let count = try #require(ScratchFolder.bytes(at: Samples.original("night-tiny.jpg"))).count
            for (limit, status) in [(count, 200), (count - 1, 422), (0, 200)] {
                for options in ["w:9/msfs:\(limit)", "raw:1/max_src_file_size:\(limit)"] {
                    let answer = await bench.ask("/imgproxy/_/\(options)/plain/" + bench.origin.url("/a.jpg"))
                    #expect(answer.status == status, "\(options)")
                    #expect(status == 200 || Self.text(answer).contains("\(count - 1)"), "\(options)")
                }
            }
        }
    }

    @Test func `sizes of the server apply to the sizes in URLs`() async throws {
        for (isStrict, path, size) in [
            (false, "/imgproxy/_/w:33/plain/", "40x"), (false, "/imgproxy/_/rs:force:33:30/plain/", "40x40"),
            (true, "/imgproxy/_/w:40/plain/", "40x"), (true, "/imgproxy/_/w:33/plain/", nil),
            (false, "/netlify?w=33&url=", "40x"), (true, "/netlify?w=33&url=", nil),
            (false, "/imgproxy/_/plain/", "97x61"),
            (true, "/imgproxy/_/pr:own/plain/", "33x"), (true, "/imgproxy/_/pr:own/w:34/plain/", nil),
        ] as [(Bool, String, String?)] {
            try await HitTests.with { site, _ in
                site.recipes.sizes = [20, 40]
                site.recipes.refusesOtherSizes = isStrict
                site.grammars = [
                    "imgproxy": ["path": "/imgproxy", "unsigned": true, "presets": ["own": "w:33"]],
                    "netlify": ["path": "/netlify", "unsigned": true],
                ]
            } _: { bench in
                let answer = await bench.ask(path + bench.origin.url("/a.jpg"))
                guard let size else {
                    #expect(answer.status >= 400 && Self.text(answer).contains("`sizes.strict`"), "\(path)")
                    return
                }
                #expect(answer.status == 200 && answer.picture?.size.hasPrefix(size) == true, "\(path)")
            }
        }
    }

    @Test func `signed URLs end with their expiry, and other signatures are refused before anything is fetched`()
        async throws
    {
        let (key, salt) = ("746573742d6b6579", "746573742d73616c74")
        try await Self.with(["keys": [["key": GrammarValue(.string(key)), "salt": GrammarValue(.string(salt))]]]) {
            bench in
            let now = Int(SystemClock.unix.seconds)
            let rest = "/w:40/exp:\(now + 60)/plain/" + bench.origin.url("/a.jpg")
            let code = hmacSHA256(Array("test-salt".utf8) + Array(rest.utf8), key: Array("test-key".utf8))
            let target = "/imgproxy/" + Base64.urlText(code) + rest
            let first = await bench.ask(target)
            let age = first["cache-control"].flatMap { Int($0.drop { !$0.isNumber }.prefix { $0.isNumber }) } ?? 0
            #expect(first.status == 200 && (50...60).contains(age))
            #expect(bench.hit(target)?.status == 200)
            bench.advance(61)
            #expect(bench.hit(target) == nil)
            let expired = await bench.ask(target)
            #expect(
                expired.status == 404 && Self.text(expired).hasPrefix("Invalid URL: ")
                    && expired["cache-control"] == "no-store")
            for wrong in ["/imgproxy/unsafe" + rest, "/imgproxy/" + Base64.urlText(code) + "/q:3" + rest] {
                let response = await bench.ask(wrong)
                #expect(response.status == 403 && Self.text(response).hasPrefix("Forbidden: "), "\(wrong)")
            }
            #expect(bench.origin.requests.count == 1)
        }
    }

    @Test func `Accept chooses among autoFormats unless the URL names a format`() async throws {
        try await Self.with(["autoFormats": ["avif", "webp"]]) { bench in
            let accept = [HeaderField("Accept", "image/avif,image/webp,*/*")]
            let source = "plain/" + bench.origin.url("/a.jpg")
            let chosen = await bench.ask("/imgproxy/_/w:20/\(source)", accept)
            #expect(chosen["content-type"] == "image/avif" && chosen["vary"] == "Accept")
            let other = await bench.ask("/imgproxy/_/w:20/\(source)")
            #expect(other["content-type"] == "image/jpeg" && other["vary"] == "Accept")
            let named = await bench.ask("/imgproxy/_/w:20/f:png/\(source)", accept)
            #expect(named["content-type"] == "image/png" && named["vary"] == nil)
        }
    }

    @Test func `raw sends the original, and a secret is required for every request`() async throws {
        try await Self.with(["secret": "open sesame"]) { bench in
            let target = "/imgproxy/_/raw:1/w:5/plain/" + bench.origin.url("/a.jpg")
            let bearer = [HeaderField("Authorization", "Bearer open sesame")]
            let response = await bench.ask(target, bearer)
            #expect(response.status == 200 && Array(response.body) == HitTests.Bench.sample("night-tiny.jpg"))
            for fields in [[], [HeaderField("Authorization", "Bearer open")]] {
                #expect(await bench.ask(target, fields).status == 403 && bench.hit(target, fields) == nil)
            }
        }
    }

    @Test func `errors have the statuses of imgproxy`() async throws {
        let origin = try LoopbackOrigin { request in
            let status = ["/gone": 410, "/broken": 500, "/page": 200][request.target] ?? 404
            return .response(status, ["Content-Type": "text/html"], body: Array("<html>".utf8))
        }
        defer { origin.stop() }
        try await Self.with { bench in
            for (rest, status, general) in [
                ("w:20/plain/" + origin.url("/gone"), 410, "Source image is unreachable"),
                ("w:20/plain/" + origin.url("/broken"), 502, "Source image is unreachable"),
                ("w:20/plain/" + origin.url("/none"), 404, "Source image is unreachable"),
                ("w:20/plain/" + origin.url("/page"), 422, "Invalid source image"),
                ("w:20/plain/http://127.0.0.1:1/a", 404, "Source image is unreachable"),
                ("w:20/plain/local:///etc/passwd", 404, "Invalid source URL"),
                ("w:x/plain/http://a.example/b", 404, "Invalid URL"),
                ("brightness:3/plain/http://a.example/b", 404, "Invalid URL"),
                ("msr:9/plain/http://a.example/b", 403, "Forbidden"),
                ("f:ico/plain/" + bench.origin.url("/a.jpg"), 422, "Invalid source image"),
            ] as [(String, Int, String)] {
                let response = await bench.ask("/imgproxy/_/" + rest)
                #expect(
                    response.status == status && Self.text(response).hasPrefix(general),
                    "\(rest): \(Self.text(response))")
                #expect(response["content-type"] == "text/plain; charset=utf-8")
            }
        }
    }

    /// Supabase Storage sends pre-signed URLs of its object store, and repeats requests after a 429 or a 500.
    @Test func `a pre-signed URL on a private host reaches the object store unchanged, and overload is a 429`()
        async throws
    {
        try await Self.with { bench in
            let signed = "/bucket/a%20b.jpg?X-Amz-Date=20261129T000000Z&X-Amz-Signature=ab%2Fcd%3D&x-id=GetObject"
            let source = PercentText.encoded(bench.origin.url(signed), keeping: "")
            let target = "/imgproxy/public/height:20/width:20/resizing_type:fill/plain/\(source)"
            let response = await bench.ask(target, [HeaderField("Accept", "image/webp,*/*")])
            #expect(response.status == 200 && bench.origin.requests.map(\.target) == [signed])
            // The signature of the object store reaches neither other clients nor the log.
            #expect(response["link"] == nil)
            let shown = RequestLog.shown(target, response.route)
            #expect(shown.contains("/bucket/a%20b.jpg") && !shown.contains("ab%2Fcd"), "\(shown)")
            let busy = Problem(.overloaded).response(of: response.route?.grammar, now: 0)
            #expect(
                busy.status == 429 && busy["retry-after"] == "1" && busy["content-type"] == "text/plain; charset=utf-8")
        }
    }

    @Test func `an unsigned URL that expires is no hit afterwards, and its age counts down`() async throws {
        try await Self.with { bench in
            let expiry = Int(SystemClock.unix.seconds) + 60
            let target = "/imgproxy/_/w:20/exp:\(expiry)/plain/" + bench.origin.url("/a.jpg")
            #expect(await bench.ask(target).status == 200)
            func age() -> Int? {
                bench.hit(target).flatMap { hit in
                    let head = String(decoding: hit.head, as: UTF8.self)
                    return head.firstRange(of: "max-age=").flatMap {
                        Int(head[$0.upperBound...].prefix { $0.isNumber })
                    }
                }
            }
            let first = try #require(age())
            bench.advance(20)
            #expect(try #require(age()) <= first - 19)
            bench.advance(41)
            #expect(bench.hit(target) == nil)
            #expect(await bench.ask(target).status == 404)
        }
    }

    @Test func `a base URL of the server needs a signature`() async throws {
        let scratch = ScratchFolder()
        scratch.write(HitTests.Bench.sample("night-tiny.jpg"), to: "in/a.jpg")
        try await HitTests.with { site, _ in
            site.baseURLs = ["photos": "file://" + scratch("in")]
            site.grammars["imgproxy"] = ["path": "/imgproxy", "unsigned": true]
        } _: { bench in
            for source in ["photos:a.jpg", "photos:/a.jpg", "photos:a.jpg%3F:%2F%2F", "photos:%2F%2Fa.jpg"] {
                let response = await bench.ask("/imgproxy/_/w:20/plain/" + source)
                #expect(response.status == 404 && Self.text(response).hasPrefix("Invalid source URL"), "\(source)")
            }
        }
    }

    @Test func `local sources are files in the folder`() async throws {
        let scratch = ScratchFolder()
        scratch.write(HitTests.Bench.sample("night-tiny.jpg"), to: "in/a b.jpg")
        scratch.write(HitTests.Bench.sample("night-tiny.jpg"), to: "out.jpg")
        try await Self.with(["localRoot": GrammarValue(.string(scratch("in")))]) { bench in
            // A Supabase client writes the path this way.
            #expect(await bench.ask("/imgproxy/_/rs:fit:20:20/plain/local:///a%20b.jpg@webp").status == 200)
            for name in [
                "../out.jpg", "%2e%2e/out.jpg", "a/../../out.jpg", "%252e%252e/out.jpg", "none.jpg", "a%00b.jpg",
            ] {
                let response = await bench.ask("/imgproxy/_/w:20/plain/local:///" + name)
                #expect(response.status == 404, "\(name)")
            }
        }
    }

    @Test(
        arguments: [
            (["keys": [["key": "x", "salt": "00"]]], "keys"), (["quality": 0], "quality"),
            (["presets": ["a": "x:1"]], "presets"),
            (["presets": ["a": 1]], "presets"), (["options": ["none"]], "options"),
            (["formatQuality": ["exe": 3]], "formatQuality"),
            (["autoFormats": ["png"]], "autoFormats"), (["localRoot": "relative"], "localRoot"),
            (["fallback": "x"], "fallback"),
            (["urlReplacements": [["pattern": "a"]]], "urlReplacements"),
            (["watermarkOpacity": "1"], "watermarkOpacity"),
        ] as [([String: GrammarValue], String)])
    func `a wrong member is an error that names it`(members: [String: GrammarValue], name: String) {
        var configuration = ServerConfiguration()
        let all = members.merging(["path": "/imgproxy"]) { own, _ in own }
        configuration.grammars["imgproxy"] = GrammarValue(
            .object(all.map { .init(name: $0.key, value: $0.value.json) }))
        let error = #expect(throws: InvalidSetting.self) { try configuration.mountedGrammars() }
        #expect(error?.message.hasPrefix("imgproxy: ") == true && error?.message.contains(name) == true)
    }
}
