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
            "imgproxy": ["path": "/img", "keys": [["key": "0a0b", "salt": "0c"]]],
        ]
        return try #require(site.mountedGrammars().first { $0.name == name } as? any URLWritingGrammar)
    }

    /// Returns the recipe that a target means for an original of 4000 × 3000 pixels.
    private static func recipe(_ target: String, _ grammar: any URLWritingGrammar, _ accepted: [ImageFormat]) throws
        -> String
    {
        var context = GrammarContext(signature: Signature(allowUnsigned: true), now: 0)
        context.accepted = accepted
        let routed = try grammar.read(RequestTarget(target), context)
        guard case .choice(let choice) = routed.answer else { throw InvalidSetting("no picture") }
        #expect(routed.source == "https://a.example/b c%20d?e=\u{E9}@f.jpg")
        let header = ImageHeader(format: .jpeg, encodedWidth: 4000, encodedHeight: 3000)
        return try #require(try choice.settle(header)).description
    }

    @Test func `recipes survive the way through a URL of imgproxy`() throws {
        let grammar = try Self.grammar("imgproxy")
        var random = FuzzRandom(seed: 52)
        func pick(_ texts: String...) -> String { texts[Int.random(in: 0..<texts.count, using: &random)] }
        for _ in 0..<500 {
            let (w, h) = (Int.random(in: 1...900, using: &random), Int.random(in: 1...900, using: &random))
            let mode = pick(
                "", ":fill", ":fill:up", ":stretch:up", ":up", ":fill:gravity=north-west", ":fill:gravity=south")
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
        ("imgproxy", "thumbnail:9x9:fill:gravity=attention", "attention"),
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
