import HTTPCaching
import Pipeline
import TestSupport
import Testing
import Variants

@testable import ImageServer

@Suite struct AnswerTests {
    private func original(
        _ fields: [HeaderField], status: Int = 200, age: Int? = nil, isPicture: Bool = false, passesAll: Bool = false
    ) -> ServerResponse {
        var response = OriginalResponse(
            status: status, fields: fields, body: Array("hello".utf8), age: age.map { .seconds($0) },
            handling: CacheHandling(isHit: age != nil), responseTime: 784_111_777)
        response.isPicture = isPicture
        return OriginalAnswer.response(response, passesAll: passesAll)
    }

    @Test func `an original keeps its fields, repeated ones and their order too`() {
        let fields = [
            HeaderField("date", "Sun, 06 Nov 1994 08:49:37 GMT"), HeaderField("Link", "a"),
            HeaderField("Content-Type", "image/png"), HeaderField("X-A", "1"), HeaderField("Link", "b"),
            HeaderField("x-a", "2"),
        ]
        let answer = original(fields, passesAll: true)
        let added = [
            OriginalAnswer.sandbox, HeaderField("X-Content-Type-Options", "nosniff"),
            HeaderField("Cache-Status", "pipeline"), HeaderField("Via", "1.1 pipeline"),
        ]
        #expect(answer.fields == fields + added)
        #expect(answer.body.elementsEqual("hello".utf8))
    }

    @Test(
        arguments: [
            ("image/png", false, true), ("IMAGE/JPEG; a=b", false, true), ("image/x, image/png", true, true),
            ("image/svg+xml", true, false), ("image/SVG+XML;charset=utf-8", true, false), ("image/xml", true, false),
            ("image/svg (xml)", true, false), ("text/html", true, false), ("image/png, text/html", true, false),
            ("text/html, image/png", true, false), ("application/octet-stream", true, false), ("image/", true, false),
            (";", false, false), ("image/png;a=\"b, text/html", true, false), ("", true, true), ("", false, false),
            (nil, true, true), (nil, false, false),
        ] as [(String?, Bool, Bool)])
    func `whatever its fields say, an original is shown if it is a raster picture and else saved`(
        _ type: String?, _ isPicture: Bool, _ isShown: Bool
    ) {
        let fields = [
            HeaderField("content-security-policy", "default-src *"), HeaderField("x-content-type-options", "none"),
            HeaderField("Content-Disposition", "inline"),
        ]
        let typed = fields + (type.map { [HeaderField("Content-Type", $0)] } ?? [])
        let answer = original(typed, isPicture: isPicture)
        #expect(answer.fields.values(of: "content-security-policy") == ["default-src 'none'; sandbox"])
        #expect(answer.fields.values(of: "x-content-type-options") == ["nosniff"])
        #expect(answer.fields.values(of: "content-disposition") == [isShown ? "inline" : "attachment"])
        let named = original([HeaderField("Content-Disposition", "Attachment; filename=a.png")])
        #expect(named.fields.values(of: "content-disposition") == ["Attachment; filename=a.png"])
        // A 304 must not change how the client shows its copy.
        #expect(original([HeaderField("Content-Disposition", "inline")], status: 304)["content-disposition"] == nil)
    }

    @Test func `where everything passes through, so does the origin's policy, and documents are saved all the same`() {
        let fields = [
            HeaderField("Content-Security-Policy", "default-src *"), HeaderField("Set-Cookie", "a=1"),
            HeaderField("Content-Disposition", "inline"), HeaderField("X-Content-Type-Options", "none"),
        ]
        let answer = original(fields, passesAll: true)
        #expect(answer.fields.values(of: "content-security-policy") == ["default-src *"])
        #expect(answer["set-cookie"] == "a=1" && answer["x-content-type-options"] == "nosniff")
        #expect(answer.fields.values(of: "content-disposition") == ["attachment"])
        #expect(original([], passesAll: true)["content-security-policy"] == "default-src 'none'; sandbox")
    }

    @Test(arguments: [
        "Set-Cookie", "Clear-Site-Data", "Strict-Transport-Security", "Alt-Svc", "Service-Worker-Allowed", "Refresh",
        "NEL",
        "Report-To", "Reporting-Endpoints", "WWW-Authenticate", "Access-Control-Allow-Origin", "Timing-Allow-Origin",
        "X-Accel-Redirect", "x-accel-expires", "X-Sendfile", "Surrogate-Control", "Location",
        "Content-Security-Policy-Report-Only",
    ])
    func `what is about this server's own host is not the origin's to say`(_ name: String) {
        #expect(original([HeaderField(name, "a")])[name] == nil)
        #expect(original([HeaderField(name, "a")], passesAll: true)[name] == "a")
    }

    @Test(arguments: [
        "Speculation-Rules", "Observe-Browsing-Topics", "Cache-Tag", "Link", "X-Amz-Meta-Owner", "Server", "X-Unknown",
        "Permissions-Policy", "SourceMap", "No-Vary-Search", "Activate-Storage-Access",
    ])
    func `a field that is not about the picture or its caching stays behind`(_ name: String) {
        #expect(original([HeaderField(name, "a")])[name] == nil)
        #expect(original([HeaderField(name, "a")], passesAll: true)[name] == "a")
    }

    @Test(arguments: [
        "Accept-Ranges", "Age", "Cache-Control", "CDN-Cache-Control", "Content-Encoding", "Content-Language",
        "Content-Location", "Content-Range", "Content-Type", "ETag", "Expires", "Last-Modified", "Retry-After", "Vary",
        "Allow", "Pragma", "Warning",
    ])
    func `a field about the picture or its caching passes`(_ name: String) {
        #expect(original([HeaderField(name, "a")])[name] == "a")
    }

    @Test(arguments: [
        ("inline", "inline"), ("inline; filename=\"a.JPG\"", "inline; filename=\"a.JPG\""),
        ("attachment; filename=a.png; filename*=UTF-8''%C3%A4.png", nil), ("inline; filename=x.html", ""),
        ("attachment; filename=\"x.html\"", ""), ("inline; filename=\"x.html;.png\"", ""),
        ("attachment; filename=a.png; filename*=UTF-8''x%2Ehtml", ""), ("inline; FileName=\"a.exe\"", ""),
        ("inline; filename*0=\"x.h\"; filename*1=\"tml.png\"", ""), ("attachment; filename=\"a.svg\"", ""),
        ("inline; filename=\"x.html\\\".png\"", ""), ("inline; filename=\"a.png\"; filename=\"..\\b.bat\"", ""),
    ])
    func `a picture is saved under a name of pictures`(_ given: String, _ expected: String?) {
        let fields = [HeaderField("Content-Type", "image/png"), HeaderField("Content-Disposition", given)]
        let kept = original(fields).fields.values(of: "content-disposition")
        #expect(kept == (expected == "" ? [] : [expected ?? given]))
        let document = original([HeaderField("Content-Type", "text/html"), HeaderField("Content-Disposition", given)])
        let isKept = given.hasPrefix("attachment") && expected != ""
        #expect(document.fields.values(of: "content-disposition") == [isKept ? given : "attachment"])
    }

    @Test(arguments: [(201, true), (302, true), (308, true), (200, false), (404, false)])
    func `Location redirects, or names what was made (RFC 9110 §10.2.2)`(_ status: Int, _ isKept: Bool) {
        #expect((original([HeaderField("Location", "/a")], status: status)["location"] != nil) == isKept)
    }

    /// Fields that proxies and accelerators obey. A name that ends in `-` is a prefix.
    private static let obeyedByProxies = [
        "x-accel-", "x-sendfile", "x-lighttpd-send-file", "x-litespeed-location", "x-reproxy-", "surrogate-control",
        "edge-control",
    ]

    @Test func `the examples of proxies drop what proxies obey`() throws {
        for file in ["nginx.conf", "nginx-fleet.conf", "haproxy.cfg", "Caddyfile"] {
            let text = String(
                decoding: try #require(FuzzPlan.contents(FuzzPlan.root + "/deploy/" + file)), as: UTF8.self)
            for name in Self.obeyedByProxies {
                let place = file == "Caddyfile" ? "header_down -" : " "
                #expect(text.lowercased().contains(place + name), "\(file): \(name)")
            }
        }
    }

    @Test func `Age replaces the stored one only where the response was stored before`() {
        let fields = [HeaderField("Age", "30"), HeaderField("Date", "x")]
        #expect(original(fields)["age"] == "30")
        let stored = original(fields, age: 35)
        #expect(stored.fields.filter { $0.name == "Age" } == [HeaderField("Age", "35")])
    }

    @Test func `Date is added only where the origin sent none, and Content-Length is left to the framing`() {
        let answer = original([HeaderField("Content-Length", "5"), HeaderField("Via", "1.0 x")])
        #expect(answer["date"] == "Sun, 06 Nov 1994 08:49:37 GMT")
        #expect(answer["content-length"] == nil)
        #expect(answer.fields.filter { $0.name == "Via" }.map(\.value) == ["1.0 x", "1.1 pipeline"])
    }

    @Test func `a head is framed by us, and no value can end it early`() {
        let response = ServerResponse(status: 999, fields: [HeaderField("X", "a\r\nb: c\u{E9}€")], body: [1, 2, 3])
        let expected: [UInt8] =
            Array("HTTP/1.1 999 \r\nX: a  b: c".utf8) + [0xE9] + Array("€\r\nContent-Length: 3\r\n\r\n".utf8)
        #expect(response.headBytes(keepsAlive: true) == expected)
    }

    @Test(arguments: [(204, false), (304, false), (200, true), (404, true), (205, true), (599, true)])
    func `only statuses with a body have a length (RFC 9110 §8.6)`(_ status: Int, _ hasLength: Bool) {
        let text = String(decoding: ServerResponse(status: status).headBytes(keepsAlive: false), as: UTF8.self)
        #expect(text.contains("Content-Length: 0\r\n") == hasLength)
        #expect(text.hasSuffix("Connection: close\r\n\r\n"))
    }

    @Test func `kinds of problems have names and types of their own`() {
        let kinds = Problem.Kind.all
        #expect(Set(kinds.map(\.name)).count == kinds.count)
        for kind in kinds {
            let response = Problem(kind, "what \"happened\"").response(variesByAccept: true, now: 0)
            let json =
                #"{"type":"\#(kind.type)","title":"\#(kind.title)","status":\#(kind.status),"#
                + #""detail":"what \"happened\""}"# + "\n"
            #expect(response.status == kind.status && String(decoding: response.body, as: UTF8.self) == json)
            #expect(response["content-type"] == "application/problem+json" && response["cache-control"] == "no-store")
            #expect(response["vary"] == "Accept")
        }
    }

    @Test func `every kind of problem is documented with its status`() throws {
        let path = FuzzPlan.root + "/docs/server.md"
        let text = String(decoding: try #require(FuzzPlan.contents(path)), as: UTF8.self)
        for kind in Problem.Kind.all {
            let row = text.split(separator: "\n").first { $0.contains("`\(kind.name)`") && $0.hasPrefix("| ") }
            #expect(row?.contains(String(kind.status)) == true, "\(kind.name)")
        }
    }

    @Test(arguments: [
        (PipelineError.Code.invalidSource, 400), (.sourceRefused, 403), (.notFound, 404), (.overLimit, 413),
        (.notAnImage, 415), (.unsupportedFormat, 415), (.undecodable, 422), (.renderFailed, 422),
        (.notAvailable, 501), (.fetchFailed, 502), (.fetchTimedOut, 504), (.renderDeadline, 504), (.notCached, 504),
        (.libraryUnavailable, 500), (.cacheUnavailable, 500), (.init(rawValue: "somethingNew"), 500),
        (.maskUnavailable, 400),
    ])
    func `errors of the pipeline become statuses`(_ code: PipelineError.Code, _ status: Int) {
        #expect(Problem(PipelineError(code, "…")).kind.status == status)
    }

    @Test(arguments: PipelineError.Code.all) func `each error of the pipeline has the status of the table`(
        code: PipelineError.Code
    ) {
        #expect(Problem(PipelineError(code, "…")).kind.status == code.status)
    }

    @Test func `what is inside stays inside`() {
        for code in [PipelineError.Code.libraryUnavailable, .sourceRefused, .maskUnavailable, .fetchFailed] {
            let problem = Problem(PipelineError(code, "10.0.0.7 /srv/masks"))
            #expect(problem.detail == nil && problem.note == problem.kind.name + ": 10.0.0.7 /srv/masks")
            #expect(!String(decoding: problem.response(now: 0).body, as: UTF8.self).contains("10.0.0.7"))
        }
    }

    @Test func `Vary names what the answer depended on`() {
        let fields = [HeaderField("Vary", "Accept-Language, Cookie"), HeaderField("vary", "accept")]
        #expect(
            VariantAnswer.varying(original: fields, forwarded: ForwardedFields([]), isNegotiated: true) == ["Accept"])
        #expect(
            VariantAnswer.varying(original: fields, forwarded: ForwardedFields(["cookie"]), isNegotiated: true)
                == ["Accept", "Cookie"])
        #expect(VariantAnswer.varying(original: fields, forwarded: ForwardedFields([]), isNegotiated: false).isEmpty)
    }

    @Test func `a line of the log has no credentials and stays one line`() {
        let target = "/variant/unsigned/png%0A/http%3A%2F%2Fuser%3Asecret%40h%2Fa"
        var picture = ServerResponse(status: 200, body: Array("picture".utf8))
        picture.route = .picture(ImageRoute.variant)
        let line = RequestLog.line(
            .init(client: "::1", request: ServerRequest(target: target), .init(picture), milliseconds: 1.25))
        #expect(line == "::1 GET /variant/png%0A/http://h/a 200 7 1.25ms")
        let broken = RequestLog.line(
            .init(
                client: "::1", request: ServerRequest(target: "/original/x/http://u:secret@h?w=1"),
                .init(ServerResponse(status: 400, note: "invalid-source")), milliseconds: 0))
        #expect(broken == "::1 GET /original/… 400 0 0ms invalid-source")
        for (source, shown) in [
            ("photos%3Aa%2Fb%402x.jpg%3Fv=1", "photos:a/b@2x.jpg?v=1"), ("sample:dusk", "sample:dusk"),
            ("o:a%0Ab\"%20c", "o:a%0Ab%22%20c"), ("ftp:%2F%2Fu:secret@h", "…"), ("http:%2Fu:secret@h", "…"),
            ("data:secret", "…"), ("-:a", "…"), ("%2F%2Fu:secret@h", "…"), ("a%2Fb:c@d", "…"),
            // Below the default base.
            ("plain", "plain"), ("cats%2F1@2x%20b.jpg", "cats/1@2x%20b.jpg"), ("cats/1.jpg", "cats/1.jpg"),
        ] { #expect(RequestLog.shown("/info/unsigned/" + source, .picture(ImageRoute.info)) == "/info/" + shown) }
    }
}
