import HTTPCaching
import PipelineSupport
import TestSupport
import Testing
import Variants

@testable import ImageServer
@testable import Pipeline

/// The URLs of imaginary's pipelines, which Nextcloud uses for its previews.
@Suite struct ImaginaryGrammarTests {
    /// Returns the recipe of a value of `operations`, or the error text.
    private static func recipe(_ operations: String, accepted: [ImageFormat] = []) -> String {
        do throws(Problem) { return try ImaginaryOperations(operations).recipe(accepted).description } catch {
            return error.detail ?? ""
        }
    }

    /// Returns the value of `operations` with one operation.
    private static func one(_ name: String, _ parameters: String) -> String {
        #"[{"operation":"\#(name)","params":{\#(parameters)}}]"#
    }

    @Test(arguments: [
        ("fit", #""width":300,"height":200"#, "thumbnail:300x200,original"),
        ("fit", #""width":"300","height":"200","type":"webp","quality":"70""#, "thumbnail:300x200,webp:70"),
        (
            "smartcrop", #""width":30,"height":20,"type":"png","quality":80"#,
            "thumbnail:30x20:fill:gravity=attention,png"
        ),
        ("crop", #""width":30,"height":20"#, "thumbnail:30x20:fill,original"),
        ("crop", #""width":30,"height":20,"gravity":"smart""#, "thumbnail:30x20:fill:gravity=attention,original"),
        ("crop", #""width":30,"height":20,"gravity":"north""#, "thumbnail:30x20:fill:gravity=north,original"),
        ("resize", #""width":30"#, "thumbnail:30x,original"),
        ("resize", #""height":30,"type":"jpeg""#, "thumbnail:x30,jpeg"),
        ("resize", #""width":30,"height":20"#, "thumbnail:30x20,original"),
        ("resize", #""width":30,"height":20,"nocrop":false"#, "thumbnail:30x20:fill,original"),
        ("resize", #""width":30,"height":20,"force":"true""#, "thumbnail:30x20:stretch:up,original"),
        ("enlarge", #""width":30,"height":20"#, "thumbnail:30x20:fill:up,original"),
        ("enlarge", #""width":30,"height":20,"nocrop":true"#, "thumbnail:30x20:up,original"),
        ("thumbnail", #""width":30"#, "thumbnail:30x,original"),
        ("extract", #""top":1,"left":2,"areawidth":3,"areaheight":4"#, "crop:3x4+2+1,original"),
        ("rotate", #""rotate":270"#, "rotate:270,original"), ("rotate", #""rotate":360"#, "original"),
        ("flip", "", "flip:v,original"), ("flop", #""norotation":"true""#, "orient:off,flip:h,original"),
        ("blur", #""sigma":2.5,"noprofile":true"#, "blur:2.5,original"),
        ("convert", #""type":"avif","stripmeta":"true""#, "avif:keep=none"),
        ("convert", #""type":"auto","quality":60"#, "webp:60"), ("autorotate", "", "original"),
        // Errors name the operation and the parameter.
        ("zoom", #""factor":2"#, "`zoom`: this operation is not supported"),
        ("watermark", #""text":"a""#, "`watermark`: this operation is not supported"),
        ("fit", #""width":300"#, "`fit`: `width` and `height` are required"),
        ("resize", "", "`resize`: `width` or `height` is required"),
        ("fit", #""width":0,"height":1"#, "`fit`: `width` and `height` are required"),
        ("fit", #""width":"1e3","height":1"#, "`fit`: `width` must be a whole number between 0 and 8192"),
        ("fit", #""width":[1],"height":1"#, "`fit`: `width` must be a text, a number, or true or false"),
        ("fit", #""width":1,"height":1,"embed":true"#, "`fit`: the parameter `embed` is not supported"),
        ("fit", #""width":1,"height":1,"quality":101"#, "`fit`: `quality` must be a whole number between 1 and 100"),
        ("fit", #""width":1,"height":1,"stripmeta":"yes""#, "`fit`: `stripmeta` must be true or false"),
        (
            "crop", #""width":1,"height":1,"gravity":"up""#,
            "`crop`: `gravity` must be centre, north, south, west, east or smart"
        ),
        ("rotate", #""rotate":45"#, "`rotate`: `rotate` must be a multiple of 90"),
        ("extract", #""areawidth":1,"areaheight":1"#, "`extract`: `top` is required"),
        ("blur", #""sigma":"nan""#, "`blur`: `sigma` must be a number between 0.3 and 100"),
        ("blur", #""sigma":"0x1p3""#, "`blur`: `sigma` must be a number between 0.3 and 100"),
        ("fit", #""width":9"#, "`fit`: `width` and `height` are required"),
        ("resize", #""width":9,"height":0"#, "thumbnail:9x,original"),
        ("convert", "", "`convert`: `type` is required"),
        (
            "convert", #""type":"svg""#,
            "`convert`: `type` must be one of auto, avif, gif, jpeg, jpg, jxl, png, tiff, webp"
        ),
    ])
    func `an operation becomes a step`(name: String, parameters: String, expected: String) {
        #expect(Self.recipe(Self.one(name, parameters), accepted: [.webp]) == expected)
    }

    @Test(arguments: [
        (
            #"[{"operation":"rotate","params":{"rotate":90}},{"operation":"fit","params":{"width":9,"height":8}},"#
                + #"{"operation":"convert","params":{"type":"webp"}}]"#, "rotate:90,thumbnail:9x8,webp"
        ),
        (
            #"[{"operation":"flip","params":{"norotation":true}},{"operation":"flop","params":{"norotation":true}}]"#,
            "orient:off,flip:v,flip:h,original"
        ),
        (
            #"[{"operation":"flip","params":{"norotation":true}},{"operation":"flop"}]"#,
            "`flop`: `norotation` must be as in the first operation"
        ),
        (
            #"[{"operation":"flip","params":{"norotation":true}},{"operation":"autorotate"}]"#,
            "`autorotate`: `norotation` must be as in the first operation"
        ),
        // An operation fails as a whole.
        (
            #"[{"operation":"flip","ignore_failure":true,"params":{"norotation":true,"a":1}},{"operation":"flop"}]"#,
            "flip:h,original"
        ),
        (#"[{"operation":"zoom","ignore_failure":true},{"operation":"flop"}]"#, "flip:h,original"),
        ("[]", "`operations` must be a list of 1 to 10 operations"),
        ("{}", "`operations` must be a list of 1 to 10 operations"),
        ("[1]", "each member of `operations` must be an object of `operation`, `params` and `ignore_failure`"),
        (
            #"[{"operation":"flip","parms":{}}]"#,
            "each member of `operations` must be an object of `operation`, `params` and `ignore_failure`"
        ),
        (#"[{"operation":"flip","params":[]}]"#, "`flip`: `params` must be an object"),
        ("[{", "`operations` is not valid JSON: expected a name in quotes at byte 3"),
    ])
    func `operations become a recipe`(operations: String, expected: String) {
        #expect(Self.recipe(operations) == expected)
    }

    @Test func `at most ten operations are allowed`() {
        let flip = #"{"operation":"flip"}"#
        func list(_ count: Int) -> String { "[" + Array(repeating: flip, count: count).joined(separator: ",") + "]" }
        #expect(Self.recipe(list(10)).hasPrefix("flip:v,flip:v"))
        #expect(Self.recipe(list(11)) == "`operations` must be a list of 1 to 10 operations")
    }

    // MARK: Requests

    private static let operations =
        "operations=%5B%7B%22operation%22%3A%22fit%22%2C%22params%22%3A%7B%22width%22%3A20%2C%22height%22%3A20%7D%7D%5D"

    private static func with(
        _ members: GrammarValue,
        _ change: (inout ServerConfiguration, inout PipelineConfiguration) -> Void = { _, _ in },
        _ body: (HitTests.Bench) async throws -> Void
    ) async throws {
        try await HitTests.with(
            {
                $0.grammars["imaginary"] = members
                $0.uploads = true
                $0.signature.allowUnsigned = false
                change(&$0, &$1)
            }, body)
    }

    private static func post(
        _ bench: HitTests.Bench, _ target: String, _ fields: [HeaderField] = [], body: [UInt8]
    ) async -> ServerResponse {
        var request = ServerRequest(method: "POST", target: target, fields: [HeaderField("Host", "a")] + fields)
        request.body = body
        return await bench.site.respond(to: request)
    }

    private static func message(_ response: ServerResponse) -> String? {
        guard case .object(let members)? = try? JSONParser.parse(Array(response.body)),
            case .string(let text)? = members.first(where: { $0.name == "message" })?.value
        else { return nil }
        return text
    }

    @Test func `the key is required, and is checked before the body is read`() async throws {
        let picture = HitTests.Bench.sample("night-tiny.jpg")
        try await Self.with(["path": "/imaginary", "key": "secret"]) { bench in
            let target = "/imaginary/pipeline?" + Self.operations
            let good = await Self.post(bench, target + "&key=secret", body: picture)
            #expect(good.status == 200 && good["image-width"] == "20" && good["image-height"] != nil)
            let field = await Self.post(bench, target, [HeaderField("API-Key", "secret")], body: picture)
            #expect(field.status == 200 && field["cache-status"]?.contains("detail=memory") == true)
            for wrong in ["", "&key=", "&key=secres", "&key=secret&key=secret"] {
                let answer = await Self.post(bench, target + wrong, body: picture)
                #expect(answer.status == 403 && answer["content-type"] == "application/json")
                #expect(Self.message(answer)?.contains("API key") == true)
                let request = ServerRequest(
                    method: "POST", target: target + wrong, fields: [HeaderField("Content-Length", "9000000")])
                guard case .refused = bench.site.intake(of: request) else { Issue.record("\(wrong)"); continue }
            }
            let request = ServerRequest(target: target + "&key=secret", fields: [])
            let entry = RequestLog.Entry(client: "::1", request: request, .init(good), milliseconds: 1)
            #expect(RequestLog.line(entry).hasPrefix("::1 GET /imaginary/pipeline 200 "))
        }
        try await Self.with(["path": "/imaginary", "unsigned": true]) { bench in
            let answer = await Self.post(bench, "/imaginary/pipeline?key=&" + Self.operations, body: picture)
            #expect(answer.status == 200)
        }
        try await Self.with(["path": "/imaginary"]) { bench in
            let answer = await Self.post(bench, "/imaginary/pipeline?" + Self.operations, body: picture)
            #expect(answer.status == 403)
        }
        var settings = ServerConfiguration()
        settings.grammars["imaginary"] = ["path": "/a", "unsigned": true, "key": "a"]
        #expect(throws: InvalidSetting.self) { try settings.mountedGrammars() }
    }

    @Test func `a request that cannot be expressed is a 400 in JSON that names it`() async throws {
        try await Self.with(["path": "/imaginary", "unsigned": true]) { bench in
            for (target, status, text) in [
                ("/imaginary/resize?width=20", 404, "the path must end in /imaginary/pipeline"),
                ("/imaginary/pipeline", 400, "operations"), ("/imaginary/pipeline?operations=%5B%5D", 400, "1 to 10"),
                ("/imaginary/pipeline?sign=1&" + Self.operations, 400, "`sign`"),
                ("/imaginary/pipeline?url=https://a.test&" + Self.operations, 400, "`url`"),
                (
                    "/imaginary/pipeline?operations=" + PercentText.segment(Self.one("zoom", #""factor":2"#)), 400,
                    "`zoom`: this operation is not supported"
                ),
            ] {
                let answer = await Self.post(bench, target, body: HitTests.Bench.sample("night-tiny.jpg"))
                #expect(answer.status == status && Self.message(answer)?.contains(text) == true, "\(target)")
            }
            let answer = await Self.post(bench, "/imaginary/pipeline?" + Self.operations, body: [1, 2, 3])
            #expect(answer.status == 415 && Self.message(answer) != nil)
        }
    }

    @Test func `GET takes the source from url, and shares the variant of /variant`() async throws {
        try await Self.with(
            ["path": "/imaginary", "unsigned": true],
            {
                $0.allowUnsigned = true; _ = $1
            }
        ) { bench in
            let target = "/imaginary/pipeline?url=\(bench.source)&" + Self.operations
            let first = await bench.ask(target)
            #expect(first.status == 200 && first["image-width"] == "20" && first["etag"] != nil)
            #expect(bench.hit(target)?.body == Array(first.body))
            let plain = await bench.ask("/variant/unsigned/thumbnail:20,original/" + bench.source)
            #expect(plain.body == first.body && bench.origin.requests.count == 1)
            #expect(await bench.ask("/imaginary/pipeline?" + Self.operations).status == 400)
            #expect(await bench.ask("/imaginary/pipeline?url=file:///etc/passwd&" + Self.operations).status == 400)
        }
    }

    @Test func `the key in a field stays here, and makes the response private`() async throws {
        try await Self.with(["path": "/imaginary", "key": "secret"]) { site, _ in
            site.forwardedFields = ["*"]
        } _: { bench in
            let target = "/imaginary/pipeline?url=\(bench.source)&" + Self.operations
            let byField = await bench.ask(target, [HeaderField("API-Key", "secret"), HeaderField("X-Other", "1")])
            #expect(byField.status == 200 && byField["cache-control"]?.hasPrefix("private, ") == true)
            let byQuery = await bench.ask(target + "&key=secret")
            #expect(byQuery.status == 200 && byQuery["cache-control"]?.contains("private") == false)
            let sent = try #require(bench.origin.requests.first)
            #expect(sent["x-other"] == "1" && sent["api-key"] == nil)
        }
    }

    @Test func `sizes of the server apply to operations`() async throws {
        for (isStrict, status) in [(false, 200), (true, 400)] {
            try await Self.with(["path": "/imaginary", "unsigned": true]) { site, _ in
                (site.recipes.sizes, site.recipes.refusesOtherSizes) = ([40, 80], isStrict)
            } _: { bench in
                let answer = await bench.ask("/imaginary/pipeline?url=\(bench.source)&" + Self.operations)
                #expect(answer.status == status)
                #expect(isStrict || answer["image-width"] == "40")
            }
        }
    }

    // MARK: Forms

    private static func form(_ parts: [(header: String, body: [UInt8])], end: String = "--\r\n") -> [UInt8] {
        parts.flatMap { Array("--a b\r\n\($0.header)\r\n\r\n".utf8) + $0.body + Array("\r\n".utf8) }
            + Array("--a b\(end)".utf8)
    }

    private static let header =
        "Content-Disposition: form-data; name=\"file\"; filename=\"a;b.jpg\"\r\nContent-Type: image/jpeg"

    @Test func `a form with one part is a picture`() async throws {
        try await Self.with(
            ["path": "/imaginary", "unsigned": true],
            {
                $1.rendering.limits.bytes = 4_000; _ = $0
            }
        ) { bench in
            let picture = HitTests.Bench.sample("night-tiny.jpg")
            let type = [HeaderField("Content-Type", "multipart/form-data; boundary=\"a b\"")]
            let target = "/imaginary/pipeline?" + Self.operations
            let plain = await Self.post(bench, target, body: picture)
            for (path, header) in [
                (target, Self.header), (target, "content-disposition:form-data;name=file"),
                (target + "&field=image", Self.header.replacing("\"file\"", with: "\"image\"")),
            ] {
                let answer = await Self.post(bench, path, type, body: Self.form([(header, picture)]))
                #expect(answer.status == 200 && answer.body == plain.body, "\(header) \(Self.message(answer) ?? "")")
                #expect(answer["cache-status"]?.contains("detail=memory") == true)
            }
            let whole = Self.form([(Self.header, picture)])
            for body in [
                Self.form([(";", [1])]), Self.form([(" ; ;", [1])]), [], picture, Array(whole.dropLast(9)), whole + [0],
                Array(whole.dropFirst()),
                Self.form([(Self.header, picture)], end: "\r\n"), Self.form([]),
                Self.form([(Self.header, [1]), (Self.header, [1])]),
                Self.form([(Self.header.replacing("file", with: "image"), [1])]),
                Self.form([(Self.header + "\r\nX: " + String(repeating: "a", count: 5_000), [])]),
            ] {
                let answer = await Self.post(bench, target, type, body: body)
                #expect([400, 413].contains(answer.status), "\(answer.status) \(body.count)")
            }
            for value in ["multipart/form-data", "multipart/form-data; boundary=", "multipart/x; boundary=a\"b"] {
                let answer = await Self.post(bench, target, [HeaderField("Content-Type", value)], body: whole)
                #expect(answer.status == 400 && Self.message(answer)?.contains("`boundary`") == true, "\(value)")
            }
            #expect(bench.site.uploads.bytes == 0)
        }
    }
}
