import PipelineSupport
import TestSupport
import Testing

@testable import ImageServer
@testable import Variants

@Suite struct ImgproxyChoiceTests {
    @Test func `steps have a fixed order, whatever the order of the options`() throws {
        let parts = [
            "ar:0", "c:100:50:nowe", "rs:fill:40:40/g:no:0:1", "rot:90", "fl:1", "blur:1", "sh:0.1", "pix:3", "bg:fff",
            "ex:1", "pd:2", "wm:0.5:soea:3:0.1:0.5",
        ]
        var numbers = FuzzRandom(seed: 1)
        var texts: Set<String> = []
        for _ in 0..<20 {
            let options = parts.shuffled(using: &numbers).joined(separator: "/")
            texts.insert(try ImgproxyTesting.steps(options, ImgproxyTesting.header(200, 100)) { $0.watermark = "logo" })
        }
        #expect(
            texts == [
                "orient:off,crop:50x100+0+0,thumbnail:40x80:stretch:up,rotate:90,flip:h,crop:40x40+20+0,blur:1,sharpen:0.3,"
                    + "pixelate:3,background:ffffff,extend:2,"
                    + "overlay:logo:gravity=south-east:opacity=0.5:fit=22x22:offset=3x4"
            ])
    }

    @Test func `plain sizes have the short form that other URLs have`() throws {
        for (options, steps) in [
            ("rs:fit:300:200", "thumbnail:300x200"), ("w:300", "thumbnail:300x"), ("h:200", "thumbnail:x200"),
            ("rs:fit:300:200:1", "thumbnail:300x200:up"), ("rs:fill:300:200", "thumbnail:300x200:fill"),
            ("rs:fill:300:200:1", "thumbnail:300x200:fill:up"), ("rs:fill:300", "thumbnail:300x"),
            ("rs:fill:300:200/g:sm", "thumbnail:300x200:fill:gravity=attention"),
            ("rs:auto:300:200", "thumbnail:300x200:fill"), ("rs:auto:200:300", "thumbnail:200x300"),
            ("rs:fill:300:200/rot:90", "thumbnail:200x300:fill,rotate:90"), ("", ""),
            ("rs:force:300:200", "thumbnail:300x200:stretch:up"), ("rs:fit:4000:3000", "thumbnail:4000x3000"),
            ("rs:fill-down:4000:4000/g:so", "thumbnail:4000x4000:fill:gravity=south"),
            ("rs:fill:5000:200", "crop:4000x200+0+1400"), ("rs:fill:5000:200:1", "thumbnail:5000x200:fill:up"),
            ("w:300/dpr:2", "thumbnail:600x450:stretch:up"),
            ("mw:300/w:100", "thumbnail:300x225:stretch:up,crop:100x225+100+0"),
        ] {
            #expect(try ImgproxyTesting.steps(options, ImgproxyTesting.header(4000, 3000)) == steps, "\(options)")
        }
    }

    // MARK: Formats

    @Test func `the format is asked for, negotiated, preferred or fitting`() throws {
        func output(
            _ options: String, _ header: ImageHeader, _ accepted: Set<ImageFormat> = [.jxl, .avif, .webp],
            change: ((inout ImgproxySettings) -> Void)? = nil
        ) throws -> String {
            let text = try ImgproxyTesting.output(options, header, accepted: accepted, set: change)
            return String(text.prefix { $0 != ":" })
        }
        let jpeg = ImgproxyTesting.header()
        let all = { (settings: inout ImgproxySettings) in settings.autoFormats = [.webp, .avif, .jxl] }
        #expect(try output("", jpeg) == "jpeg")
        #expect(try output("f:png", jpeg) == "png")
        #expect(try output("", jpeg, change: all) == "jxl")
        #expect(try output("", jpeg, [.avif, .webp], change: all) == "avif")
        #expect(try output("", jpeg, [.webp, .png], change: all) == "webp")
        #expect(try output("", jpeg, [.png], change: all) == "jpeg")
        #expect(try output("f:png", jpeg, change: all) == "png")
        #expect(try output("f:png", jpeg) { $0.enforceFormats = [.webp] } == "webp")
        #expect(try output("f:png", jpeg, [.avif]) { $0.enforceFormats = [.webp] } == "png")
        let moving = ImgproxyTesting.header(50, 50, .gif, pages: 3)
        #expect(
            try output(
                "", moving,
                change: {
                    $0.autoFormats = [.avif, .webp]; $0.animationFrames = 9
                }) == "webp")
        #expect(try output("", moving, change: { $0.autoFormats = [.avif, .webp] }) == "avif")
        let webp = ImgproxyTesting.header(50, 50, .webp)
        #expect(try output("", webp) == "jpeg")
        #expect(try output("", ImgproxyTesting.header(50, 50, .webp, hasAlpha: true)) == "png")
        #expect(try output("bg:fff", ImgproxyTesting.header(50, 50, .webp, hasAlpha: true)) == "jpeg")
        #expect(try output("pd:5", webp) == "png" && output("pd:5/bg:000", webp) == "jpeg")
        #expect(try output("ex:1", webp) == "png" && output("pd:5", jpeg) == "jpeg")
        #expect(try output("", ImgproxyTesting.header(50, 50, .webp, pages: 3)) { $0.animationFrames = 2 } == "gif")
        #expect(try output("", webp) { $0.preferredFormats = [.avif, .webp] } == "webp")
        #expect(
            try output("", ImgproxyTesting.header(50, 50, .tiff, hasAlpha: true)) { $0.preferredFormats = [.jpeg] }
                == "jpeg")
    }

    @Test func `frames are decoded only if the result is animated`() throws {
        let moving = ImgproxyTesting.header(50, 50, .gif, pages: 8)
        #expect(try ImgproxyTesting.steps("", moving) == "")
        #expect(try ImgproxyTesting.steps("", moving) { $0.animationFrames = 100 } == "frames:all")
        #expect(try ImgproxyTesting.steps("f:webp", moving) { $0.animationFrames = 5 } == "frames:5")
        #expect(try ImgproxyTesting.steps("f:png", moving) { $0.animationFrames = 5 } == "")
        let secure = { (settings: inout ImgproxySettings) in
            (settings.securityOptions, settings.animationFrames) = (true, 5)
        }
        #expect(try ImgproxyTesting.steps("maf:3", moving, set: secure) == "frames:3")
        #expect(try ImgproxyTesting.steps("maf:7", moving, set: secure) == "frames:5")
        #expect(
            try ImgproxyTesting.steps("maf:7", moving) {
                secure(&$0)
                $0.securityCeiling.animationFrames = 6
            } == "frames:6")
    }

    @Test func `qualities have an order`() throws {
        #expect(try ImgproxyTesting.output("f:webp") == "webp:79")
        #expect(try ImgproxyTesting.output("f:avif") == "avif:63")
        #expect(try ImgproxyTesting.output("f:jxl") == "jxl:77")
        #expect(try ImgproxyTesting.output("") == "jpeg")
        #expect(try ImgproxyTesting.output("f:webp/fq:webp:50:jpeg:40") == "webp:50")
        #expect(try ImgproxyTesting.output("fq:webp:50:jpg:40") == "jpeg:40")
        #expect(try ImgproxyTesting.output("q:30/fq:jpeg:40") == "jpeg:30")
        #expect(try ImgproxyTesting.output("q:0") { $0.quality = 60 } == "jpeg:60")
        #expect(try ImgproxyTesting.output("f:png/q:30") == "png")
        #expect(try ImgproxyTesting.output("mb:20000") == "jpeg:80:max=20kB")
        #expect(try ImgproxyTesting.output("f:png/mb:20000") == "png")
    }

    @Test func `metadata and profiles are kept as asked`() throws {
        #expect(try ImgproxyTesting.output("kcr:0") == "jpeg:keep=none")
        #expect(try ImgproxyTesting.output("sm:0") == "jpeg:keep=exif+iptc+position+xmp")
        #expect(try ImgproxyTesting.output("sm:0/f:gif") == "gif:keep=position+xmp")
        #expect(try ImgproxyTesting.output("sm:0/f:tiff") == "tiff:keep=iptc+position+xmp")
        #expect(try ImgproxyTesting.output("") { $0.stripMetadata = false } == "jpeg:keep=exif+iptc+position+xmp")
        #expect(try ImgproxyTesting.steps("scp:0") == "profile:keep")
        #expect(try ImgproxyTesting.steps("scp:0/f:gif") == "")
        #expect(
            try ImgproxyTesting.steps("ar:0") == "orient:off"
                && ImgproxyTesting.steps("") { $0.autoRotate = false } == "orient:off")
    }

    @Test func `some originals are sent unchanged`() throws {
        #expect(try ImgproxyTesting.output("skp:jpg:png/w:10") == "original")
        #expect(try ImgproxyTesting.output("skp:png/w:10") == "jpeg")
        #expect(try ImgproxyTesting.output("skp:jpg/w:10/f:png") == "png")
        #expect(try ImgproxyTesting.output("skp:jpg/w:10/f:jpg") == "original")
        #expect(try ImgproxyTesting.output("skp:jpg", accepted: [.webp]) { $0.autoFormats = [.webp] } == "original")
        #expect(try ImgproxyTesting.output("w:10") { $0.skipFormats = [.jpeg] } == "original")
    }

    @Test func `an SVG is drawn as pixels`() throws {
        let drawing = ImgproxyTesting.header(200, 100, .svg, hasAlpha: true)
        #expect(throws: ImgproxyProblem.self) { try ImgproxyTesting.output("w:10/f:svg", drawing) }
        #expect(try ImgproxyTesting.output("w:10/f:png", drawing) == "png")
        #expect(try ImgproxyTesting.output("w:10", drawing) == "png")
        #expect(try ImgproxyTesting.size("w:400/f:png", drawing) == "400x200")
    }

    @Test func `results that cannot be made are refused`() throws {
        for format in ["ico", "bmp", "heic", "svg"] {
            let problem = try ImgproxyTesting.settleProblem("f:\(format)")
            #expect(problem?.status == 422 && problem?.general == "Invalid source image", "\(format)")
        }
        #expect(try ImgproxyTesting.settleProblem("rs:fit:9000:0:1")?.status == 422)
        #expect(try ImgproxyTesting.settleProblem("pd:999999999")?.status == 422)
        let secure = { (settings: inout ImgproxySettings) in settings.securityOptions = true }
        #expect(try ImgproxyTesting.settleProblem("msr:0.01", set: secure)?.status == 422)
        #expect(try ImgproxyTesting.settleProblem("msr:0.02", set: secure) == nil)
        let moving = ImgproxyTesting.header(1000, 1000, .gif, pages: 3)
        let frames = { (settings: inout ImgproxySettings) in
            (settings.securityOptions, settings.animationFrames) = (true, 9)
        }
        #expect(
            try ImgproxyTesting.settleProblem("msr:2", moving, set: frames)?.detail.contains("`max_src_resolution`")
                == true)
        #expect(try ImgproxyTesting.settleProblem("msr:2/mafr:1", moving, set: frames) == nil)
        #expect(try ImgproxyTesting.settleProblem("msr:9/mafr:0.5", moving, set: frames)?.status == 422)
        #expect(try ImgproxyTesting.size("rs:fit:100:100/mrd:50", secureHeader, set: secure) == "50x25")
        #expect(
            try ImgproxyTesting.size("mrd:150", secureHeader) {
                secure(&$0); $0.maxResultDimension = 100
            } == "100x50")
        #expect(
            try ImgproxyTesting.size("mrd:150", secureHeader) {
                secure(&$0)
                $0.maxResultDimension = 100
                $0.securityCeiling.resultDimension = 120
            } == "120x60")
    }

    private let secureHeader = ImgproxyTesting.header()

    // MARK: Watermarks

    @Test(arguments: [
        ("wm:1", "overlay:logo"), ("wm:0.5:no:5", "overlay:logo:gravity=north:opacity=0.5:offset=5x0"),
        ("wm:1:soea:-0.1:2.5", "overlay:logo:gravity=south-east:offset=-20x2"),
        ("wm:1:we:1:1:0.33", "overlay:logo:gravity=west:fit=66x33:offset=1x1"),
        ("wm:1:re:4:0.1", "overlay:logo:tile:gap=4x10"), ("wm:1:re:0:0:0.5", "overlay:logo:tile:fit=100x50"),
        ("wm:0", ""), ("wm:1/wm:0", ""), ("wm:1:ce:99999:0", "overlay:logo:offset=8192x0"),
        ("wm:1:ea:10/dpr:0.5", "thumbnail:100x50:stretch:up,overlay:logo:gravity=east:offset=5x0"),
    ])
    func `watermarks are overlays`(_ options: String, _ steps: String) throws {
        #expect(try ImgproxyTesting.steps(options) { $0.watermark = "logo" } == steps)
        let names = try ImgproxyTesting.choice(options) { $0.watermark = "logo" }.overlayNames
        #expect(names == (steps.isEmpty ? [] : ["logo"]))
    }

    @Test func `a watermark needs the setting, whose opacity it multiplies`() throws {
        #expect(try ImgproxyTesting.settleProblem("wm:1")?.detail.contains("`watermark`") == true)
        #expect(try ImgproxyTesting.choice("wm:1").overlayNames.isEmpty)
        #expect(
            try ImgproxyTesting.steps("wm:0.5") { ($0.watermark, $0.watermarkOpacity) = ("logo", 0.5) }
                == "overlay:logo:opacity=0.25")
        // The padding and the extension are part of the picture.
        #expect(
            try ImgproxyTesting.steps("pd:0:100/wm:1:ce:0:0:0.5") { $0.watermark = "logo" }
                == "extend:0:100:0:100,overlay:logo:fit=200x50")
    }

    // MARK: Trim

    @Test(arguments: [
        ("t:20", "trim:20"), ("t:10", "trim"), ("t:9.6/rs:fit:50:40", "trim,thumbnail:50x40"),
        ("t:20/rs:fill:50:40/g:no", "trim:20,thumbnail:50x40:fill:gravity=north"),
        ("t:20/rs:fill-down:50:40/g:no/rot:90", "trim:20,thumbnail:40x50:fill:gravity=west,rotate:90"),
        ("t:20/rs:force:50:40:1", "trim:20,thumbnail:50x40:stretch:up"), ("t:20/w:50/dpr:2", "trim:20,thumbnail:100x"),
        ("t:20/dpr:2", "trim:20"), ("t:20/dpr:0.5", "trim:20,scaled:0.5"), ("t:20/dpr:2/el:1", "trim:20,scaled:2"),
        ("t:20/s:50:40/ex:1/bg:000/pd:3", "trim:20,thumbnail:50x40,background:000000,thumbnail:50x40:pad,extend:3"),
        ("t:20/s:50:40/ex:1:no/rot:90", "trim:20,thumbnail:40x50,rotate:90,thumbnail:50x40:pad:gravity=north"),
        ("t:20/c:30:20:soea/rot:180", "trim:20,crop:30x20:gravity=north-west,rotate:180"),
        ("t:20/c:30:0:sm", "trim:20,crop:30x65535:gravity=attention"),
        ("t:20/rs:fill:50:40/g:fp:0.25:0/fl:1", "trim:20,thumbnail:50x40:fill:focus=0.75x0,flip:h"),
        ("t:20/wm:1:ea:5:0:0.2", "trim:20,overlay:logo:gravity=east:scale=20pct:offset=5x0"),
    ])
    func `after trim the steps do not depend on the size`(_ options: String, _ steps: String) throws {
        #expect(try ImgproxyTesting.steps(options) { $0.watermark = "logo" } == steps)
        #expect(try ImgproxyTesting.steps(options, ImgproxyTesting.header(9, 8)) { $0.watermark = "logo" } == steps)
    }

    @Test func `a trim has a color and equal sides`() throws {
        func trim(_ options: String) throws -> [String] {
            try ImgproxySteps(ImgproxyTesting.choice(options).options, ImgproxyTesting.header(), limit: 0).texts
        }
        #expect(try trim("t:20:f0f:1:1") == ["trim:20:colour=ff00ff:equal=hv"])
        #expect(try trim("t::0a0b0c") == ["trim:10:colour=0a0b0c"])
        #expect(try trim("t:0::0:1") == ["trim:0:equal=v"])
    }

    @Test(arguments: [
        "g:no:1", "c:5:5:no:1", "c:0.5:0", "c:5:5:fp:0:0", "exar:1", "ex:1", "w:5/ex:1", "s:5:5/ex:1:no:1:0", "z:2",
        "mw:5", "mh:5", "rs:auto:5:5", "rs:force:5", "wm:1:no:0.1", "wm:1:no:0:0:2", "mrd:100", "s:5:5/ex:1:fp:0:0",
    ])
    func `options that need the size are refused after trim`(_ options: String) throws {
        let problem = try ImgproxyTesting.settleProblem("t:10/" + options) {
            ($0.watermark, $0.securityOptions) = ("logo", true)
        }
        #expect(problem?.status == 404 && problem?.detail.contains("`trim`") == true, "\(options)")
    }

    @Test func `random options settle to a recipe or a problem`() throws {
        var numbers = FuzzRandom(seed: 1)
        let pool = [
            "w:0", "w:1", "w:8000", "h:3", "rs:fill:7:9:1:1", "rs:fill-down:999999999:1", "rs:force:5:5",
            "rs:auto:50:1",
            "z:0.001", "z:1000:0.001", "dpr:0.001", "dpr:1000", "mw:99999", "mh:1", "el:1", "ex:1:fp:0.3:1",
            "exar:1:so:0.9:-9",
            "g:sm", "g:fp:1:1", "g:soea:999999999:-0.5", "c:0.0001:1", "c:5:5:sm", "pd:1:999999999:0:3", "rot:270",
            "fl:1:1", "wm:1:re:0.5:3:2", "wm:0.0001:no:-9:0.5:1000", "t:255", "bg:123", "f:gif", "mrd:1", "mrd:7000",
            "blur:0.0001", "pix:8192", "mb:1", "q:1", "ar:0", "sm:0", "scp:0",
        ]
        let formats: [ImageFormat] = [.jpeg, .png, .gif, .svg, .webp, .tiff]
        var settled = 0
        for _ in 0..<2000 {
            let options = (0..<5).map { _ in pool[Int.random(in: 0..<pool.count, using: &numbers)] }
            let header = ImgproxyTesting.header(
                [1, 2, 100, 65_535][Int.random(in: 0..<4, using: &numbers)], Int.random(in: 1...3000, using: &numbers),
                formats[Int.random(in: 0..<formats.count, using: &numbers)],
                orientation: Int.random(in: 1...8, using: &numbers), pages: Int.random(in: 1...4, using: &numbers))
            let choice = try ImgproxyTesting.choice(options.joined(separator: "/")) {
                ($0.watermark, $0.securityOptions, $0.animationFrames) = ("logo", true, 3)
            }
            do throws(ImgproxyProblem) {
                let recipe = try choice.settle(header, accepted: [])
                settled += 1
                for name in recipe?.overlayNames ?? [] { #expect(choice.overlayNames.contains(name)) }
            } catch { #expect([404, 422].contains(error.status), "\(options)") }
        }
        #expect(settled > 200)
    }
}
