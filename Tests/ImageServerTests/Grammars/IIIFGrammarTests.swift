import HTTPCaching
import PipelineSupport
import Synchronization
import TestSupport
import Testing
import Variants

@testable import ImageServer
@testable import Pipeline

/// The URLs and responses of the IIIF Image API.
@Suite struct IIIFGrammarTests {
    /// Calls `body` with a site that has the grammar at `/iiif`, and at which the identifier `a` is a picture.
    private static func with(
        _ members: [String: GrammarValue] = [:], picture: String = "meadow-small.jpg",
        _ change: (inout ServerConfiguration, inout PipelineConfiguration) -> Void = { _, _ in },
        _ body: (HitTests.Bench) async throws -> Void
    ) async throws {
        let origin = try LoopbackOrigin { request in
            guard !request.target.contains("missing") else { return .response(404, [:], body: []) }
            return .response(
                200, ["Content-Type": "image/jpeg", "Cache-Control": "max-age=60"],
                body: HitTests.Bench.sample(picture))
        }
        defer { origin.stop() }
        let map = GrammarValue(
            .object(
                ["a": "/a.jpg", "*": "/photos/*.tif", "ark:/1/*": "/arks/*?v=2"].map {
                    .init(name: $0.key, value: .string(origin.url($0.value)))
                }))
        let all = members.merging(["path": "/iiif", "identifiers": map]) { own, _ in own }
        try await HitTests.with {
            $0.allowUnsigned = false
            $0.grammars["iiif"] = GrammarValue(.object(all.map { .init(name: $0.key, value: $0.value.json) }))
            change(&$0, &$1)
        } _: { bench in
            Self.origins.withLock { $0[bench.origin.url("")] = origin }
            try await body(bench)
        }
    }

    private static let origins = Mutex<[String: LoopbackOrigin]>([:])

    /// The targets that the origin of the identifiers has received.
    private static func fetched(_ bench: HitTests.Bench) -> [String] {
        origins.withLock { $0[bench.origin.url("")] }?.requests.map(\.target) ?? []
    }

    private static func text(_ response: ServerResponse) -> String { String(decoding: response.body, as: UTF8.self) }

    private static func json(_ response: ServerResponse) throws -> [String: JSONValue] {
        guard case .object(let members) = try JSONParser.parse(Array(response.body)) else { return [:] }
        return Dictionary(uniqueKeysWithValues: members.map { ($0.name, $0.value) })
    }

    // MARK: info.json

    @Test func `info json of version 3 has exactly these members`() async throws {
        try await Self.with(["tile": 256, "info": ["rights": "http://example.org/cc0"]]) { bench in
            let response = await bench.ask("/iiif/3/a/info.json")
            #expect(response.status == 200)
            #expect(
                Self.text(response) == """
                    {"@context":"http://iiif.io/api/image/3/context.json","id":"http://a/iiif/3/a",\
                    "protocol":"http://iiif.io/api/image","width":640,"height":480,\
                    "sizes":[{"width":160,"height":120},{"width":320,"height":240},{"width":640,"height":480}],\
                    "tiles":[{"width":256,"height":256,"scaleFactors":[1,2,4]}],"type":"ImageService3",\
                    "profile":"level2","preferredFormats":["webp","jpg"],\
                    "extraFormats":["webp","gif","tif","avif"],"extraQualities":["color","gray","bitonal"],\
                    "extraFeatures":["canonicalLinkHeader","profileLinkHeader","mirroring","rotationArbitrary",\
                    "sizeUpscaling"],"rights":"http://example.org/cc0"}

                    """)
            #expect(response["content-type"] == "application/json" && response["vary"] == "Accept")
            #expect(
                response["link"] == "<http://iiif.io/api/image/3/context.json>;"
                    + "rel=\"http://www.w3.org/ns/json-ld#context\";type=\"application/ld+json\"")
            let picture = await bench.ask("/iiif/3/a/full/10,/0/default.jpg")
            // A second may pass between the two.
            for control in [response["cache-control"], picture["cache-control"]] {
                #expect(control?.hasPrefix("max-age=") == true && control?.contains(",") == false)
            }
            #expect(response["access-control-allow-origin"] == "*")
            let linked = await bench.ask(
                "/iiif/3/a/info.json", [HeaderField("Accept", "text/html, application/ld+json;q=0.5")])
            #expect(
                linked["content-type"]
                    == "application/ld+json;profile=\"http://iiif.io/api/image/3/context.json\"")
            #expect(linked["link"] == nil && linked.body == response.body && linked["etag"] != response["etag"])
            let tag = HeaderField("If-None-Match", try #require(response["etag"]))
            let again = await bench.ask("/iiif/3/a/info.json", [tag])
            #expect(again.status == 304 && again.body.isEmpty && again["access-control-allow-origin"] == "*")
            #expect(Self.fetched(bench) == ["/a.jpg"])
        }
    }

    @Test func `info json of version 2 has exactly these members`() async throws {
        try await Self.with(["maxWidth": 500, "maxArea": 100_000]) { bench in
            #expect(
                Self.text(await bench.ask("/iiif/2/a/info.json")) == """
                    {"@context":"http://iiif.io/api/image/2/context.json","@id":"http://a/iiif/2/a",\
                    "protocol":"http://iiif.io/api/image","width":640,"height":480,\
                    "sizes":[{"width":160,"height":120},{"width":320,"height":240}],"tiles":[{"width":250,"height":250,"scaleFactors":[1,2,4]}],\
                    "profile":["http://iiif.io/api/image/2/level2.json",{"formats":["gif","tif","webp"],\
                    "qualities":["color","gray","bitonal"],"supports":["canonicalLinkHeader","profileLinkHeader",\
                    "mirroring","rotationArbitrary","sizeAboveFull","regionSquare"],"maxWidth":500,"maxArea":100000}]}

                    """)
            let picture = await bench.ask("/iiif/2/a/full/full/0/default.png")
            #expect(picture.picture?.size == "365x273", "the largest size within the area")
        }
    }

    @Test func `info json has the size after the orientation is applied, and the limit of the server`() async throws {
        try await Self.with(picture: "exif-orientation-6.jpg") {
            $1.rendering.limits.outputEdge = 700
        } _: { bench in
            let info = try Self.json(await bench.ask("/iiif/3/a/info.json"))
            #expect(info["width"] == .int(600) && info["height"] == .int(800) && info["maxWidth"] == .int(700))
            #expect(info["maxHeight"] == nil && info["maxArea"] == nil)
            let picture = await bench.ask("/iiif/3/a/full/max/0/default.png")
            #expect(picture.picture?.size == "525x700")
            let corner = await bench.ask("/iiif/3/a/590,0,100,20/max/0/default.png")
            #expect(corner.picture?.size == "10x20")
        }
    }

    @Test(
        arguments: [
            (["baseURL": "https://img.example.org/images/"], [], false, "https://img.example.org/images/3/a"),
            ([:], [], false, "http://a/m/iiif/3/a"), ([:], [], true, "https://a/m/iiif/3/a"),
        ] as [([String: GrammarValue], [HeaderField], Bool, String)])
    func `the URL of the image has the host and the scheme that the client used`(
        members: [String: GrammarValue], fields: [HeaderField], isSecure: Bool, service: String
    ) async throws {
        try await Self.with(members) { site, _ in
            site.mountPoint = "/m"
        } _: { bench in
            var request = ServerRequest(target: "/iiif/3/a/info.json", fields: [HeaderField("Host", "a")] + fields)
            request.isSecure = isSecure
            let info = try Self.json(await bench.site.respond(to: request))
            #expect(info["id"] == .string(service))
            request.target = "/iiif/3/a"
            let redirect = await bench.site.respond(to: request)
            #expect(redirect.status == 303 && redirect["location"] == service + "/info.json")
        }
    }

    @Test func `without a host there is no URL of the image`() async throws {
        try await Self.with { bench in
            for host in ["", "a b", "a\"b"] {
                let request = ServerRequest(target: "/iiif/3/a/info.json", fields: [HeaderField("Host", host)])
                #expect(await bench.site.respond(to: request).status == 400)
            }
        }
    }

    // MARK: Pictures

    @Test func `a picture links to its canonical URL, and its hit has the same fields for each host`() async throws {
        try await Self.with { bench in
            let target = "/iiif/3/%61/pct:0,0,50,50/!100,100/!90.0/gray.png"
            let first = await bench.ask(target, [HeaderField("Origin", "https://viewer.example")])
            #expect(first.status == 200 && first["content-type"] == "image/png" && first["vary"] == nil)
            #expect(first.picture?.size == "75x100" && first["access-control-allow-origin"] == "*")
            let link =
                "<http://a/iiif/3/%61/0,0,320,240/100,75/!90/gray.png>;rel=\"canonical\","
                + "<http://iiif.io/api/image/3/level2.json>;rel=\"profile\""
            #expect(first["link"] == link)
            for fields in [[], [HeaderField("Origin", "https://other.example"), HeaderField("Accept", "image/avif")]] {
                let hit = try #require(bench.hit(target, fields))
                let head = String(decoding: hit.head, as: UTF8.self)
                #expect(hit.body == Array(first.body) && head.contains("Link: \(link)\r\n"))
                #expect(head.contains("Access-Control-Allow-Origin: *\r\n") && !head.contains("Vary"))
            }
            let tag = HeaderField("If-None-Match", try #require(first["etag"]))
            let unchanged = try #require(bench.hit(target, [tag]))
            #expect(unchanged.status == 304 && !unchanged.head.isEmpty)
            // A client cannot determine the URLs that clients of another host receive.
            #expect(bench.site.hit(method: "GET", target: target, fields: [HeaderField("Host", "b")]) == nil)
            #expect(
                bench.site.hit(method: "GET", target: target, fields: [HeaderField("Host", "a")], isSecure: true)
                    == nil)
            #expect(Self.fetched(bench) == ["/a.jpg"])
        }
    }

    @Test func `requests for the same picture share one variant`() async throws {
        try await Self.with { bench in
            let first = await bench.ask("/iiif/3/a/full/320,/0/default.png")
            for target in [
                "/iiif/3/a/full/320,240/0/color.png", "/iiif/2/a/0,0,640,480/pct:50/360/default.png",
                "/iiif/2/a/pct:0,0,100,100/%21320%2C320/0/default.png",
            ] {
                let response = await bench.ask(target)
                #expect(response.status == 200 && response.body == first.body, "\(target)")
                #expect(response["cache-status"]?.contains("detail=memory") == true, "\(target)")
            }
        }
    }

    @Test func `bitonal is black and white, and the corners of a turned picture are transparent or white`() async throws
    {
        try await Self.with(picture: "sky-16bit.png") { bench in
            func pixels(_ target: String) async throws -> PixelBuffer {
                let response = await bench.ask("/iiif/3/a/" + target)
                #expect(response.status == 200)
                return try await bench.pipeline.pixels(for: ImageRequest(.bytes(Array(response.body), name: "")))
            }
            let bitonal = try await pixels("full/max/0/bitonal.png")
            #expect(bitonal.pixels.allSatisfy { $0 == 0 || $0 == 255 })
            #expect(Set(bitonal.pixels).count == 2)
            let turned = try await pixels("full/max/45/default.png")
            #expect(turned.pixels.prefix(4).last == 0 && turned.width == 354)
            let white = try await pixels("full/max/45/default.jpg")
            #expect(white.pixels.prefix(3).allSatisfy { $0 > 250 })
        }
    }

    @Test func `the tiles of a picture make up the picture, with one fetch`() async throws {
        try await Self.with(["tile": 128]) { bench in
            let info = try Self.json(await bench.ask("/iiif/3/a/info.json"))
            guard case .list(let tiles)? = info["tiles"], case .object(let tile)? = tiles.first,
                case .list(let factors)? = tile.first(where: { $0.name == "scaleFactors" })?.value
            else { return #expect(Bool(false), "no tiles") }
            #expect(factors == [.int(1), .int(2), .int(4), .int(8)])
            func pixels(_ target: String) async throws -> PixelBuffer {
                let response = await bench.ask("/iiif/3/a/" + target)
                #expect(response.status == 200, "\(target)")
                return try await bench.pipeline.pixels(for: ImageRequest(.bytes(Array(response.body), name: "")))
            }
            for case .int(let factor) in factors {
                let whole = try await pixels("full/\(640 / factor),\(480 / factor)/0/default.png")
                var differences: [Int] = []
                for top in stride(from: 0, to: 480, by: 128 * factor) {
                    for left in stride(from: 0, to: 640, by: 128 * factor) {
                        let (w, h) = (min(128 * factor, 640 - left), min(128 * factor, 480 - top))
                        let size = (w: (w + factor - 1) / factor, h: (h + factor - 1) / factor)
                        let part = try await pixels("\(left),\(top),\(w),\(h)/\(size.w),\(size.h)/0/default.png")
                        #expect(part.width == size.w && part.height == size.h)
                        differences += Self.differences(part, whole, left / factor, top / factor)
                    }
                }
                #expect(differences.count == whole.pixels.count)
                let mean = Double(differences.reduce(0, +)) / Double(differences.count)
                // The resampler does not look beyond the edges of a tile.
                #expect(factor == 1 ? differences.allSatisfy { $0 == 0 } : mean < 1, "factor \(factor): \(mean)")
            }
            #expect(Self.fetched(bench) == ["/a.jpg"])
        }
    }

    private static func differences(_ part: PixelBuffer, _ whole: PixelBuffer, _ left: Int, _ top: Int) -> [Int] {
        (0..<part.height).flatMap { row in
            let start = (top + row) * whole.bytesPerRow + left * 4
            return zip(
                part.pixels[row * part.bytesPerRow..<(row + 1) * part.bytesPerRow],
                whole.pixels[start..<start + part.bytesPerRow]
            ).map { abs(Int($0) - Int($1)) }
        }
    }

    // MARK: Pages

    /// A TIFF with pages of 2 × 1, 4 × 1 and 6 × 1 gray pixels.
    private static let document: [UInt8] = {
        func little(_ value: Int, _ count: Int) -> [UInt8] { (0..<count).map { UInt8(value >> (8 * $0) & 255) } }
        var bytes = Array("II".utf8) + little(42, 2) + little(8, 4)
        for page in 1...3 {
            let data = bytes.count + 2 + 9 * 12 + 4
            let entries = [
                (256, 2 * page), (257, 1), (258, 8), (259, 1), (262, 1), (273, data), (277, 1), (278, 1),
                (279, 2 * page),
            ]
            bytes += little(entries.count, 2)
            for (tag, value) in entries { bytes += little(tag, 2) + little(4, 2) + little(1, 4) + little(value, 4) }
            bytes += little(page < 3 ? data + 2 * page : 0, 4) + [UInt8](repeating: UInt8(80 * page), count: 2 * page)
        }
        return bytes
    }()

    @Test func `a page of a TIFF is selected after a semicolon`() async throws {
        let origin = try LoopbackOrigin { request in
            .response(200, ["Content-Type": "image/tiff", "Cache-Control": "max-age=60"], body: Self.document)
        }
        defer { origin.stop() }
        let map = GrammarValue(
            .object(
                ["a", "x;2", "*"].map { .init(name: $0, value: .string(origin.url("/\($0 == "*" ? "*" : "1").tif"))) }))
        try await Self.with(["identifiers": map]) { bench in
            for (identifier, width, color) in [
                ("a", 2, 80), ("a;1", 2, 80), ("a;2", 4, 160), ("a%3B3", 6, 240), ("b;2", 4, 160), ("x;2", 2, 80),
                ("x;2;3", 6, 240), ("a;", 2, 80), ("a;b", 2, 80), ("a;0", 2, 80),
            ] {
                for _ in 1...2 {
                    let info = try Self.json(await bench.ask("/iiif/3/\(identifier)/info.json"))
                    #expect(info["width"] == .int(width), "\(identifier)")
                    let response = await bench.ask("/iiif/3/\(identifier)/full/max/0/default.png")
                    #expect(response.picture?.size == "\(width)x1", "\(identifier)")
                    #expect(response["link"]?.hasPrefix("<http://a/iiif/3/\(identifier)/full/max/") == true)
                    let pixels = try await bench.pipeline.pixels(
                        for: ImageRequest(.bytes(Array(response.body), name: "")))
                    #expect(Int(pixels.pixels[0]) == color, "\(identifier)")
                }
            }
            for target in ["a;4/info.json", "a;4/full/max/0/default.jpg", "a;99999999999/info.json"] {
                let response = await bench.ask("/iiif/3/" + target)
                #expect(response.status == 404 && Self.text(response) == "no image has this identifier", "\(target)")
            }
            let request = ImageRequest(.url(origin.url("/1.tif")), recipe: try Recipe("page:4,png"))
            let error = await #expect(throws: PipelineError.self) { try await bench.pipeline.respond(to: request) }
            #expect(error?.code == .notFound && error?.message.contains("no page 4; 3 can be selected") == true)
        }
    }

    // MARK: Identifiers

    @Test func `an identifier is decoded once, and names an entry, a pattern or a path of a base URL`() async throws {
        try await Self.with { bench in
            for (identifier, path) in [
                ("a", "/a.jpg"), ("b", "/photos/b.tif"), ("b%2Fc", "/photos/b/c.tif"),
                ("b%20%3F%23%5B%5D%40%25", "/photos/b%20%3F%23%5B%5D%40%25.tif"),
                ("ark:%2F2%2Fx", "/photos/ark:/2/x.tif"),
                ("ark:%2F1%2Fx", "/arks/x?v=2"), ("ark%3a%2F1%2Fy", "/arks/y?v=2"),
                ("b%252e%252e", "/photos/b%252e%252e.tif"), ("b%252Fc", "/photos/b%252Fc.tif"),
                ("caf%C3%A9", "/photos/caf%C3%A9.tif"), ("a...b", "/photos/a...b.tif"),
            ] {
                let response = await bench.ask("/iiif/3/\(identifier)/full/10,/0/default.jpg")
                #expect(response.status == 200, "\(identifier) \(Self.text(response))")
                #expect(Self.fetched(bench).last == path)
                let info = try Self.json(await bench.ask("/iiif/3/\(identifier)/info.json"))
                #expect(info["id"] == .string("http://a/iiif/3/" + identifier))
            }
        }
        try await Self.with(["identifiers": ["b*": "samples:*.jpg"]]) { site, _ in
            site.baseURLs["samples"] = "file://" + Samples.original("night-tiny.jpg").dropLast("/night-tiny.jpg".count)
        } _: { bench in
            for identifier in ["samples:night-tiny.jpg", "bnight-tiny"] {
                let file = try Self.json(await bench.ask("/iiif/3/\(identifier)/info.json"))
                #expect(file["width"] == .int(97), "\(identifier)")
            }
            for identifier in [
                "samples:..%2Foriginals%2Fnight-tiny.jpg", "samples:%252e%252e%2Fnight-tiny.jpg", "b..%2Fx",
            ] {
                #expect(await bench.ask("/iiif/3/\(identifier)/info.json").status == 404, "\(identifier)")
            }
        }
    }

    @Test(arguments: [
        "/iiif", "/iiif/", "/iiif/3", "/iiif/3/", "/iiif/3//info.json", "/iiif/4/a/info.json", "/iiif/2.1/a/info.json",
        "/iiif/3/a/b", "/iiif/3/a/info.json/", "/iiif/3/a/info.xml", "/iiif/3/a/full/max/0",
        "/iiif/3/b/c/full/max/0/default.jpg", "/iiif/3/a/full/max/0/default.jpg/x", "/iiif/3/missing/info.json",
        "/iiif/3/%2e%2e/info.json", "/iiif/3/b%2F..%2Fc/info.json", "/iiif/3/..%2F..%2Fc/full/max/0/default.jpg",
        "/iiif/3/%FF/info.json", "/iiif/3/%/info.json", "/iiif/3/a%2F../info.json",
    ])
    func `another path or identifier is a 404 in plain text`(target: String) async throws {
        try await Self.with { bench in
            let response = await bench.ask(target)
            #expect(response.status == 404 && response["content-type"] == "text/plain; charset=utf-8")
            #expect(response["access-control-allow-origin"] == "*" && response["cache-control"] == "no-store")
            let text = Self.text(response)
            #expect(!text.contains("127.0.0.1") && !text.contains("photos") && !text.contains("\n"))
            #expect(Self.fetched(bench).allSatisfy { $0.contains("missing") })
        }
    }

    @Test func `an absolute URL requires unsigned`() async throws {
        for (unsigned, status) in [(true, 200), (false, 403)] {
            try await Self.with([
                "unsigned": GrammarValue(.bool(unsigned)), "identifiers": ["b": "https://a.example/b"],
            ]) {
                bench in
                let identifier = bench.origin.url("/a.jpg").replacing("/", with: "%2F")
                let response = await bench.ask("/iiif/3/\(identifier)/full/max/0/default.jpg")
                #expect(response.status == status && response["access-control-allow-origin"] == "*")
                for other in ["ftp:%2F%2Fa%2Fb", "file:%2F%2F%2Fetc%2Fpasswd", "data:,x", "sample:a", "c", "c:d"] {
                    #expect(await bench.ask("/iiif/3/\(other)/full/max/0/default.jpg").status == 404, "\(other)")
                }
            }
        }
    }

    // MARK: Other responses

    @Test(arguments: [
        "full/max/0/default.jp2", "full/9999,/0/default.jpg", "700,0,10,10/max/0/default.jpg", "full/max/0/%2e",
        "full/max/%/default.jpg", "full/max/0/default.jpg%00", "full/%255E10,/0/default.jpg",
        "pct:0,0,1e1,10/max/0/default.jpg", "full/max/NaN/default.jpg",
        "full/" + String(repeating: "9", count: 7_900) + ",/0/default.jpg",
    ])
    func `a malformed parameter is a 400 in plain text`(target: String) async throws {
        try await Self.with(picture: "night-tiny.jpg") { bench in
            let response = await bench.ask("/iiif/3/a/" + target)
            #expect(response.status == 400 && response["content-type"] == "text/plain; charset=utf-8", "\(target)")
            #expect(response["access-control-allow-origin"] == "*" && !response.body.isEmpty)
        }
    }

    @Test func `OPTIONS and other methods, for pages of every origin`() async throws {
        try await Self.with { site, _ in
            site.crossOrigin = ["https://app.example"]
        } _: { bench in
            for fields in [
                [], [HeaderField("Origin", "https://x"), HeaderField("Access-Control-Request-Method", "GET")],
            ] {
                var request = ServerRequest(method: "OPTIONS", target: "/iiif/3/a/info.json", fields: fields)
                let response = await bench.site.respond(to: request)
                #expect(response.status == 204 && response["access-control-allow-origin"] == "*")
                #expect(response["access-control-allow-methods"] == "GET, HEAD")
                #expect(response["access-control-allow-headers"] == "*")
                request.method = "POST"
                request.fields.append(HeaderField("Host", "a"))
                let refusal = await bench.site.respond(to: request)
                #expect(refusal.status == 405 && refusal["allow"] == "GET, HEAD, OPTIONS")
                #expect(refusal["access-control-allow-origin"] == "*")
            }
            let variant = await bench.ask("/variant/unsigned/png/" + bench.source)
            #expect(variant["access-control-allow-origin"] == nil)
        }
    }

    @Test func `the origin's errors become errors about the identifier or the gateway`() async throws {
        let origin = try LoopbackOrigin { request in
            .response(Int(request.target.dropFirst()) ?? 200, ["Content-Type": "text/html"], body: Array("<html>".utf8))
        }
        defer { origin.stop() }
        try await Self.with(["identifiers": ["*": GrammarValue(.string(origin.url("/*")))]]) { bench in
            for (name, status) in [("404", 404), ("410", 404), ("500", 502), ("403", 502), ("200", 415)] {
                for target in ["info.json", "full/max/0/default.jpg"] {
                    let response = await bench.ask("/iiif/3/\(name)/\(target)")
                    #expect(response.status == status && !Self.text(response).contains("127.0.0.1"), "\(name)")
                    #expect(response["vary"] == (target == "info.json" ? "Accept" : nil))
                }
            }
        }
    }

    @Test func `logs show the identifier without credentials`() throws {
        var members = try GrammarMembers(.object([]), of: "iiif")
        let grammar = try IIIFGrammar(at: "/iiif", &members)
        for (target, shown) in [
            ("/iiif/3/a%2Fb/info.json", "/iiif/3/a/b/info.json"), ("/iiif", "/iiif/…"),
            ("/iiif/3/https:%2F%2Fu:p%40a.example%2Fb/full/max/0/x", "/iiif/3/https://a.example/b/full/max/0/x"),
        ] {
            #expect(grammar.shown(RequestTarget(target)) == shown)
        }
    }

    @Test(
        arguments: [
            (["maxHeight": 5], "maxHeight: requires"), (["tile": 0], "tile: expected"),
            (["formats": ["jp2"]], "formats"),
            (["baseURL": "img.example.org"], "baseURL: expected"), (["baseURL": "https://a/?b"], "baseURL: expected"),
            (["info": ["width": 5]], "`width`"), (["identifiers": ["a": "b"]], "`a` must be a URL"),
            (["identifiers": ["a": 5]], "`a` must be a URL"),
            (["identifiers": ["*": "https://*.example/a"]], "`*` in the path"),
            (["identifiers": ["*": "https://a.example/*/*"]], "`*` in the path"),
            (["identifiers": ["a*b*": "https://a.example/b"]], "one `*`"), (["maxwidth": 5], "unknown member"),
        ] as [([String: GrammarValue], String)])
    func `settings that cannot work are refused`(members: [String: GrammarValue], words: String) {
        var configuration = ServerConfiguration()
        let all = members.merging(["path": "/iiif"]) { own, _ in own }
        configuration.grammars["iiif"] = GrammarValue(.object(all.map { .init(name: $0.key, value: $0.value.json) }))
        let error = #expect(throws: InvalidSetting.self) { try configuration.mountedGrammars() }
        #expect(error?.message.contains(words) == true, "\(error?.message ?? "")")
    }

    @Test func `formats may add JPEG XL and leave others out`() async throws {
        try await Self.with(["formats": ["jxl"]]) { bench in
            let info = try Self.json(await bench.ask("/iiif/3/a/info.json"))
            #expect(
                info["extraFormats"] == .list([.string("jxl")]) && info["preferredFormats"] == .list([.string("jpg")]))
            #expect(await bench.ask("/iiif/3/a/full/10,/0/default.jxl")["content-type"] == "image/jxl")
            #expect(await bench.ask("/iiif/3/a/full/10,/0/default.webp").status == 400)
        }
    }
}
