import Testing

@testable import Variants

@Suite struct OutputDefaultsTests {
    private static func output(_ recipe: String, _ defaults: [String]) throws -> String {
        let header = ImageHeader(format: .jpeg, encodedWidth: 10, encodedHeight: 10)
        return try Recipe(recipe).resolvedOutput(for: header, defaults: try OutputDefaults(defaults)).description
    }

    @Test(arguments: [
        // Options of the recipe stay, missing ones are filled in.
        ("jpeg", ["jpeg:61:progressive"], "jpeg:quality=61:lossless=no:max=none:progressive=yes"),
        ("jpeg:90", ["jpeg:61:progressive"], "jpeg:quality=90:lossless=no:max=none:progressive=yes"),
        ("thumbnail:5", ["jpeg:61"], "jpeg:quality=61:lossless=no:max=none:progressive=no"),
        ("original", ["jpeg:61"], "jpeg:quality=61:lossless=no:max=none:progressive=no"),
        // Quality, losslessness and a budget are one choice.
        ("webp:lossless", ["webp:61"], "webp:quality=100:lossless=yes:max=none:progressive=no"),
        ("jpeg:max=20kB", ["jpeg:61"], "jpeg:quality=100:lossless=no:max=20000:progressive=no"),
        ("jpeg:90", ["jpeg:max=20kB"], "jpeg:quality=90:lossless=no:max=none:progressive=no"),
        (
            "webp", ["webp:score=70"],
            "webp:quality=100:lossless=auto:max=none:progressive=no:chroma=auto:effort=none:keep=copyright:score=70"
        ),
        ("webp:80", ["webp:score=70"], "webp:quality=80:lossless=no:max=none:progressive=no"),
        (
            "webp:score=60", ["webp:max=20kB"],
            "webp:quality=100:lossless=auto:max=none:progressive=no:chroma=auto:effort=none:keep=copyright:score=60"
        ),
        // Other formats are not affected.
        ("jpeg", ["webp:61", "avif:40:effort=3"], "jpeg:quality=82:lossless=no:max=none:progressive=no"),
    ])
    func `an output has its own options, then the defaults of its format`(
        _ recipe: String, _ defaults: [String], _ expected: String
    ) throws {
        let usual = try Recipe("jpeg").resolvedOutput(
            for: ImageHeader(format: .jpeg, encodedWidth: 10, encodedHeight: 10)
        ).quality
        let text = try Self.output(recipe, defaults)
        #expect(text.hasPrefix(expected.replacing("quality=82", with: "quality=\(usual)")), "\(text)")
    }

    @Test func `effort, chroma and what is kept are filled in`() throws {
        let all = try Self.output("avif", ["avif:effort=3:chroma=full:keep=copyright"])
        #expect(all.contains("effort=3") && all.contains("chroma=full") && all.contains("keep=copyright"), "\(all)")
        let own = try Self.output("avif:effort=5:keep=icc", ["avif:effort=3:keep=copyright"])
        #expect(own.contains("effort=5") && own.contains("copyright") && own.contains("icc"), "\(own)")
        for (recipe, keep) in [
            ("avif", "keep=none"), ("avif:keep=copyright", "keep=none"), ("avif:keep=icc", "keep=copyright+icc"),
        ] {
            #expect(try Self.output(recipe, ["avif:keep=none"]).hasSuffix(keep))
        }
        #expect(try Self.output("avif:keep=none", ["avif:keep=icc"]).hasSuffix("keep=none"))
        #expect(try Self.output("avif", ["avif:keep=icc"]).hasSuffix("keep=copyright+icc"))
    }

    @Test(arguments: [
        ["thumbnail:5,jpeg"], ["circle"], ["auto:5"], ["original"], ["jpeg:5", "jpeg:6"], ["jpeg:500"], [""],
    ])
    func `what is no output with a format, or comes twice, is refused`(_ texts: [String]) {
        #expect(throws: RecipeError.self) { _ = try OutputDefaults(texts) }
    }

    @Test func `the canonical texts lead to the same defaults`() throws {
        let texts = ["avif:51:effort=3", "jpeg:81:progressive", "webp:keep=none"]
        let defaults = try OutputDefaults(texts.reversed())
        let again = try OutputDefaults(defaults.texts)
        #expect(defaults.texts == texts && again == defaults)
    }
}
