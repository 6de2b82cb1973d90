import TestSupport
import Testing

@testable import Variants

/// Features that browsers draw and librsvg 2.54 does not: rewritten before it sees them, or named.
@Suite struct SVGFeatureTests {
    private static let space = "xmlns=\"http://www.w3.org/2000/svg\" xmlns:xlink=\"http://www.w3.org/1999/xlink\""
    private static let rect = "<rect width='50' height='50'/>"

    private static func svg(_ content: String, _ attributes: String = "") -> [UInt8] {
        Array("<svg \(space) width='100' height='80' \(attributes)>\(content)</svg>".utf8)
    }

    private static func unsupported(_ bytes: [UInt8]) throws -> [String] {
        ImageDetails.read(bytes, try ImageHeader.probe(bytes)).unsupportedFeatures
    }

    private static func color(_ bytes: [UInt8], _ x: Int, _ y: Int, _ recipe: String = "orient:off") async throws
        -> [UInt8]
    {
        var job = try RenderSamples.job(bytes, recipe)
        job.limits.formats.insert(.svg)
        let picture = try await RenderFixture.renderer.pixels(job)
        let at = (y * picture.width + x) * 4
        return Array(picture.pixels[at..<at + 4])
    }

    @Test(
        arguments: [
            ("<style>:root{--c:#00aa00}rect{fill:var(--c)}</style>", "", [0, 170, 0, 255]),
            ("<style>svg { --c: #00aa00 } /* } */ g, rect { fill: var( --c ) }</style>", "", [0, 170, 0, 255]),
            ("<style><![CDATA[:root{--c:#0a0;--d:var(--c)}svg>rect{fill:var(--d)}]]></style>", "", [0, 170, 0, 255]),
            ("<style>:root{--c:#0a0} svg &gt; rect{fill:var(--c)}</style>", "", [0, 170, 0, 255]),
            ("<style>rect{fill:var(--none, var(--also, #0000ff))}</style>", "", [0, 0, 255, 255]),
            ("<style>rect{fill:var(--c)}</style>", "style='--c:#0000ff'", [0, 0, 255, 255]),
            (
                "<style>:root{--c:#0000ff}@media (prefers-color-scheme:dark){:root{--c:red}}rect{fill:var(--c)}</style>",
                "", [0, 0, 255, 255]
            ),
            ("<style>rect{fill:#ff0000;stroke:none}</style>", "style='background:#0000ff'", [255, 0, 0, 255]),
        ] as [(String, String, [UInt8])])
    func `custom properties of the root take the place of var()`(
        content: String, attributes: String, expected: [UInt8]
    ) async throws {
        let bytes = Self.svg(content + Self.rect, attributes)
        #expect(try Self.unsupported(bytes) == [])
        #expect(try await Self.color(bytes, 25, 25) == expected)
        #expect(try await Self.color(bytes, 100, 100, "thumbnail:400:up") == expected)
    }

    @Test func `var() works in attributes, and keeps what stands around it`() async throws {
        let paint = "<g fill=\"var(--c)\" font-family='&quot;a&quot;, var(--f)'>\(Self.rect)</g>"
        let bytes = Self.svg("<style>:root{--c:#0000ff;--f:'b &amp; c'}</style>\(paint)")
        #expect(try await Self.color(bytes, 25, 25) == [0, 0, 255, 255])
        let text = String(decoding: try #require(Self.rewritten(bytes)), as: UTF8.self)
        #expect(text.contains("<g fill=\"#0000ff\" font-family=\"&quot;a&quot;, 'b &amp; c'\">"))
        #expect(Self.rewritten(Self.svg(Self.rect)) == nil)
    }

    /// The document as librsvg gets it; nil if it is as it was.
    private static func rewritten(_ bytes: [UInt8]) -> [UInt8]? {
        bytes.withUnsafeBytes { SVGDocument(ByteReader($0)).flatMap { SVGRewriting($0).bytes?.array } }
    }

    @Test(
        arguments: [
            ("<style>svg{background-color:#0000ff}</style>", "", [0, 0, 255, 255]),
            ("", "style='background:#0000ff'", [0, 0, 255, 255]),
            (
                "<style>:root{--b:#0000ff}</style>", "style='background:var(--b)' viewBox='10 10 50 40'",
                [0, 0, 255, 255]
            ),
            (
                "<style>rect{fill:red !important;opacity:0}</style>", "style='background:rgb(0, 0, 255)'",
                [0, 0, 255, 255]
            ),
            ("<style>svg{background:none}</style>", "", [0, 0, 0, 0]),
        ] as [(String, String, [UInt8])])
    func `the root's background is drawn behind all else`(
        content: String, attributes: String, expected: [UInt8]
    ) async throws {
        let bytes = Self.svg(content + "<rect width='9' height='9' fill='red'/>", attributes)
        #expect(try Self.unsupported(bytes) == [])
        for (x, y) in [(99, 79), (60, 60)] { #expect(try await Self.color(bytes, x, y) == expected) }
    }

    /// RFC 4648 §4.
    private static func base64(_ bytes: [UInt8]) -> String {
        let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
        return stride(from: 0, to: bytes.count, by: 3).map { at in
            let group = bytes[at..<min(at + 3, bytes.count)]
            let bits = (group.reduce(0) { $0 << 8 | Int($1) }) << (8 * (3 - group.count))
            let text = (0..<group.count + 1).map { String(letters[bits >> (18 - 6 * $0) & 63]) }.joined()
            return text + String(repeating: "=", count: 3 - group.count)
        }.joined()
    }

    @Test func `a picture labelled image/jpg is drawn`() async throws {
        let flat = try RenderFixture.image(16, 16) { _, _ in [0, 128, 255] }
        let jpeg = try VipsCall("jpegsave_buffer", ["in": .image(flat), "Q": 95]).bytes()
        for name in ["href", "xlink:href"] {
            let bytes = Self.svg("<image \(name)='data:image/jpg;base64,\(Self.base64(jpeg))' width='80' height='80'/>")
            let color = try await Self.color(bytes, 40, 40)
            #expect(zip(color, [0, 128, 255, 255] as [UInt8]).allSatisfy { abs(Int($0) - Int($1)) < 5 }, "\(color)")
            #expect(try Self.unsupported(bytes) == [])
        }
    }

    /// All of them were compared with Chromium 156.
    @Test(
        arguments: [
            ("<rect fill='oklch(60% .2 30)'/>", ["oklch()"]),
            ("<rect style='fill:light-dark(red,blue)'/>", ["light-dark()"]),
            ("<style>:is(rect,g){fill:red}</style>", [":is()"]), ("<style>:where(a){fill:red}</style>", [":where()"]),
            ("<style>@layer a{rect{fill:red}}</style>", ["@layer"]),
            ("<style>@media screen{rect{fill:red}}</style>", ["@media"]),
            ("<style>@supports (fill:red){rect{fill:red}}</style>", ["@supports"]),
            ("<style>g{rect{fill:red}}</style>", ["nested rules"]),
            ("<style>@keyframes a{from{fill:red}}rect{animation:a 9s}</style>", ["animation"]),
            ("<image href='data:image/webp;base64,AA=='/>", ["image/webp in data:"]),
            ("<image href='data:text/plain,a'/>", ["data: of another type"]),
            ("<foreignObject/>", ["foreignObject"]), ("<text><textPath href='#p'>a</textPath></text>", ["textPath"]),
            ("<rect><animate attributeName='x'/></rect><rect><set/></rect>", ["animate", "set"]),
            ("<s:foreignObject xmlns:s='http://www.w3.org/2000/svg'/>", ["foreignObject"]),
            ("<rect style='transform:rotate(9deg);transform-origin:50px 40px'/>", ["transform-origin"]),
            ("<path vector-effect='non-scaling-stroke'/>", ["vector-effect"]),
            ("<text dominant-baseline='middle' textLength='90'>a</text>", ["dominant-baseline", "textLength"]),
            ("<text style='white-space:pre'>a</text>", ["white-space"]),
            ("<text x='1 2 3' y='5'>abc</text>", ["x of letters"]),
            ("<style>svg{background:url(#a)}</style>", ["background"]),
            ("<style>svg{background:oklch(50% .1 20)}</style>", ["oklch()"]),
            ("<style>g{--c:red}rect{fill:var(--c)}</style>", ["var()"]),
            ("<style>:root{--c:red}</style><g style='--c:blue'><rect fill='var(--c)'/></g>", ["var()"]),
            ("<style>rect{fill:var(--none)}</style>", ["var()"]),
            // A file of Inkscape.
            (
                "<text xml:space='preserve' style='letter-spacing:0px;word-spacing:0px;vector-effect:none;fill:#000' "
                    + "x='1' y='2'>:is( oklch(</text><path d='M 0,0 1,1' style='-inkscape-stroke:none'/>", []
            ),
            ("<style>@charset \"utf-8\"; /* :is(a) */ a:not(.b){content:':is('}</style>", []),
            ("<style>@media print{rect{fill:red}}</style>", []),
        ] as [(String, [String])])
    func `features that are drawn wrong are named`(content: String, expected: [String]) throws {
        #expect(try Self.unsupported(Self.svg(content)) == expected)
    }

    @Test func `variables within each other end in bounded work`() throws {
        let doubling = (0..<40).map { "--v\($0):var(--v\($0 + 1))var(--v\($0 + 1));" }.joined()
        let circle = "--a:var(--b);--b:var(--a);"
        let long = "--l:" + String(repeating: "x", count: 60_000) + ";"
        for variables in [doubling, circle, long] {
            let use = variables == long ? String(repeating: "var(--l)", count: 500) : "var(--v0)var(--a)"
            let bytes = Self.svg("<style>:root{\(variables)}rect{fill:\(use)}</style>\(Self.rect)")
            #expect(try Self.unsupported(bytes) == ["var()"])
            #expect((Self.rewritten(bytes)?.count ?? 0) < bytes.count + 2 * SVGDocument.entityLimit)
        }
    }

    @Test(arguments: [
        "<style>", "<style>rect{", "<style>rect{fill:var(</style>", "<style>:root{--c:'</style>",
        "<style>@media{{{{</style>",
        "<style>}}}}:root{;;:;}</style>", "<style><![CDATA[</style>", "<style><g>:is(a)</g></style>", "<g style='--'/>",
        "<style>/*", "<image href='data:image/jpg'/>", "<g fill='&x;var(--c)'/>", "<style>\\", "< >", "<",
    ])
    func `any style sheet is read to its end`(content: String) throws {
        let bytes = Self.svg(content)
        _ = try Self.unsupported(bytes)
        bytes.withUnsafeBytes { #expect(SVGDecoder.redrawn($0, PixelSize(width: 1, height: 1)) != nil) }
    }
}
