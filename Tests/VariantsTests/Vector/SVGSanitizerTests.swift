import TestSupport
import Testing

@testable import Variants

/// Tests which parts of an SVG are kept. `Tests/Page/svg_test.py` tests the result in a browser.
@Suite struct SVGSanitizerTests {
    private static let start =
        "<svg xmlns=\"http://www.w3.org/2000/svg\" xmlns:xlink=\"http://www.w3.org/1999/xlink\""

    private static func sanitized(_ text: String) throws -> String {
        try Array(text.utf8).withUnsafeBytes {
            String(decoding: try SVGSanitizer.sanitized($0, RenderControl()), as: UTF8.self)
        }
    }

    private static func content(_ text: String, before: String = "") throws -> String {
        let whole = try sanitized(
            "\(before)<svg xmlns='http://www.w3.org/2000/svg' xmlns:xlink='http://www.w3.org/1999/xlink'>\(text)</svg>")
        try #require(whole.hasPrefix(start + ">") && whole.hasSuffix("</svg>"))
        return String(whole.dropFirst(start.count + 1).dropLast(6))
    }

    @Test(arguments: [
        "<g id=\"a\" class=\"b c\" transform=\"rotate(3)\" data-x=\"1\" aria-label=\"x\"><path d=\"M0 0\" fill=\"none\"/></g>",
        "<text xml:space=\"preserve\"> a &lt;&amp; b <tspan>c</tspan></text>", "<title>a</title><desc>b</desc>",
        "<image href=\"data:image/png;base64,AA==\"/><use xlink:href=\"#a\"/>",
        "<rect fill=\"url(#a)\" style=\"fill:rgb(1,2,3)\" font-family=\"&quot;A b&quot;\"/>",
        "<animate attributeName=\"fill\"/>", "<style>a&gt;b{fill:red}</style>", "<svg x=\"1\"/>",
        "<text>a&#13;\n\t</text>",
        "<path d=\"M0&#9;0&#10;1\"/>",
    ]) func `the picture stays as it is`(text: String) throws {
        #expect(try Self.content(text) == text)
    }

    @Test(arguments: [
        ("<script>a</script>b", "b"), ("<rect onclick='a' width='1'/>", "<rect width=\"1\"/>"),
        ("<g><foreignObject><g/></foreignObject></g>", "<g></g>"),
        ("<a href='http://x' target='_top'>b</a>", "<a>b</a>"),
        ("<image href='http://x'/>", "<image/>"),
        ("<image href='#a'/><feImage href=' #a '/>", "<image/><feImage href=\"#a\"/>"),
        ("<use href='data:image/png,a'/>", "<use/>"),
        ("<image href=' data:image/JPG,a'/>", "<image href=\"data:image/jpeg,a\"/>"),
        ("<image href='data:image/svg+xml,a'/>", "<image/>"),
        ("<title>a<g>b</g>c</title>", "<title>ac</title>"), ("<style>a<g/>@import 'x';</style>", "<style>a </style>"),
        ("<style type='text/less'>a</style>", ""), ("<style><![CDATA[a>b{}]]></style>", "<style>a&gt;b{}</style>"),
        ("<!-- a --><?b c?>", ""), ("<x:rect xmlns:x='urn:x'/>", ""), ("<rect x:a='1' xmlns:x='urn:x'/>", "<rect/>"),
        ("<x:rect xmlns:x='http://www.w3.org/2000/svg' width='1'/>", "<rect width=\"1\"/>"),
        ("<set attributeName='href' to='x'/>", ""), ("<set to='x'/>", ""), ("<animate attributeName='onload'/>", ""),
        (
            "<animate attributeName='filter' values=\"&apos;;url(http://x#a);&apos;;url(#a\\3b url\\28 x\\29\\3b )\"/>",
            "<animate values=\"';none;';url(&quot;#a\\3b url(x)\\3b &quot;)\" attributeName=\"filter\"/>"
        ),
        ("<style type='TEXT/CSS'>a{}</style>", "<style type=\"TEXT/CSS\">a{}</style>"),
        ("<set attributeName='fill' to='url(x)'/>", "<set to=\"none\" attributeName=\"fill\"/>"),
        ("<g xml:base='x' tabindex='0' nonce='x'/>", "<g/>"), ("<metadata><rect/></metadata>", ""),
    ]) func `everything else goes`(text: String, expected: String) throws {
        #expect(try Self.content(text) == expected)
        #expect(try Self.content(expected) == expected)
    }

    @Test func `entities are expanded, and a document type goes`() throws {
        let types = "<?xml version='1.0'?><!DOCTYPE svg [<!ENTITY a '<script/><rect/>'><!ENTITY b 'http://x'>]>"
        #expect(
            try Self.content("&a;<image href='&b;'/><text>&b;</text>", before: types)
                == "<rect/><image/><text>http://x</text>")
        let defaults = "<!DOCTYPE svg [<!ATTLIST rect onload CDATA 'x' width CDATA '3'>]>"
        #expect(try Self.content("<rect/>", before: defaults) == "<rect/>")
    }

    @Test func `a root needs its namespace, which may be missing everywhere`() throws {
        #expect(try Self.sanitized("<svg><rect/></svg>") == Self.start + "><rect/></svg>")
        #expect(throws: RenderError.self) { try Self.sanitized("<svg xmlns='urn:x'><rect/></svg>") }
        #expect(
            try Self.sanitized("<s:svg xmlns:s='http://www.w3.org/2000/svg' y='3'><s:g/><g/></s:svg>") == Self.start
                + "><g/><g/></svg>")
    }

    @Test(arguments: ["<svg", "<svg><g></svg>", "<svg>&x;</svg>", "<svg a='1' a='2'/>", "<svg>\u{1}</svg>", ""])
    func `a file that is no XML is an error that says where`(text: String) {
        let error = #expect(throws: RenderError.self) { try Self.sanitized(text) }
        #expect(error?.code == .undecodable)
    }

    @Test func `a stop ends a long file`() {
        let text = "<svg>" + String(repeating: "<g/>", count: 5_000) + "</svg>"
        let control = RenderControl()
        control.stop(.cancelled)
        let error = #expect(throws: RenderError.self) {
            try Array(text.utf8).withUnsafeBytes { try SVGSanitizer.sanitized($0, control) }
        }
        #expect(error?.code == .cancelled)
    }

    @Test func `damaged files become what stays as it is, or an error`() throws {
        var numbers = SplitMix64(state: 7)
        let file = Array(
            "<svg xmlns='http://www.w3.org/2000/svg' onload='a'><style>.a{fill:url(#b)}@import 'x';</style><g class='a'><text>b&lt;</text><!-- c --><image href='data:image/png,a'/></g><script>d</script></svg>"
                .utf8)
        var kept = 0
        for _ in 0..<5_000 {
            var bytes = file
            for _ in 0..<Int.random(in: 1...3, using: &numbers) {
                let at = Int.random(in: 0..<bytes.count, using: &numbers)
                switch Int.random(in: 0..<3, using: &numbers) {
                case 0: bytes[at] = UInt8.random(in: 0...255, using: &numbers)
                case 1: bytes.remove(at: at)
                default: bytes.insert(contentsOf: bytes[at..<min(bytes.count, at + 9)], at: at)
                }
            }
            guard let once = try? bytes.withUnsafeBytes({ try SVGSanitizer.sanitized($0, RenderControl()) }) else {
                continue
            }
            kept += 1
            #expect(try once.withUnsafeBytes { try SVGSanitizer.sanitized($0, RenderControl()) } == once)
            #expect(!String(decoding: once, as: UTF8.self).contains("<script"))
        }
        #expect(kept > 500)
    }
}

/// Tests SVG as the output of a render.
@Suite struct VectorRenderTests {
    private static let drawing = SVGTests.svg("width='200' height='100'", "<rect width='9' height='9' onload='a'/>")

    private static func rendered(_ recipe: String, _ bytes: [UInt8] = drawing) async throws -> RenderedVariant {
        try await RenderFixture.renderer.render(RenderSamples.job(bytes, recipe))
    }

    @Test(
        arguments: [
            ("", [200, 100]), ("thumbnail:400", [400, 200]), ("thumbnail:50x,auto", [50, 25]),
            ("thumbnail:60x60:fill,original", [60, 60]),
            ("thumbnail:60x60:pad", [60, 60]), ("thumbnail:70x20:stretch", [70, 20]),
            ("orient:off,thumbnail:10,original:50:keep=icc", [10, 5]),
        ] as [(String, [Int])]) func `it stays a vector, in the size of the recipe`(recipe: String, size: [Int])
        async throws
    {
        let variant = try await Self.rendered(recipe)
        #expect(variant.format == .svg && [variant.width, variant.height] == size)
        let text = String(decoding: variant.bytes, as: UTF8.self)
        #expect(!text.contains("onload"))
        // The result is an SVG of this size.
        let header = try ImageHeader.probe(variant.bytes)
        #expect([header.width, header.height] == size)
    }

    @Test(arguments: [
        ("blur:3", "the step `blur:3`"), ("thumbnail:20,circle", "the step `circle`"),
        ("thumbnail:20:fill:gravity=attention", "gravity=attention"),
    ]) func `other steps need an output of pixels`(recipe: String, named: String) async throws {
        let error = await DecodedFormatsTests.refusal(
            RenderFixture.renderer, try RenderSamples.job(Self.drawing, recipe))
        #expect(error?.code == .notApplicable && error?.message.contains(named) == true, "\(error?.message ?? "")")
        #expect(error?.message.contains("`webp`, and `svg` to the setting `decoders`") == true)
        var job = try RenderSamples.job(Self.drawing, recipe + ",png")
        job.limits.formats.insert(.svg)
        #expect(try await RenderFixture.renderer.render(job).format == .png)
    }

    @Test func `the root of the result says what the root of the original says`() async throws {
        func text(_ recipe: String, _ bytes: [UInt8]) async throws -> String {
            String(decoding: try await Self.rendered(recipe, bytes).bytes, as: UTF8.self)
        }
        // References in the size are resolved.
        let referring = try await Self.rendered(
            "", SVGTests.svg("width='&#49;20' height='80' viewBox='0 0 120&#32;80'"))
        #expect([referring.width, referring.height] == [120, 80])
        // Words are removed without joining the tokens next to them.
        let hidden = try await text(
            "thumbnail:50", SVGTests.svg("width='9' height='9' style=\"a:'\\!important';b:'; background:url(x);'\""))
        #expect(!hidden.contains("'\\'"))
        let boxed = try await text("thumbnail:50", SVGTests.svg("width='120' height='80' viewBox='0 0 100'"))
        #expect(boxed.contains("viewBox=\"0 0 120.0 80.0\"") && !boxed.contains("0 0 100\""))
        for mode in ["fill", "pad", "stretch"] {
            let colored = try await text(
                "thumbnail:50x50:" + mode,
                SVGTests.svg("width='120' height='80' style='overflow:visible;background:#ff0'"))
            #expect(colored.contains("<rect width=\"120\" height=\"80\" style=\"fill:#ff0\"/>"))
            #expect(colored.contains("overflow:hidden !important;"))
        }
    }

    @Test(arguments: [
        (
            "<!DOCTYPE svg [<!ENTITY a 'b'><!-- <!ENTITY z ' --><!ENTITY x SYSTEM \"file:///etc/hostname\"><!-- ' -->]>",
            "external entities"
        ),
        (
            "<!DOCTYPE svg [<!ATTLIST g a CDATA \"<!ENTITY z '\"><!ENTITY x SYSTEM 'y'><!ATTLIST g b CDATA \"'\">]>",
            "external entities"
        ),
        ("<!DOCTYPE svg SYSTEM \"<!ENTITY z '\" [<!ENTITY x SYSTEM 'y'>]>", "external entities"),
        ("<?xml version='1.0' encoding='UTF-7'?>", "the encoding utf-7"),
        ("<?xml version=\"1.0\" encoding = \"IBM037\" ?>", "the encoding ibm037"),
        ("<!DOCTYPE svg [<!ATTLIST g \(String(repeating: "a CDATA ''", count: 500))>]>", "bytes of ATTLIST"),
    ]) func `documents that a parser would read differently or slowly are refused`(before: String, reason: String) {
        let error = #expect(throws: RenderError.self) {
            try ImageHeader.probe(SVGTests.svg("width='9' height='9'", before: before))
        }
        #expect(error?.message.contains(reason) == true, "\(error?.message ?? "")")
    }

    @Test func `a start tag has at most a thousand attributes if it is long`() throws {
        func tag(_ count: Int) -> [UInt8] {
            SVGTests.svg(
                "width='9' height='9'",
                "<g \((0..<count).map { "data-\($0)='\(String(repeating: "x", count: 99))' " }.joined())/>")
        }
        #expect(try ImageHeader.probe(tag(1000)).width == 9)
        #expect(throws: RenderError.self) { try ImageHeader.probe(tag(1001)) }
        let ordinary =
            "<?xml version='1.0' encoding='ISO-8859-1' standalone='no'?><!DOCTYPE svg PUBLIC '-//W3C//DTD' 'x' [<!ENTITY a 'b'>]>"
        #expect(try ImageHeader.probe(SVGTests.svg("width='9' height='9'", before: ordinary)).width == 9)
    }

    @Test func `limits hold`() async throws {
        let budget = await DecodedFormatsTests.refusal(
            RenderFixture.renderer, try RenderSamples.job(Self.drawing, "auto:max=20"))
        #expect(budget?.code == .overBudget)
        var job = try RenderSamples.job(Self.drawing, "")
        job.limits.bytes = 20
        #expect(await DecodedFormatsTests.refusal(RenderFixture.renderer, job)?.code == .overLimit)
        let entities = SVGTests.svg("", before: "<!DOCTYPE svg [<!ENTITY a SYSTEM 'x'>]>")
        #expect(throws: RenderError.self) { try ImageHeader.probe(entities) }
        // The value of an attribute is bounded by libxml2.
        let long = SVGTests.svg("width='9'", "<path d='\(String(repeating: "1", count: XMLReader.valueLimit + 1))'/>")
        let error = await DecodedFormatsTests.refusal(RenderFixture.renderer, try RenderSamples.job(long, ""))
        #expect(error?.code == .undecodable && error?.message.contains("10000000 bytes") == true)
    }

    @Test func `a worker makes the same bytes, and no other process does unless it is told to`() async throws {
        let pool = WorkerPool(WorkerPoolTests.configuration())
        let variant = try await pool.render(RenderSamples.job(Self.drawing, "thumbnail:300"))
        #expect(variant.bytes == (try await Self.rendered("thumbnail:300").bytes) && variant.format == .svg)
        await pool.shutdown()
        let careful = await DecodedFormatsTests.refusal(
            InProcessRenderer(maxConcurrentRenders: 1), try RenderSamples.job(Self.drawing, ""))
        #expect(careful?.code == .unsupportedFormat)
    }
}
