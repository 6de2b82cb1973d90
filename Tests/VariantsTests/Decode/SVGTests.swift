import Glibc
import TestSupport
import Testing

@testable import Variants

/// SVG as browsers size it, drawn by librsvg, and what is refused.
@Suite struct SVGTests {
    private static let space = "xmlns=\"http://www.w3.org/2000/svg\" xmlns:xlink=\"http://www.w3.org/1999/xlink\""

    static func svg(_ attributes: String, _ content: String = "", before: String = "") -> [UInt8] {
        Array("\(before)<svg \(space) \(attributes)>\(content)</svg>".utf8)
    }

    private static func job(_ bytes: [UInt8], _ recipe: String) throws -> RenderJob {
        var job = try RenderSamples.job(bytes, recipe)
        job.limits.formats.insert(.svg)
        return job
    }

    private static func decoded(_ bytes: [UInt8]) async throws -> PixelBuffer {
        try await RenderFixture.renderer.pixels(job(bytes, "orient:off"))
    }

    private static func size(_ bytes: [UInt8]) throws -> [Int] {
        let header = try ImageHeader.probe(bytes)
        #expect(header.format == .svg && header.hasAlpha)
        return [header.width, header.height]
    }

    /// Chromium's `naturalWidth` and `naturalHeight`.
    @Test(
        arguments: [
            ("width='24' height='16'", [24, 16]), ("width='24px' height='16.4'", [24, 16]),
            ("width='1in' height='2.54cm'", [96, 96]), ("width='3pt' height='1pc'", [4, 16]),
            ("width='2em' height='1ex'", [32, 8]), ("viewBox='0 0 24 24'", [150, 150]),
            ("viewBox='0,0 400 100'", [300, 75]), ("width='48' viewBox='0 0 24 12'", [48, 24]),
            ("height='48' viewBox='0 0 24 12'", [96, 48]),
            ("width='100%' height='100%' viewBox='0 0 40 20'", [300, 150]),
            ("width='100%' height='50%'", [300, 150]), ("width='40'", [40, 150]), ("height='40'", [300, 40]),
            ("", [300, 150]),
            ("width='-5' height='-5'", [300, 150]), ("width='1e2' height='.5e1'", [100, 5]),
            ("viewBox='0 0 0 0'", [300, 150]), ("viewBox='0 0 nan inf'", [300, 150]),
            ("width='0x10' height='9'", [300, 9]),
        ] as [(String, [Int])]) func `sizes are those that browsers have`(attributes: String, size: [Int]) throws
    {
        #expect(try Self.size(Self.svg(attributes)) == size)
    }

    @Test func `a root with more attributes than fit is refused, and read by none that only looks for a format`() throws
    {
        let many = Self.svg(String(repeating: "a=\"\" ", count: 20_000))
        #expect(ImageFormat.recognized(many) == .svg)
        let error = #expect(throws: RenderError.self) { try ImageHeader.probe(many) }
        #expect(error?.message.contains("longer than 65536 bytes") == true)
    }

    @Test(arguments: [
        "svg{width:100%;height:auto}", "svg{width:1em;height:1em}", "*{width:50px;height:50px}",
        "svg{width:300px !important;height:30px !important}",
    ])
    func `a style sheet does not change the size that the header says`(sheet: String) async throws {
        let content = "<style>\(sheet)</style><rect width='24' height='24' fill='red'/>"
        for attributes in ["width='24' height='24'", "width='24' height='24' style='fill:red;width:9px !important'"] {
            let picture = try await Self.decoded(Self.svg("viewBox='0 0 24 24' \(attributes)", content))
            #expect(picture.width == 24 && picture.height == 24)
        }
    }

    @Test func `the root is found behind declarations, comments and a document type`() throws {
        let before = """
            \u{FEFF}<?xml version="1.0"?> <!-- <svg> --><!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://x/svg11.dtd" [
            <!-- > --> <!ENTITY ns "http://x"> ]>
            """
        #expect(try Self.size(Self.svg("width='7' height='8'", before: before)) == [7, 8])
        #expect(
            try Self.size(Array("<s:svg xmlns:s='http://www.w3.org/2000/svg' width='7' height='8'/>".utf8)) == [7, 8])
        for text in ["<svgs/>", "<html><svg/></html>", "<svg", "<!-- <svg/>", "<!DOCTYPE svg [ <svg/>"] {
            #expect(throws: RenderError.self) { try ImageHeader.probe(Array(text.utf8)) }
        }
        // Nested document types take no stack.
        let nested = String(repeating: "<!DOCTYPE", count: 200_000)
        #expect(throws: RenderError.self) { try ImageHeader.probe(Array(nested.utf8)) }
    }

    private static let half = "<rect width='12' height='24' fill='#0000ff'/>"

    @Test(arguments: [
        "width='24' height='24'", "width='24' height='24' viewBox='0 0 24 24'", "viewBox='0 0 24 24'",
        "width='100%' height='100%' viewBox='0 0 24 24'", "width='24' height='24' style='width:9px'",
    ])
    func `a small drawing is rendered at the requested size, with sharp edges`(attributes: String) async throws {
        let bytes = Self.svg(attributes, Self.half)
        for recipe in ["thumbnail:600", "thumbnail:600x600:fill", "thumbnail:600x600:pad"] {
            let picture = try await RenderFixture.renderer.pixels(Self.job(bytes, recipe))
            #expect(picture.width == 600 && picture.height == 600)
            for x in [0, 299, 300, 599] {
                let at = (300 * 600 + x) * 4
                #expect(
                    Array(picture.pixels[at..<at + 4]) == (x < 300 ? [0, 0, 255, 255] : [0, 0, 0, 0]), "\(recipe) \(x)")
            }
        }
    }

    @Test func `without a size of a viewBox, content is clipped at the size of the root`() async throws {
        let picture = try await Self.decoded(Self.svg("width='10' height='6'", "<rect width='99' height='3'/>"))
        #expect(picture.width == 10 && picture.height == 6)
        #expect(picture.pixels[3] == 255 && picture.pixels[(5 * 10 + 9) * 4 + 3] == 0)
    }

    static let bombs: [(name: String, bytes: [UInt8], words: String)] = [
        (
            "nested entities",
            svg("", "&b;", before: "<!DOCTYPE svg [<!ENTITY a 'aaaaaaaaaa'><!ENTITY b '&a;&a;&a;&a;&a;&a;&a;&a;'>]>"),
            "nested entities"
        ),
        (
            "one long entity, often",
            svg(
                "", String(repeating: "&a;", count: 2000),
                before: "<!DOCTYPE svg [<!ENTITY a '\(String(repeating: "x", count: 2000))'>]>"),
            "megabyte"
        ),
        ("a parameter entity", svg("", before: "<!DOCTYPE svg [<!ENTITY % a 'x'>]>"), "parameter"),
        ("a file", svg("", "&a;", before: "<!DOCTYPE svg [<!ENTITY a SYSTEM 'file:///etc/passwd'>]>"), "external"),
        (
            "deep nesting", svg("", String(repeating: "<g>", count: 300) + String(repeating: "</g>", count: 300)),
            "256 levels deep"
        ),
        ("no width", svg("width='0' height='9'"), "zero"),
        ("endless", svg("width='1e300' height='9'"), "no decoder"),
    ]

    @Test(arguments: bombs.indices) func `bombs are refused before a parser sees them`(_ index: Int) throws {
        let (name, bytes, words) = Self.bombs[index]
        let error = #expect(throws: RenderError.self) { try ImageHeader.probe(bytes) }
        #expect(error?.message.contains(words) == true, "\(name): \(error as Any)")
    }

    @Test func `elements that multiply by use are refused in time`() async throws {
        var content = "<g id='a0'><rect width='1' height='1'/></g>"
        for level in 1...9 {
            let uses = String(repeating: "<use xlink:href='#a\(level - 1)'/>", count: 20)
            content += "<g id='a\(level)'>\(uses)</g>"
        }
        let job = try Self.job(Self.svg("width='9' height='9'", content), "png")
        let error = await DecodedFormatsTests.refusal(RenderFixture.renderer, job)
        #expect([.undecodable, .deadline].contains(error?.code), "\(error as Any)")
    }

    @Test func `nothing outside the file is opened, and no script runs`() async throws {
        let listener = try #require(CountingListener())
        defer { listener.close() }
        let planted = "/tmp/svg-test-\(getpid())-planted.png"
        let red = try RenderFixture.png(RenderFixture.image(9, 9) { _, _ in [255, 0, 0] })
        let file = open(planted, O_WRONLY | O_CREAT | O_TRUNC, 0o644)
        _ = red.withUnsafeBytes { write(file, $0.baseAddress, $0.count) }
        close(file)
        defer { unlink(planted) }
        let address = "http://127.0.0.1:\(listener.port)/x"
        let content =
            ["file://\(planted)", planted, address, address + ".svg#a"].map { reference in
                """
                <image width='9' height='9' xlink:href='\(reference)'/><image width='9' height='9' href='\(reference)'/>
                <use xlink:href='\(reference)'/><style>@import url("\(reference)"); rect { fill: url(\(reference)) }</style>
                <rect width='9' height='9' fill='url(\(reference)#a)' filter='url(\(reference)#b)'/>
                <xi:include xmlns:xi='http://www.w3.org/2001/XInclude' href='\(reference)' parse='text'/>
                """
            }.joined() + "<script>document.documentElement.setAttribute('width', 99)</script>"
        let bytes = Self.svg(
            "width='9' height='9' onload='alert(1)'", content, before: "<?xml-stylesheet href='\(address).css'?>")
        let pool = WorkerPool(WorkerPoolTests.configuration { $0.drawsText = true })
        for renderer in [RenderFixture.renderer, pool] as [any Rendering] {
            let picture = try await renderer.pixels(Self.job(bytes, "orient:off"))
            #expect(picture.width == 9)
            for at in stride(from: 0, to: picture.pixels.count, by: 4) where picture.pixels[at + 3] > 0 {
                #expect(picture.pixels[at] == 0, "red of the planted file")
            }
        }
        await pool.shutdown()
        #expect(!listener.wasAsked)
    }

    @Test func `text is drawn with the machine's fonts, in workers too, where nothing else can be opened`() async throws
    {
        let text = ["sans-serif", "serif", "monospace"].enumerated().map { index, family in
            "<text x='5' y='\(30 + index * 30)' font-family='\(family)' font-size='24'>Wörter</text>"
        }.joined()
        let bytes = Self.svg("width='200' height='100'", text)
        let expected = try await RenderFixture.renderer.pixels(Self.job(bytes, "orient:off"))
        let inked = (0..<expected.pixels.count / 4).count { expected.pixels[$0 * 4 + 3] > 128 }
        #expect(inked > 400)
        let pool = WorkerPool(WorkerPoolTests.configuration { $0.drawsText = true })
        for _ in 1...3 { #expect(try await pool.pixels(Self.job(bytes, "orient:off")) == expected) }
        await pool.shutdown()
    }

    @Test func `it is decoded if the setting names it, and in workers only`() async throws {
        let job = try Self.job(Self.svg("width='9' height='9'", Self.half), "thumbnail:40,png")
        var usual = job
        usual.limits.formats = RenderLimits().formats
        #expect(await DecodedFormatsTests.refusal(RenderFixture.renderer, usual)?.code == .unsupportedFormat)
        let careful = await DecodedFormatsTests.refusal(InProcessRenderer(maxConcurrentRenders: 1), job)
        #expect(careful?.message.contains("only in render workers") == true)
    }
}

/// A listening socket that tells whether a client has connected.
private struct CountingListener {
    let port: UInt16
    private let socket: Int32

    init?() {
        let descriptor = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(descriptor, address, length) == 0 && listen(descriptor, 8) == 0
                    && getsockname(descriptor, address, &length) == 0
            }
        }
        guard isBound else { return nil }
        (socket, port) = (descriptor, UInt16(bigEndian: address.sin_port))
    }

    var wasAsked: Bool { accept(socket, nil, nil) >= 0 }
    func close() { Glibc.close(socket) }
}
