import PipelineSupport
import TestSupport
import Testing

@testable import ImageServer
@testable import Pipeline
@testable import Variants

/// The URLs that grammars write mean the recipe that they were written for.
@Suite struct URLWritingTests {
    private static func grammar(_ name: String) throws -> any URLWritingGrammar {
        var site = ServerConfiguration()
        site.grammars = [
            "next": ["path": "/_next/image", "unsigned": true],
            "iiif": ["path": "/iiif", "unsigned": true],
            "imgproxy": ["path": "/img", "keys": [["key": "0a0b", "salt": "0c"]]],
        ]
        return try #require(site.mountedGrammars().first { $0.name == name } as? any URLWritingGrammar)
    }

    /// Returns the recipe that a target means for an original of 4000 × 3000 pixels.
    @discardableResult
    private static func recipe(
        _ target: String, _ grammar: any URLWritingGrammar, _ accepted: [ImageFormat],
        source: String = "https://a.example/b c%20d?e=\u{E9}@f.jpg"
    ) throws -> String {
        var context = GrammarContext(signature: Signature(allowUnsigned: true), now: 0)
        context.accepted = accepted
        context.base = "http://a"
        let routed = try grammar.read(RequestTarget(target), context)
        guard case .choice(let choice) = routed.answer else { throw InvalidSetting("no picture") }
        #expect(routed.source == source)
        var header = ImageHeader(format: .jpeg, encodedWidth: 4000, encodedHeight: 3000)
        header.furtherPages = [header, header]
        return try #require(try choice.settle(header)).description
    }

    @Test func `recipes survive the way through a URL of imgproxy`() throws {
        let grammar = try Self.grammar("imgproxy")
        var random = FuzzRandom(seed: 52)
        func pick(_ texts: String...) -> String { texts[Int.random(in: 0..<texts.count, using: &random)] }
        for _ in 0..<500 {
            let (w, h) = (Int.random(in: 1...900, using: &random), Int.random(in: 1...900, using: &random))
            let mode = pick(
                "", ":fill", ":fill:up", ":stretch:up", ":up", ":fill:gravity=north-west", ":fill:gravity=south",
                ":fill:gravity=attention", ":fill:focus=0.25x0.7")
            let size = mode == "" ? pick("\(w)x", "x\(h)", "\(w)x\(h)") : "\(w)x\(h)"
            let steps = [
                pick("", "crop:\(w + 900)x\(h + 900)+7+\(h)"), "thumbnail:\(size)\(mode)", pick("", "blur:2.5"),
                pick("", "sharpen:1.5"),
                pick("", "pixelate:8"), pick("", "background:a0b1c2"), pick("", "extend:1:2:3:4"),
                pick("jpeg", "avif", "jpeg:70", "webp:50", "avif:60", "png", "jxl:40"),
            ].filter { !$0.isEmpty }
            let recipe = try Recipe(steps.joined(separator: ","))
            let target = try grammar.target(recipe, source: "https://a.example/b c%20d?e=\u{E9}@f.jpg", expiry: nil)
            let read = try Self.recipe(target, grammar, []).replacing(":keep=copyright", with: "")
            #expect(read == recipe.description, "\(target)")
        }
    }

    @Test func `recipes survive the way through a URL of IIIF`() throws {
        let grammar = try Self.grammar("iiif")
        var random = FuzzRandom(seed: 53)
        func pick(_ texts: String...) -> String { texts[Int.random(in: 0..<texts.count, using: &random)] }
        for _ in 0..<500 {
            let (w, h) = (Int.random(in: 1...900, using: &random), Int.random(in: 1...900, using: &random))
            let (across, down) = (w + 300, h + 300)
            // The written steps, and the same steps as settled for the original.
            let crop = pick("", "crop:\(across)x\(down)+7+\(h)")
            let size = pick("", "thumbnail:\(w)x\(h):stretch:up")
            let steps = [
                pick("", "page:2", "page:3"), crop, size, pick("", "flip:h"), pick("", "rotate:90", "rotate:22.5"),
                pick("", "grayscale"), pick("jpeg", "png", "webp", "gif", "tiff", "avif"),
            ].filter { !$0.isEmpty }
            let recipe = try Recipe(steps.joined(separator: ","))
            let target = try grammar.target(recipe, source: "https://a.example/b c%20d?e=\u{E9}@f.jpg", expiry: nil)
            var read = try Self.recipe(target, grammar, []).replacing(":keep=copyright", with: "")
            // A size with the ratio of the region is settled without `stretch`.
            if !read.contains("stretch") { read = read.replacing("thumbnail:\(w)x\(h)", with: size) }
            #expect(read == recipe.description, "\(target)")
        }
        for (recipe, text) in [
            ("thumbnail:300x300,jpeg", "full/!300,300/0/default.jpg"),
            ("thumbnail:30x20:stretch,page:2,jpeg", "full/30,20/0/default.jpg"),
            ("thumbnail:400x:up,jpeg", "full/%5E400,/0/default.jpg"),
            ("thumbnail:x30:up,png", "full/%5E,30/0/default.png"),
            ("thumbnail:300x300:up,webp", "full/%5E!300,300/0/default.webp"),
        ] {
            let target = try grammar.target(Recipe(recipe), source: "https://a.example/b", expiry: nil)
            let page = recipe.contains("page") ? ";2" : ""
            #expect(target == "/iiif/3/https:%2F%2Fa.example%2Fb\(page)/" + text)
            #expect(throws: Never.self) { try Self.recipe(target, grammar, [], source: "https://a.example/b") }
        }
    }

    @Test func `a source that ends like a page keeps its name`() throws {
        let (grammar, source) = (try Self.grammar("iiif"), "https://a.example/b;7")
        let target = try grammar.target(Recipe("png"), source: source, expiry: nil)
        #expect(target.contains("b;7;1/full"))
        try Self.recipe(target, grammar, [], source: source)
    }

    @Test func `recipes survive the way through a URL of Next js`() throws {
        let grammar = try Self.grammar("next")
        for (recipe, settled) in [
            ("thumbnail:640x,auto:60", "thumbnail:640x,webp:60"), ("thumbnail:64x", "thumbnail:64x,webp:75"),
        ] {
            let target = try grammar.target(
                Recipe(recipe), source: "https://a.example/b c%20d?e=\u{E9}@f.jpg", expiry: nil)
            #expect(try Self.recipe(target, grammar, [.webp]) == settled)
        }
    }

    @Test(arguments: [
        ("next", "thumbnail:300x200", "thumbnail:300x200"), ("next", "thumbnail:64x,webp", "webp"),
        ("next", "circle", "circle"),
        ("next", "auto", "need `thumbnail:WIDTHx`"), ("imgproxy", "circle", "circle"),
        ("imgproxy", "webp:lossless", "webp:lossless"), ("imgproxy", "webp", "webp"),
        ("imgproxy", "trim:colour=ffffff,webp:80", "trim:colour"),
        ("imgproxy", "blur:2,thumbnail:30", "order"), ("imgproxy", "thumbnail:30x30:pad", "pad"),
        ("imgproxy", "thumbnail:3,thumbnail:4", "order"),
        ("imgproxy", "thumbnail:30x30:stretch", "stretch"),
        ("imgproxy", "thumbnail:9x9:fill:gravity=entropy", "entropy"),
        ("iiif", "circle,png", "circle"), ("iiif", "jpeg:70", "jpeg:70"), ("iiif", "auto", "auto"),
        ("iiif", "jxl", "jxl"),
        ("iiif", "thumbnail:30x30", "need an output"),
        ("iiif", "thumbnail:30x30:fill,jpeg", "fill"), ("iiif", "crop:30x30,jpeg", "crop:30x30"),
        ("iiif", "thumbnail:30x:up,crop:9x9+1+1,jpeg", "order"), ("iiif", "flip:v,jpeg", "flip:v"),
    ])
    func `a recipe that the system cannot express is an error that names the step`(
        system: String, recipe: String, words: String
    ) throws {
        let grammar = try Self.grammar(system)
        let error = #expect(throws: InvalidSetting.self) {
            try grammar.target(Recipe(recipe), source: "https://a.example/b", expiry: nil)
        }
        #expect(error?.message.contains(words) == true, "\(error?.message ?? "")")
    }
}
