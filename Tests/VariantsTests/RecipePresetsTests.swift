import Testing

@testable import Variants

@Suite struct RecipePresetsTests {
    static func message(_ texts: [String: String]) -> String {
        do throws(RecipeError) {
            _ = try RecipePresets(texts)
            return "accepted"
        } catch {
            return error.description
        }
    }

    @Test func `presets are expanded where they stand`() throws {
        let presets = try RecipePresets([
            "card": "thumbnail:300x200:fill,@soft", "soft": "rounded-mask:8", "web": "webp",
        ])
        let recipe = try Recipe("orient:off,@card,circle,@web", presets: presets)
        #expect(recipe.description == "orient:off,thumbnail:300x200:fill,rounded-mask:8,circle,webp")
        #expect(try Recipe("dpr:2,@card", presets: presets).description == "thumbnail:600x400:fill,rounded-mask:16")
        #expect(presets.names == ["card", "soft", "web"])
    }

    @Test func `a recipe remembers that it was exactly one preset, without being unequal for it`() throws {
        let presets = try RecipePresets(["card": "circle"])
        let recipe = try Recipe("@card", presets: presets)
        #expect(recipe.presetName == "card")
        #expect(try recipe == Recipe("circle"))
        #expect(try Recipe("@card,png", presets: presets).presetName == nil)
        #expect(try Recipe("circle", presets: presets).presetName == nil)
    }

    @Test func `circles are refused with the chain named`() {
        #expect(Self.message(["a": "@b", "b": "circle,@c", "c": "@a"]).contains("a → b → c → a"))
        #expect(Self.message(["a": "@a"]).contains("a → a"))
    }

    @Test func `presets nest four deep and not deeper`() throws {
        let four = ["a": "@b", "b": "@c", "c": "@d", "d": "circle"]
        #expect(try Recipe("@a", presets: RecipePresets(four)).description == "circle")
        let five = four.merging(["e": "@a"]) { $1 }
        #expect(Self.message(five).contains("e → a → b → c → d"))
    }

    @Test func `an output in a preset must end the recipe`() throws {
        let presets = try RecipePresets(["out": "circle,webp"])
        #expect(try Recipe("flip:h,@out", presets: presets).description == "flip:h,circle,webp")
        let message = RecipeErrorTests.message("@out,flip:h", presets)
        #expect(message.contains("step 1, `@out`: in preset `out`, step 2, `webp`: the output `webp` must be the last"))
        #expect(throws: RecipeError.self) { try Recipe("@out,flip:h,png", presets: presets) }
        #expect(Self.message(["a": "png,circle"]).contains("must be the last step of the recipe"))
        #expect(Self.message(["a": "@b,circle", "b": "png"]).contains("must be the last step of the recipe"))
    }

    @Test(arguments: [
        ("@card,dpr:2", "thumbnail:600x400:fill,rounded-mask:16,webp:80"),
        ("@card,png", "thumbnail:300x200:fill,rounded-mask:8,png"),
        ("@card,dpr:1.5,jpg:70", "thumbnail:450x300:fill,rounded-mask:12,jpeg:70"),
        ("@sharp,dpr:3", "thumbnail:200x200"), ("@outer,dpr:2", "thumbnail:600x400:fill,rounded-mask:16,png"),
        ("@outer,avif", "thumbnail:300x200:fill,rounded-mask:8,avif"),
        ("@soft,dpr:2,blur:3", "rounded-mask:16,blur:6"), ("circle,@soft,dpr:2", "circle,rounded-mask:16"),
    ])
    func `a ratio and an output behind a preset are for the preset`(text: String, canonical: String) throws {
        let presets = try RecipePresets([
            "card": "thumbnail:300x200:fill,@soft,webp:80", "soft": "rounded-mask:8", "sharp": "dpr:2,thumbnail:100",
            "outer": "@card,png",
        ])
        #expect(try Recipe(text, presets: presets).description == canonical)
        #expect(throws: RecipeError.self) { try Recipe("@card,grayscale", presets: presets) }
        #expect(throws: RecipeError.self) { try Recipe("@card,webp,dpr:2", presets: presets) }
    }

    @Test func `names and texts are checked when presets are made`() {
        #expect(Self.message(["a b": "circle"]).contains("preset `a b`"))
        #expect(Self.message(["-a": "circle"]).contains("its name must be"))
        #expect(Self.message([String(repeating: "a", count: 65): "circle"]).contains("its name must be"))
        #expect(Self.message([String(repeating: "a", count: 64): "circle"]) == "accepted")
        #expect(Self.message(["a": ""]).contains("preset `a` is empty"))
        #expect(Self.message(["a": "circel"]).contains("in preset `a`, step 1, `circel`: unknown step; did you mean"))
        #expect(Self.message(["a": "@card", "cart": "circle"]).contains("did you mean `@cart`?"))
    }

    @Test func `presets that multiply stay within the limit of steps`() {
        let many = (0..<30).map { _ in "@b" }.joined(separator: ",")
        #expect(
            Self.message(["a": many, "b": many.replacingAll("b", "c"), "c": "circle"]).contains("at most 32 steps"))
    }

    @Test func `the canonical text of expanded presets keeps to the limit of characters`() throws {
        let name = String(repeating: "n", count: 64)
        let text = (0..<30).map { _ in "overlay:\(name):gravity=north" }.joined(separator: ",")
        #expect(text.count > 2000)
        let half = (0..<15).map { _ in "overlay:\(name):gravity=north" }.joined(separator: ",")
        let presets = try RecipePresets(["half": half])
        #expect(throws: RecipeError.self) { try Recipe("@half,@half", presets: presets) }
    }
}

extension String {
    fileprivate func replacingAll(_ old: Character, _ new: Character) -> String { String(map { $0 == old ? new : $0 }) }
}
