import Testing

@testable import Variants

@Suite struct RecipeOutputTests {
    static func header(_ format: ImageFormat, alpha: Bool = false) -> ImageHeader {
        ImageHeader(format: format, encodedWidth: 400, encodedHeight: 300, hasAlpha: alpha)
    }

    @Test(arguments: [
        ("", ImageFormat.jpeg, false, ImageFormat.jpeg),
        ("original", .png, true, .png),
        ("original", .png, false, .png),
        ("original", .webp, false, .webp),
        ("original", .avif, true, .avif),
        ("original", .gif, true, .gif),
        ("original", .tiff, false, .jpeg),
        ("original", .tiff, true, .png),
        ("original", .heif, false, .jpeg),
        ("original", .jxl, false, .jpeg),
        ("original", .svg, true, .svg),
        ("circle", .svg, true, .svg),
        ("circle,webp", .svg, true, .webp),
        ("circle", .jpeg, false, .png),
        ("rounded-mask:4,original", .jpeg, false, .png),
        ("mask:a", .gif, false, .png),
        ("mask:a", .webp, false, .webp),
        ("circle,background:ffffff", .jpeg, false, .jpeg),
        ("circle,background:ffffff80", .jpeg, false, .png),
        ("background:ffffff,circle", .jpeg, false, .png),
        ("thumbnail:30:pad", .jpeg, false, .png),
        ("background:000000,thumbnail:30:pad", .jpeg, false, .jpeg),
        ("background:00000080,thumbnail:30:pad", .jpeg, false, .png),
        ("thumbnail:30:pad,background:000000", .jpeg, false, .jpeg),
        ("thumbnail:30:pad", .gif, false, .gif),
        ("thumbnail:30", .gif, true, .gif),
        ("rotate:45", .jpeg, false, .png),
        ("rotate:45", .gif, false, .png),
        ("rotate:90", .jpeg, false, .jpeg),
        ("background:ffffff,rotate:45", .jpeg, false, .jpeg),
        ("extend:4", .jpeg, false, .png),
        ("extend:0", .jpeg, false, .jpeg),
        ("original:lossless", .jpeg, false, .png),
        ("circle,jpeg", .png, true, .jpeg),
        ("circle,gif", .gif, true, .gif),
    ])
    func `the format follows the original, the steps' alpha and what is written`(
        text: String, format: ImageFormat, alpha: Bool, expected: ImageFormat
    ) throws {
        #expect(try Recipe(text).resolvedOutput(for: Self.header(format, alpha: alpha)).format == expected)
    }

    @Test func `an SVG is drawn as pixels if the handling says so`() throws {
        let header = Self.header(.svg, alpha: true)
        for handling in [SVGHandling.raster, .refuse] {
            #expect(try Recipe("original").resolvedOutput(for: header, svg: handling).format == .png)
            #expect(try Recipe("auto").resolvedOutput(for: header, negotiated: [.webp], svg: handling).format == .webp)
        }
    }

    @Test func `auto, and no output at all, take the negotiated format, original and explicit ones do not`() throws {
        let header = Self.header(.jpeg)
        #expect(try Recipe("circle,auto").resolvedOutput(for: header, negotiated: [.webp]).format == .webp)
        #expect(try Recipe("circle").resolvedOutput(for: header, negotiated: [.avif]).format == .avif)
        #expect(try Recipe("auto").resolvedOutput(for: header, negotiated: [.jxl]).format == .jxl)
        #expect(try Recipe("circle,auto").resolvedOutput(for: header, negotiated: [.jpeg]).format == .png)
        #expect(try Recipe("auto").resolvedOutput(for: header, negotiated: [.jxl, .webp]).format == .jxl)
        #expect(try Recipe("auto").resolvedOutput(for: header, negotiated: [.heif, .webp]).format == .webp)
        #expect(try Recipe("auto").resolvedOutput(for: header).format == .jpeg)
        #expect(try Recipe("original").resolvedOutput(for: header, negotiated: [.webp]).format == .jpeg)
        #expect(try Recipe("png").resolvedOutput(for: header, negotiated: [.webp]).format == .png)
    }

    @Test(arguments: [
        ("auto", 4000, 2000, ImageFormat.jxl), ("auto", 4000, 2001, .webp),
        ("thumbnail:4000x2000,auto", 9000, 9000, .jxl),
        ("thumbnail:4000x4000:fill,auto", 9000, 9000, .webp), ("scaled:0.5,auto", 8000, 4000, .jxl),
        ("scaled:3,auto", 2000, 1000, .webp), ("crop:2000x4000,auto", 9000, 9000, .jxl),
        ("thumbnail:100,scaled:40,auto", 9000, 9000, .webp), ("jxl", 9000, 9000, .jxl),
    ]) func `a JPEG XL that may not fit in a worker's memory is not negotiated`(
        text: String, width: Int, height: Int, expected: ImageFormat
    ) throws {
        let header = ImageHeader(format: .jpeg, encodedWidth: width, encodedHeight: height)
        #expect(try Recipe(text).resolvedOutput(for: header, negotiated: [.jxl, .webp]).format == expected)
    }

    @Test func `a PNG is lossless unless its original has few colours`() throws {
        for (format, few, text, isLossless) in [
            (ImageFormat.png, false, "", true), (.png, true, "", false), (.png, true, "png", false),
            (.png, true, "png:lossless", true), (.png, true, "original:lossless", true), (.gif, true, "png", false),
            (.jpeg, false, "circle", true),
        ] {
            let header = ImageHeader(format: format, encodedWidth: 400, encodedHeight: 300, hasFewColors: few)
            let output = try Recipe(text).resolvedOutput(for: header)
            #expect(output.format == .png && output.isLossless == isLossless, "\(text) of \(format)")
        }
    }

    @Test func `WebP goes before other formats where the original is a PNG or GIF`() throws {
        for (format, expected) in [(ImageFormat.png, ImageFormat.webp), (.gif, .webp), (.jpeg, .jxl), (.webp, .jxl)] {
            let output = try Recipe("auto").resolvedOutput(for: Self.header(format), negotiated: [.jxl, .avif, .webp])
            #expect(output.format == expected)
        }
        func format(_ recipe: String, _ negotiated: [ImageFormat], _ effort: RenderEffort) throws -> ImageFormat {
            try Recipe(recipe).resolvedOutput(for: Self.header(.png), negotiated: negotiated, effort: effort).format
        }
        #expect(try format("auto", [.jxl], .quick) == .jxl)
        // With more effort AVIF does.
        #expect(try format("auto", [.jxl, .webp, .avif], .thorough) == .avif)
        #expect(try format("auto:effort=1", [.jxl, .webp, .avif], .thorough) == .webp)
        #expect(try format("auto:effort=2", [.jxl, .webp, .avif], .quick) == .avif)
    }

    @Test(arguments: [
        ("jpeg", "jpeg:quality=80:lossless=no:max=none:progressive=no:chroma=auto:effort=none:keep=copyright"),
        ("jpeg:80", "jpeg:quality=80:lossless=no:max=none:progressive=no:chroma=auto:effort=none:keep=copyright"),
        ("webp", "webp:quality=82:lossless=auto:max=none:progressive=no:chroma=auto:effort=none:keep=copyright"),
        ("avif", "avif:quality=70:lossless=no:max=none:progressive=no:chroma=auto:effort=none:keep=copyright"),
        ("jxl", "jxl:quality=79:lossless=auto:max=none:progressive=no:chroma=auto:effort=none:keep=copyright"),
        (
            "png:progressive",
            "png:quality=100:lossless=yes:max=none:progressive=yes:chroma=auto:effort=none:keep=copyright"
        ),
        ("gif", "gif:quality=100:lossless=yes:max=none:progressive=no:chroma=auto:effort=none:keep=copyright"),
        (
            "webp:lossless",
            "webp:quality=100:lossless=yes:max=none:progressive=no:chroma=auto:effort=none:keep=copyright"
        ),
        (
            "webp:max=20kB",
            "webp:quality=100:lossless=auto:max=20000:progressive=no:chroma=auto:effort=none:keep=copyright"
        ),
        (
            "webp:70:max=1KiB",
            "webp:quality=70:lossless=no:max=1024:progressive=no:chroma=auto:effort=none:keep=copyright"
        ),
        (
            "original:score=70:max=9kB",
            "jpeg:quality=100:lossless=no:max=9000:progressive=no:chroma=auto:effort=none:keep=copyright:score=70"
        ),
        (
            "original:70:progressive",
            "jpeg:quality=70:lossless=no:max=none:progressive=yes:chroma=auto:effort=none:keep=copyright"
        ),
        (
            "profile:keep,jpeg:keep=exif",
            "jpeg:quality=80:lossless=no:max=none:progressive=no:chroma=auto:effort=none:keep=copyright+exif+icc"
        ),
        ("webp:82", "webp:quality=82:lossless=no:max=none:progressive=no:chroma=auto:effort=none:keep=copyright"),
        (
            "avif:chroma=full:effort=5",
            "avif:quality=70:lossless=no:max=none:progressive=no:chroma=full:effort=5:keep=copyright"
        ),
        (
            "avif:lossless:chroma=full",
            "avif:quality=100:lossless=yes:max=none:progressive=no:chroma=auto:effort=none:keep=copyright"
        ),
        (
            "original:chroma=half",
            "jpeg:quality=80:lossless=no:max=none:progressive=no:chroma=half:effort=none:keep=copyright"
        ),
        (
            "profile:keep,gif",
            "gif:quality=100:lossless=yes:max=none:progressive=no:chroma=auto:effort=none:keep=copyright"
        ),
    ])
    func `a resolved output has every option written out`(text: String, description: String) throws {
        #expect(try Recipe(text).resolvedOutput(for: Self.header(.jpeg)).description == description)
    }

    @Test func `one output resolves alike however it was asked for`() throws {
        let header = Self.header(.webp)
        let outputs = try ["", "auto", "original", "webp"].map { try Recipe($0).resolvedOutput(for: header) }
        #expect(Set(outputs).count == 1)
        // With a quality it is lossy as asked.
        let lossy = try ["auto:82", "webp:82", "original:82"].map { try Recipe($0).resolvedOutput(for: header) }
        #expect(Set(lossy).count == 1 && lossy[0] != outputs[0])
    }
}
