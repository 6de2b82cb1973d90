import Testing

@testable import Variants

@Suite struct RecipeErrorTests {
    static func message(_ text: String, _ presets: RecipePresets = .none) -> String {
        do throws(RecipeError) {
            return "parsed as " + (try Recipe(text, presets: presets).description)
        } catch {
            return error.description
        }
    }

    @Test(arguments: [
        ("circle,thumbnial:300", "step 2, `thumbnial:300`: unknown step; did you mean `thumbnail`?"),
        ("circle,thumbnial", "step 2, `thumbnial`: unknown step; did you mean `thumbnail`?"),
        ("resize:3", "step 1, `resize:3`: unknown step"),
        ("thumbnail", "step 1, `thumbnail`: expected a size after `thumbnail:`"),
        ("thumbnail:0x10", "step 1, `thumbnail:0x10`: the width must be 1…8192, not `0`"),
        ("dpr:2,thumbnail:x5000", "step 2, `thumbnail:x5000`: the height must be 1…8192 after `dpr:2`, not `5000`"),
        ("circle,,jpeg", "step 2, ``: a step is empty; remove the extra comma"),
        ("jpeg,circle", "step 1, `jpeg`: the output `jpeg` must be the last step of the recipe"),
        ("orient:off,orient:off", "step 2, `orient:off`: `orient` is given twice"),
        (
            "jpeg:progresive",
            "`progresive`; expected one of `lossless`, `transcode`, `progressive`, `max=`, `score=`, `chroma=`, `effort=`, `keep=`; did you mean"
        ),
        ("jpeg:-1", "step 1, `jpeg:-1`: the quality must be a whole number, not `-1`"),
        ("jpeg:101", "step 1, `jpeg:101`: the quality must be 1…100, not `101`"),
        ("png:80", "step 1, `png:80`: `png` is lossless and has no quality; remove `80`"),
        ("gif:80", "step 1, `gif:80`: `gif` has no quality; remove `80`"),
        ("gif:lossless", "step 1, `gif:lossless`: `gif` cannot be lossless; expected `png` or `webp:lossless`"),
        ("thumbnail:3x3:fill:gravity=nort", "did you mean `north`?"),
        ("thumbnail:3x3:gravty=north", "did you mean `gravity=`?"),
        ("@card", "step 1, `@card`: unknown preset, because no presets are configured"),
        ("overlay:a:scale=1:fit=9x9", "`scale=` and `fit=` cannot be combined"),
        ("overlay:a:gap=9", "`gap=` requires `tile`, because it is the space between tiles"),
        ("overlay:a:tile:offset=9x9", "`tile` always starts at the center; remove `offset=`"),
        ("overlay:a:offset=9", "the offset must be two distances such as `10x0`, because the gravity is `centre`"),
        ("overlay:a:offset=1x2x3", "the offset must be one distance or two such as `10x5pct`, not `1x2x3`"),
        ("overlay:a:tile:gap=-3", "the gap must be a whole number of pixels, not `-3`"),
        ("scaled:nan", "the factor must be a plain decimal number such as `1.5`, not `nan`"),
    ])
    func `an error names the step, what was expected and the nearest spelling`(text: String, part: String) {
        #expect(Self.message(text).contains(part), "\(Self.message(text))")
    }

    @Test(arguments: [
        ("resize:300", "thumbnail:300"), ("resize:300*200", "thumbnail:300x200"),
        ("thumbnail:300×200", "thumbnail:300x200"),
        ("thumbnail:300px", "thumbnail:300"), ("fill:300x200", "thumbnail:300x200:fill"), ("w=300", "thumbnail:300x"),
        ("height:200", "thumbnail:x200"), ("rotate:-90", "rotate:270"), ("rotate:-90.5", "rotate:269.5"),
        ("300", "thumbnail:300"), ("300x200", "thumbnail:300x200"), ("x200", "thumbnail:x200"), ("50%", "scaled:50%"),
        ("300×200:cover", "thumbnail:300x200:fill"), ("thumbnail:300x200:cover", "thumbnail:300x200:fill"),
        ("thumbnail:300x200:fit=contain", "thumbnail:300x200:fit"), ("thumbnail:50%", "scaled:50%"),
        ("thumbnail:300x200:gravity=face", "thumbnail:300x200:gravity=attention:fill"),
        ("thumbnail:300x200:fill:gravity=top", "thumbnail:300x200:fill:gravity=north"),
        ("crop:30x20:gravity=faces", "crop:30x20:gravity=attention"),
        ("watermark:logo", "overlay:logo"), ("background:white", "background:ffffff"), ("sepia", "tint:704214"),
        ("border:4:black", "border:4:000000"), ("bg:transparent", "background:00000000"),
        ("jpeg:q80", "jpeg:80"), ("rotate:-450", "rotate:270"),
        ("rotate:-0", "rotate:0"),
        ("heic", "avif"), ("webp:q=80", "webp:80"), ("format=webp", "webp"),
        ("radius:20px", "rounded-mask:20"),
        ("background:#ff8000", "background:ff8000"), ("tint:#f80", "tint:f80"), ("gray", "grayscale"),
    ]) func `what other tools write leads to what is written here`(written: String, meant: String) throws {
        #expect(Self.message(written).hasSuffix("did you mean `\(meant)`?"), "\(Self.message(written))")
        #expect(Self.message("circle,\(written)").contains("step 2"))
        _ = try Recipe(meant)
    }

    @Test(arguments: [
        ("quality:70", "write the quality after the output format, as in `webp:70`, or `original:70` to keep"),
        ("q=70", "as in `webp:70`"), ("quality:high", "as in `webp:80`"),
        ("gravity=face", "as in `thumbnail:300x200:fill:gravity=attention`"),
        ("strip", "unless the output has `keep=`; to remove credits too, use `jpeg:keep=none`"),
        ("lqip", "contain `thumbhash`, `blurhash` and `averageColour`; for a tiny picture, use `thumbnail:32,webp:30`"),
        ("crop:50%x50%", "the size is in pixels, as in `crop:640x480`; `scaled:50%` scales the complete picture"),
        ("thumbnail:50%x40%", "`scaled:50%`"), ("keep=exif", "an argument of the output"),
    ]) func `what is no step here leads to what there is`(written: String, advice: String) throws {
        let message = Self.message(written)
        #expect(message.contains(advice) && !message.contains("did you mean"), "\(message)")
        for spelling in message.split(separator: "`").enumerated().filter({ $0.offset % 2 == 1 }).map(\.element)
        where spelling.contains(":") && spelling != written { _ = try Recipe(String(spelling)) }
    }

    @Test(arguments: [
        ("thumbnail:300,dpr:2", "no step follows; did you mean `dpr:2,thumbnail:300`?"),
        ("thumbnail:300,dpr:2,webp", "step 2, `dpr:2`: `dpr` applies to later steps, but no step follows"),
        ("circle,dpr:2,orient:off", "did you mean `dpr:2,circle,orient:off`?"),
        ("dpr:2", "no step follows, as in `dpr:2,thumbnail:300`"), ("dpr:2,dpr:3", "step 2, `dpr:3`: `dpr` applies"),
        ("circle,dpr:2,dpr:3", "no step follows, as in `dpr:2,thumbnail:300`"),
        ("thumbnail:300,dpr", "expected a ratio such as `2` after `dpr:`"),
    ]) func `a dpr that no step follows is an error`(written: String, part: String) throws {
        #expect(Self.message(written).contains(part), "\(Self.message(written))")
        // An address with a ratio before any recipe.
        #expect(try Recipe("dpr:2,webp").description == "webp")
    }

    @Test func `the message of a recipe quotes a single step once`() {
        #expect(throws: RecipeError.self) { try Recipe("blr:3") }
        do { _ = try Recipe("blr:3") } catch {
            #expect(error.message(of: "blr:3") == "recipe `blr:3`: unknown step; did you mean `blur`?")
            #expect(error.message(of: "blr:3,webp").hasPrefix("recipe `blr:3,webp`: step 1, `blr:3`: unknown step"))
        }
    }

    @Test func `formats are known by their other names`() throws {
        for name in ["jpg", "jpe", "jfif"] { #expect(try Recipe(name + ":70").description == "jpeg:70") }
        for name in ["heic", "svg"] {
            #expect(
                Self.message(name).contains("files cannot be written; the outputs are `jpeg`"), "\(Self.message(name))")
        }
    }

    @Test func `a colour may have three digits`() throws {
        #expect(try Recipe("background:f80").description == "background:ff8800")
        #expect(try Recipe("tint:ABC").description == "tint:aabbcc")
        #expect(try Recipe("background:f80") == Recipe("background:ff8800ff"))
        for text in ["background:ff", "background:f80c", "tint:f80c", "background:f8g"] {
            #expect(Self.message(text).contains("hex digits"), "\(Self.message(text))")
        }
    }

    @Test(arguments: [
        "thumbnail:", "thumbnail:x", "thumbnail:3x4x5", "thumbnail:3.5", "thumbnail:-3x4", "thumbnail:8193",
        "thumbnail:99999999999999999999999", "thumbnail:300x:fill", "thumbnail:3x3:fill:pad", "thumbnail:3x3:up:up",
        "thumbnail:3x3:fit:gravity=north", "thumbnail:3x3:pad:gravity=entropy", "thumbnail:3x3:fill:focus=2x0",
        "thumbnail:3x3:fill:focus=0.5", "thumbnail:3x3:fill:focus=0x0:gravity=north", "thumbnail:3x3:resample=good",
        "thumbnail:3x3:7", "thumbnail:3x3:fill:gravity=", "Thumbnail:3", "thumbnail:3X3", "thumbnail:٣x٣",
        "scaled", "scaled:0", "scaled:-1", "scaled:+1", "scaled:1e3", "scaled:inf", "scaled:NaN", "scaled:.5",
        "scaled:1.", "scaled:1.2.3", "scaled:0x10", "scaled:101", "scaled:%", "scaled:0.0000001", "scaled:1,5",
        "rounded-mask", "rounded-mask:1:2", "rounded-mask:1:2:3", "rounded-mask:1:2:3:4:5", "rounded-mask:101%",
        "rounded-mask:-1", "rounded-mask:1px", "circle:1", "circle:", "mask", "mask:", "mask:../x", "mask:-a",
        "mask:a.png", "mask:a:fit=fill", "mask:a:cover", "crop", "crop:10x", "crop:10x10+1", "crop:10x10+1+2+3",
        "crop:10x10-1-2", "crop:0x1", "crop:1x1+1+1:gravity=north", "crop:16777216x1", "trim:256", "trim:1.5", "trim:",
        "rotate", "rotate:361", "rotate:-90", "flip", "flip:vh", "flip:h:v", "blur", "blur:0.2", "blur:101",
        "sharpen:0.1", "pixelate:0", "grayscale:1", "tint:12345", "tint:11223344", "tint:#112233", "brightness:4.1",
        "brightness", "contrast:-1", "saturation:50%", "background:gggggg", "background",
        "extend:1:2", "extend:-1", "extend:8193", "border:1", "border:0:000000", "border:1:00000000", "overlay",
        "overlay:a:gravity=attention", "overlay:a:opacity=1.1", "overlay:a:scale=0",
        "overlay:a:scale=101%", "overlay:a:scale=0%", "overlay:a:fit=0x1", "overlay:a:fit=", "overlay:a:from=8193",
        "overlay:a:offset=1.5x1", "overlay:a:offset=x1", "overlay:a:offset=8193x0", "overlay:a:offset=101%x0",
        "overlay:a:offset=--1x0", "overlay:a:offset=+1x0", "overlay:a:tile:gravity=north", "overlay:a:tile=1", "dpr",
        "dpr:0", "dpr:9",
        "dpr:0.1,blur:1", "orient", "orient:on", "orient:off:x", "profile:drop", "frames:0", "frames:some", "page:0",
        "page:501", "page:last",
        "frames:-1", "jpeg:0", "jpeg:lossless", "jpeg:80.5", "jpeg:80:90", "webp:80:lossless", "webp:progressive",
        "webp:max=0", "webp:score=9", "webp:score=96", "webp:score=70.5", "webp:score=-70", "webp:score=",
        "webp:score=1e1",
        "webp:score=70:score=70", "webp:score=99999999999999999999", "webp:80:score=70", "webp:lossless:score=70",
        "png:score=70", "gif:score=70", "tiff:score=70", "webp:max=20KB", "webp:max=0.5", "webp:max=9999999999999",
        "webp:max=-1kB", "webp:max=1e3",
        "jpeg:effort=3", "gif:effort=3", "avif:effort=10", "avif:effort=-1", "avif:effort=", "png:effort=1.5",
        "webp:chroma=full",
        "jpeg:chroma=4:2:0", "jpeg:chroma=", "avif:lossless:chroma=half", "jpeg:chroma=full:chroma=half",
        "jpeg:keep=", "jpeg:keep=gps", "png:keep=iptc", "jpeg:keep=none+position", "jpeg:keep=exif+",
        "jpeg:keep=exif:keep=icc", "jpeg:quality=80", "jpeg,png",
        "jpeg,", ",", " jpeg", "jpeg ", "@", "@a b", "jpeg\n", "circle,\0", "🙂", "thumbnail:3🙂x4",
    ])
    func `bad text is refused with the step it stands in`(text: String) {
        #expect(throws: RecipeError.self) { try Recipe(text) }
        #expect(Self.message(text).hasPrefix("step "), "\(Self.message(text))")
    }

    @Test func `messages are bounded and show no control characters`() {
        let text = "\u{1b}[31m" + String(repeating: "x", count: 1500)
        let message = Self.message(text)
        #expect(message.count < 200)
        #expect(!message.unicodeScalars.contains { $0.value < 0x20 })
    }

    @Test func `random bytes never crash the parser, and what parses is canonical`() throws {
        var random = SeededGenerator(seed: 7)
        let pieces = [
            "thumbnail", ":", ",", "300", "x", "=", "+", "%", "pct", "fill", "gravity", "jpeg", "max", "kB", "0.5",
            "@", "-", "rounded-mask", "crop", "circle", "é", ".", "99999999999999999999", "frames", "all", "dpr",
        ]
        var parsed = 0
        for _ in 0..<20_000 {
            let text = (0..<Int.random(in: 0...7, using: &random)).map { _ in
                pieces[Int.random(in: 0..<pieces.count, using: &random)]
            }.joined()
            guard let recipe = try? Recipe(text) else { continue }  // refusals are expected here
            parsed += 1
            #expect(try Recipe(recipe.description) == recipe)
        }
        #expect(parsed > 100)
    }
}
