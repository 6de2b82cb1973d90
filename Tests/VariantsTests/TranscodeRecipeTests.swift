import Testing

@testable import Variants

@Suite struct TranscodeRecipeTests {
    private static func header(_ format: ImageFormat = .jpeg, _ obstacle: TranscodingObstacle? = nil) -> ImageHeader {
        var header = RecipeOutputTests.header(format)
        header.transcodingObstacle = obstacle
        return header
    }

    @Test func `the option has a canonical text, and a typed form`() throws {
        for text in ["jxl:transcode", "jxl:transcode:keep=exif", "profile:keep,frames:all,jxl:transcode"] {
            #expect(try Recipe(text).description == text)
        }
        #expect(try Recipe("jxl:keep=icc:transcode").description == "jxl:transcode:keep=icc")
        #expect(Recipe().jxl(.transcode, .keep(.exif)) == (try Recipe("jxl:transcode:keep=exif")))
        #expect(try Recipe("jxl:transcode").explanation == ["Writes JPEG XL, keeping the data of a JPEG."])
    }

    @Test(arguments: [
        ("jxl:80:transcode", "remove the quality"), ("jxl:lossless:transcode", "remove the quality"),
        ("jxl:transcode:max=20kB", "remove the quality"), ("jxl:transcode:effort=3", "remove the quality"),
        ("jxl:transcode:score=70", "remove the quality"),
        ("thumbnail:300,jxl:transcode", "remove them"), ("orient:off,jxl:transcode", "remove them"),
        ("webp:transcode", "only with `jxl`"), ("auto:transcode", "`auto` transcodes without"),
    ])
    func `what would change the data is an error that says what helps`(text: String, advice: String) {
        do throws(RecipeError) {
            _ = try Recipe(text)
            Issue.record("\(text) is accepted")
        } catch {
            #expect(error.description.contains(advice), "\(error)")
        }
    }

    @Test(arguments: [
        ("auto", true), ("", true), ("frames:all,auto:keep=icc", true), ("jxl:transcode", true), ("jxl", false),
        ("auto:79", false), ("auto:lossless", false), ("auto:max=20kB", false), ("auto:chroma=full", false),
        ("auto:effort=3", false), ("orient:off,auto", false), ("thumbnail:300,auto", false), ("original", false),
    ])
    func `auto transcodes if the recipe asks for no other pixels, quality or size`(text: String, expected: Bool) throws
    {
        let recipe = try Recipe(text)
        func output(_ header: ImageHeader) -> ResolvedOutput { recipe.resolvedOutput(for: header, negotiated: [.jxl]) }
        let found = output(Self.header())
        #expect(found.transcodes == expected)
        let isAsked = text == "jxl:transcode"
        #expect(found.description.hasSuffix(":transcode=" + (isAsked ? "yes" : "auto")) == expected)
        #expect(found.transcodesIfSmaller == (expected && !isAsked))
        #expect(!output(Self.header(.png)).transcodes)
        for obstacle in TranscodingObstacle.allCases {
            let other = output(Self.header(.jpeg, obstacle))
            #expect(!other.transcodes && !other.description.contains("transcode"))
        }
        #expect(!recipe.resolvedOutput(for: Self.header(), negotiated: [.webp]).transcodes || text == "jxl:transcode")
    }

    @Test func `the settings decide for recipes without a quality`() throws {
        func transcodes(_ text: String, _ defaults: [String]) throws -> Bool {
            try Recipe(text).resolvedOutput(
                for: Self.header(), negotiated: [.jxl], defaults: OutputDefaults(defaults)
            ).transcodes
        }
        #expect(try !transcodes("auto", ["jxl:60"]) && transcodes("auto", ["jxl:keep=icc"]))
        #expect(try transcodes("jxl:transcode", ["jxl:60"]))
        #expect(try transcodes("jxl", ["jxl:transcode"]) && !transcodes("jxl:50", ["jxl:transcode"]))
        #expect(try !transcodes("thumbnail:30,jxl", ["jxl:transcode"]))
    }

    @Test func `steps that a server adds prevent transcoding`() throws {
        var recipe = try Recipe("jxl:transcode")
        recipe.steps += try Recipe("blur:2").steps
        #expect(!recipe.resolvedOutput(for: Self.header()).transcodes)
        #expect(recipe.refusedTranscoding(of: Self.header())?.contains("steps") == true)
        #expect(try Recipe("auto").refusedTranscoding(of: Self.header(.png)) == nil)
    }

    @Test(
        arguments: [
            (0xC0, 8, 3, nil), (0xC1, 8, 3, nil), (0xC2, 8, 1, nil), (0xC0, 8, 4, .components),
            (0xC0, 8, 2, .components),
            (0xC1, 12, 3, .depth), (0xC3, 8, 3, .process), (0xC5, 8, 3, .process), (0xC9, 8, 3, .arithmeticCoding),
            (0xCA, 8, 3, .arithmeticCoding),
        ] as [(UInt8, UInt8, UInt8, TranscodingObstacle?)])
    func `the frame header tells whether the data can be kept`(
        marker: UInt8, depth: UInt8, components: UInt8, expected: TranscodingObstacle?
    ) throws {
        let frame: [UInt8] =
            [depth, 0, 9, 0, 9, components] + (0..<components).flatMap { [$0 + 1, 0x11, 0] as [UInt8] }
        let file = [0xFF, 0xD8] + HandmadeImages.segment(marker, frame) + [0xFF, 0xD9]
        #expect(try ImageHeader.probe(file).transcodingObstacle == expected)
    }
}
