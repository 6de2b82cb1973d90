import Testing

@testable import Variants

@Suite struct RecipeTests {
    @Test(arguments: [
        ("", ""),
        ("thumbnail:300", "thumbnail:300x300"),
        ("thumbnail:0300x080:fit", "thumbnail:300x80"),
        ("thumbnail:300x:up", "thumbnail:300x:up"),
        ("thumbnail:x200", "thumbnail:x200"),
        ("thumbnail:30x20:gravity=north-east:up:fill", "thumbnail:30x20:fill:up:gravity=north-east"),
        ("thumbnail:30x20:fill:gravity=centre", "thumbnail:30x20:fill"),
        ("thumbnail:30x20:fill:focus=0.50x1.0", "thumbnail:30x20:fill:focus=0.5x1"),
        ("thumbnail:30x20:resample=best:pad:gravity=south", "thumbnail:30x20:pad:gravity=south:resample=best"),
        ("scaled:50%", "scaled:0.5"),
        ("scaled:50pct", "scaled:0.5"),
        ("scaled:33.333333%", "scaled:0.333333"),
        ("scaled:0.3333333333", "scaled:0.333333"),
        ("scaled:2.50", "scaled:2.5"),
        ("rounded-mask:50%", "rounded-mask:50pct"),
        ("rounded-mask:8:8:8:8", "rounded-mask:8"),
        ("rounded-mask:8:08:8.0:9", "rounded-mask:8:8:8:9"),
        ("circle", "circle"),
        ("mask:Star_1:fit=stretch", "mask:Star_1"),
        ("mask:star:fit=cover", "mask:star:fit=cover"),
        ("crop:10x20+0+05", "crop:10x20+0+5"),
        ("crop:100000x20+70000+16777215", "crop:100000x20+70000+16777215"),
        ("crop:10:gravity=entropy", "crop:10x10:gravity=entropy"),
        ("trim", "trim"),
        ("trim:10", "trim"),
        ("trim:0", "trim:0"),
        ("rotate:090", "rotate:90"),
        ("rotate:360", "rotate:0"),
        ("rotate:12.50", "rotate:12.5"),
        ("flip:hv", "flip:hv"),
        ("blur:0.30", "blur:0.3"),
        ("sharpen:1.0", "sharpen"),
        ("pixelate:1", "pixelate:1"),
        ("grayscale", "grayscale"),
        ("tint:AABBcc", "tint:aabbcc"),
        ("brightness:1", "brightness:1"),
        ("contrast:0", "contrast:0"),
        ("saturation:4", "saturation:4"),
        ("background:FFFFFFFF", "background:ffffff"),
        ("background:01020300", "background:01020300"),
        ("extend:1:1:1:1", "extend:1"),
        ("extend:1:0:2:0", "extend:1:0:2:0"),
        ("border:4:ABCDEF", "border:4:abcdef"),
        ("overlay:logo:scale=0.50:opacity=1.0:gravity=south", "overlay:logo:gravity=south:scale=0.5"),
        ("overlay:logo:scale=20.0%:gravity=centre", "overlay:logo:scale=20pct"),
        ("overlay:logo:from=200:fit=50x:offset=0x-07", "overlay:logo:fit=50x:offset=0x-7:from=200x200"),
        ("overlay:logo:offset=3%:gravity=south-east", "overlay:logo:gravity=south-east:offset=3pctx3pct"),
        ("overlay:logo:offset=3:gravity=south", "overlay:logo:gravity=south:offset=0x3"),
        ("overlay:logo:offset=-0x0%", "overlay:logo"),
        ("overlay:logo:gap=5:tile", "overlay:logo:tile:gap=5x5"), ("overlay:logo:tile:gap=0x0%", "overlay:logo:tile"),
        ("circle,orient:off,frames:all,profile:keep", "orient:off,profile:keep,frames:all,circle"),
        ("frames:first", ""),
        ("frames:1", ""),
        ("frames:012", "frames:12"),
        ("circle,page:2,frames:all", "frames:all,page:2,circle"),
        ("page:1", ""),
        ("jpeg:80", "jpeg"),
        ("avif:70", "avif"),
        ("avif:80", "avif:80"),
        ("jpeg:progressive:keep=xmp+exif", "jpeg:progressive:keep=exif+xmp"),
        ("profile:keep,jpeg:keep=icc+exif", "profile:keep,jpeg:keep=exif"),
        ("jpeg:keep=copyright", "jpeg"), ("jpeg:keep=copyright+exif", "jpeg:keep=exif"),
        ("jpeg:keep=none", "jpeg:keep=none"), ("jpeg:keep=icc+none", "jpeg:keep=none+icc"),
        ("jpeg:keep=none+copyright", "jpeg"), ("png:keep=all", "png:keep=exif+icc+position+xmp"),
        ("png:lossless", "png:lossless"),
        ("tiff:lossless", "tiff"),
        ("webp:82", "webp:82"),
        ("jxl:079", "jxl:79"),
        ("original:100:max=9kB", "original:100:max=9kB"),
        ("jpeg:keep=icc:chroma=full:max=9kB", "jpeg:max=9kB:chroma=full:keep=icc"),
        ("avif:chroma=auto:effort=04", "avif:effort=4"),
        ("png:effort=6", "png:effort=6"),
        ("webp:lossless", "webp:lossless"),
        ("webp:max=20000", "webp:max=20kB"),
        ("webp:keep=icc:score=070:max=9kB", "webp:max=9kB:score=70:keep=icc"),
        ("original:effort=3:score=10", "original:score=10:effort=3"),
        ("webp:max=20KiB", "webp:max=20KiB"),
        ("webp:80:max=1.5MB", "webp:80:max=1500kB"),
        ("webp:100:max=2MB", "webp:100:max=2MB"),
        ("avif:100:max=2MB", "avif:max=2MB"),
        ("auto:70", "auto:70"),
        ("original", "original"),
    ])
    func `canonical text drops defaults and normalises numbers, names keep their spelling`(
        text: String, canonical: String
    ) throws {
        let recipe = try Recipe(text)
        #expect(recipe.description == canonical)
        #expect(try Recipe(canonical).description == canonical)
        #expect(try Recipe(canonical) == recipe)
    }

    @Test(arguments: [
        ("dpr:2,thumbnail:300x200", "thumbnail:600x400"),
        ("dpr:2,webp", "webp"),
        ("dpr:0.5,thumbnail:3x1", "thumbnail:2x1"),
        ("dpr:0.5,thumbnail:9000", "thumbnail:4500x4500"),
        ("dpr:2,circle,dpr:3,thumbnail:10x", "circle,thumbnail:30x"),
        ("dpr:1.5,crop:10x11+1+0", "crop:15x17+2+0"),
        ("dpr:1.5,rounded-mask:5:50%:0:1", "rounded-mask:7.5:50pct:0:1.5"),
        ("dpr:2,extend:0:1:2:3,border:1:000000,pixelate:4", "extend:0:2:4:6,border:2:000000,pixelate:8"),
        ("dpr:2,blur:0.2,sharpen:2,scaled:2,trim:20", "blur:0.4,sharpen:2,scaled:2,trim:20"),
        ("dpr:1.5,overlay:a:scale=2:offset=-3x2%:gravity=west", "overlay:a:gravity=west:scale=2:offset=-5x2pct"),
        ("dpr:2,overlay:a:tile:fit=10x5:gap=3:from=100x", "overlay:a:tile:fit=20x10:gap=6x6:from=200x"),
        ("dpr:0.1,overlay:a:scale=20%:offset=1x-1", "overlay:a:scale=20pct:offset=1x-1"),
        ("dpr:0.1,extend:1,border:2:ffffff,pixelate:3", "extend:1,border:1:ffffff,pixelate:1"),
    ])
    func `dpr multiplies pixels after it, half up, at least one, and is not written`(
        text: String, canonical: String
    ) throws {
        #expect(try Recipe(text).description == canonical)
    }

    @Test func `equality and hash are those of the canonical text`() throws {
        let left = try Recipe("scaled:50%,jpeg:80")
        let right = try Recipe("dpr:2,scaled:0.50,jpeg")
        #expect(left == right)
        #expect(Set([left, right]).count == 1)
        #expect(try Recipe("scaled:0.5,jpeg:81") != left)
    }

    @Test func `the steps without the output are told apart from the output`() throws {
        let recipe = try Recipe("frames:all,circle,webp:70")
        #expect(recipe.stepsDescription == "frames:all,circle")
        #expect(recipe.steps.count == 1)
        #expect(recipe.output?.quality == 70)
        #expect(recipe.frames == .all)
        #expect(Recipe().description.isEmpty)
    }

    @Test func `names of masks and overlays are listed once, in order`() throws {
        let recipe = try Recipe("mask:b,mask:a,overlay:c,mask:b:fit=cover,overlay:a")
        #expect(recipe.maskNames == ["b", "a"])
        #expect(recipe.overlayNames == ["c", "a"])
    }

    @Test func `profile keep implies keeping the ICC profile`() throws {
        let header = ImageHeader(format: .jpeg, encodedWidth: 1, encodedHeight: 1)
        for text in ["profile:keep", "profile:keep,jpeg", "jpeg:keep=icc"] {
            #expect(try Recipe(text).resolvedOutput(for: header).keep == [.copyright, .icc])
        }
        #expect(try Recipe("profile:keep,jpeg:keep=icc") == Recipe("profile:keep,jpeg"))
        #expect(try Recipe("profile:keep,jpeg:keep=none").resolvedOutput(for: header).keep == .icc)
    }

    private static let kept: [(String, KeptMetadata)] = [
        ("jpeg", .copyright), ("jpeg:keep=none", []), ("jpeg:keep=exif", [.copyright, .exif]),
        ("jpeg:keep=none+exif", .exif), ("tiff:keep=all", [.copyright, .icc, .iptc, .position, .xmp]),
        ("gif:keep=all", [.copyright, .position, .xmp]), ("auto:keep=iptc", [.copyright, .iptc]),
    ]

    @Test(arguments: kept) func `credits are kept unless the recipe says none`(text: String, kept: KeptMetadata) throws
    {
        let header = ImageHeader(format: .jpeg, encodedWidth: 1, encodedHeight: 1)
        #expect(try Recipe(text).resolvedOutput(for: header).keep == kept)
        #expect(try Recipe(Recipe(text).description).resolvedOutput(for: header).keep == kept)
    }

    @Test func `thirty-two steps and two thousand characters are the most`() throws {
        let most = Array(repeating: "circle", count: 32).joined(separator: ",")
        #expect(try Recipe(most).steps.count == 32)
        #expect(throws: RecipeError.self) { try Recipe(most + ",circle") }
        let long = "scaled:" + String(repeating: "0", count: 1992) + "1"
        #expect(try Recipe(long).description == "scaled:1")
        #expect(throws: RecipeError.self) { try Recipe("scaled:0" + long.dropFirst(7)) }
    }

    @Test func `explanation has one sentence per step`() throws {
        let recipe = try Recipe("orient:off,frames:3,thumbnail:300x200:fill,rounded-mask:50%,blur:2,webp:max=20kB")
        #expect(recipe.explanation.count == 6)
        #expect(recipe.explanation.allSatisfy { $0.hasSuffix(".") })
        #expect(recipe.explanation[2].contains("300 × 200"))
        #expect(recipe.explanation[4] == "Blurs with a sigma of 2 px.")
        #expect(recipe.explanation[5] == "Writes WebP, the best quality that fits 20000 bytes.")
    }
}
