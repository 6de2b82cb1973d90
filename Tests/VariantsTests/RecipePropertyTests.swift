import Testing

@testable import Variants

/// SplitMix64: the same recipes on every run.
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64
    init(seed: UInt64) { state = seed }
    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var z = state
        z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
        z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
        return z ^ (z >> 31)
    }
}

/// Writes valid recipes, seldom in canonical form.
final class RecipeWriter {
    private var random: SeededGenerator

    init(seed: UInt64) { random = SeededGenerator(seed: seed) }

    func int(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &random) }
    func pick(_ words: [String]) -> String { words[int(0...words.count - 1)] }
    func maybe(_ text: @autoclosure () -> String) -> String { int(0...1) == 0 ? "" : text() }

    /// A whole number, at times with leading zeros.
    func whole(_ range: ClosedRange<Int>) -> String { pick(["", "", "0", "00"]) + String(int(range)) }

    /// A decimal of up to eight places within millionths of the range.
    func decimal(_ range: ClosedRange<Double>) -> String {
        let low = Int((range.lowerBound * 1e6).rounded()), high = Int((range.upperBound * 1e6).rounded())
        let millionths = int(0...9) == 0 ? high : int(low...high)
        let places = String(1_000_000 + millionths % 1_000_000).dropFirst()
        let text = "\(millionths / 1_000_000).\(places)"
        return switch int(0...3) {
        case 0: millionths % 1_000_000 == 0 ? "\(millionths / 1_000_000)" : text
        case 1: "0" + text
        case 2: text + "00"
        default: text
        }
    }

    func percent(_ range: ClosedRange<Double>) -> String { decimal(range) + pick(["%", "pct"]) }
    func hex(_ count: Int) -> String {
        (0..<count).map { _ in pick("0123456789abcdefABCDEF".map(String.init)) }.joined()
    }
    func name() -> String {
        pick(["a", "Z", "7"]) + (0..<int(0...10)).map { _ in pick(["a", "B", "0", "_", "-"]) }.joined()
    }
    func size() -> String {
        pick([
            "\(whole(1...1000))x\(whole(1...1000))", "\(whole(1...1000))x", "x\(whole(1...1000))", whole(1...1000),
        ])
    }
    func place() -> String { pick(Gravity.places.map(\.rawValue)) }
    func gravity() -> String { pick(Gravity.allCases.map(\.rawValue)) }

    func shuffled(_ arguments: [String]) -> String {
        arguments.filter { !$0.isEmpty }.shuffled(using: &random).map { ":" + $0 }.joined()
    }
    func four(_ one: (RecipeWriter) -> String) -> String {
        let first = one(self)
        switch int(0...2) {
        case 0: return first
        case 1: return Array(repeating: first, count: 4).joined(separator: ":")
        default: return [first, one(self), one(self), one(self)].joined(separator: ":")
        }
    }

    func thumbnail() -> String {
        let resample = maybe("resample=" + pick(["fast", "balanced", "best"]))
        switch int(0...3) {
        case 0: return "thumbnail:" + size() + shuffled([maybe("fit"), maybe("up"), resample])
        case 1:
            let anchor = pick(["", "gravity=" + gravity(), "focus=\(decimal(0...1))x\(decimal(0...1))"])
            return "thumbnail:\(whole(1...999))x\(whole(1...999))" + shuffled(["fill", maybe("up"), anchor, resample])
        case 2: return "thumbnail:\(whole(1...999))" + shuffled(["pad", maybe("up"), maybe("gravity=" + place())])
        default: return "thumbnail:\(whole(1...999))" + shuffled(["stretch", maybe("up"), resample])
        }
    }

    func overlay() -> String {
        func distance() -> String { pick([whole(0...900), percent(0...100)]) }
        let size = pick(["", "scale=" + pick([decimal(0.01...100), percent(0.01...100)]), "fit=" + self.size()])
        let place = pick([
            "", "tile", "tile:gap=" + distance(), "tile:gap=\(distance())x\(distance())", "gravity=" + place(),
            "offset=\(distance())x-\(distance())", "gravity=\(place()):offset=-\(distance())x\(distance())",
            "gravity=\(pick(["south", "north-west"])):offset=" + distance(),
        ])
        let opacity = maybe("opacity=" + pick([decimal(0...1), percent(0...100)]))
        return "overlay:" + name() + shuffled([size, place, opacity, maybe("from=" + self.size())])
    }

    func step() -> String {
        switch int(0...20) {
        case 0: return thumbnail()
        case 1: return "scaled:" + pick([decimal(0.0001...100), percent(0.01...10_000)])
        case 2: return "rounded-mask:" + four { $0.pick([$0.decimal(0...900), $0.percent(0...100)]) }
        case 3: return "circle"
        case 4: return "mask:" + name() + maybe(":fit=" + pick(["stretch", "cover"]))
        case 5: return "crop:\(whole(1...999))x\(whole(1...999))+\(whole(0...99))+\(whole(0...99))"
        case 6: return "crop:\(whole(1...999))" + maybe(":gravity=" + gravity())
        case 7: return "trim" + maybe(":" + whole(0...255))
        case 8: return "rotate:" + pick(["90", "180", "270", decimal(0...360)])
        case 9: return "flip:" + pick(["h", "v", "hv"])
        case 10: return "blur:" + decimal(3...12)
        case 11: return "sharpen" + maybe(":" + decimal(0.3...100))
        case 12: return "pixelate:" + whole(1...900)
        case 13: return "grayscale"
        case 14: return "tint:" + hex(6)
        case 15: return pick(["brightness", "contrast", "saturation"]) + ":" + decimal(0...4)
        case 16: return "background:" + pick([hex(6), hex(8), hex(6) + "ff", hex(6) + "FF"])
        case 17: return "extend:" + four { $0.whole(0...900) }
        case 18: return "border:\(whole(1...900)):" + hex(6)
        case 19: return overlay()
        default: return "dpr:" + decimal(0.1...8) + ",blur:" + decimal(3...12)
        }
    }

    func output() -> String {
        let kind = pick(OutputSpecification.Kind.allCases.map(\.rawValue))
        let size = pick([whole(1...999_999_999), whole(1...900) + "KiB", whole(1...900) + "kB", "1.5MB", "3MiB"])
        // A quality and a score exclude each other.
        let score = maybe(":score=" + whole(10...95))
        let fidelity = pick([":" + whole(1...100), score])
        let kinds = ["copyright", "exif", "icc", "xmp"].shuffled(using: &random)
        let list = kinds.prefix(int(1...4)).joined(separator: "+")
        let options = [maybe("max=" + size), maybe("keep=" + list)]
        let progressive = maybe("progressive")
        let chroma = maybe("chroma=" + pick(["auto", "full", "half"]))
        let effort = maybe("effort=" + whole(0...9))
        switch kind {
        case "png": return kind + shuffled(options + [progressive, maybe("lossless"), effort])
        case "tiff": return kind + shuffled([options[0], maybe("keep=xmp+icc"), maybe("lossless")])
        case "gif": return kind + shuffled([options[0], maybe("keep=xmp")])
        case "jpeg": return kind + fidelity + shuffled(options + [progressive, chroma])
        case "auto", "original":
            return kind + fidelity + shuffled(options + [progressive, chroma, effort])
        case "avif": return kind + fidelity + shuffled(options + [chroma, effort])
        default: return kind + pick([":lossless", fidelity]) + shuffled(options + [effort])
        }
    }

    func recipe() -> String {
        var steps = (0..<int(0...8)).map { _ in step() }
        for option in [
            "orient:off", "profile:keep", "frames:" + pick(["first", "all", whole(1...300)]), "page:" + whole(1...500),
        ]
        where int(0...3) == 0 {
            steps.insert(option, at: int(0...steps.count))
        }
        if int(0...2) > 0 { steps.append(output()) }
        return steps.joined(separator: ",")
    }
}

@Suite struct RecipePropertyTests {
    @Test func `the generated recipes have every step of the catalogue`() throws {
        let writer = RecipeWriter(seed: 4)
        let steps = try (0..<2000).flatMap { _ in try Recipe(writer.step()).steps }
        let written = Set(steps.map { type(of: $0).token })
        for operation in Catalog.operations where !written.contains(operation.token) {
            Issue.record("no recipe has \(operation.token): add it to RecipeWriter.step(), and raise its range")
        }
    }

    @Test func `parsing the canonical text of any recipe gives an equal recipe`() throws {
        let writer = RecipeWriter(seed: 1)
        let header = ImageHeader(format: .gif, encodedWidth: 10, encodedHeight: 10, pages: 3, hasAlpha: true)
        var distinct: Set<Recipe> = []
        for _ in 0..<8000 {
            let text = writer.recipe()
            let recipe = try Recipe(text)
            let canonical = recipe.description
            let again = try Recipe(canonical)
            #expect(again == recipe, "\(text)")
            #expect(again.description == canonical, "\(text)")
            #expect(again.stepsDescription == recipe.stepsDescription, "\(text)")
            #expect(again.orients == recipe.orients && again.frames == recipe.frames, "\(text)")
            #expect(again.keepsProfile == recipe.keepsProfile && again.steps.count == recipe.steps.count, "\(text)")
            #expect(again.resolvedOutput(for: header) == recipe.resolvedOutput(for: header), "\(text)")
            #expect(!canonical.contains("dpr") && !canonical.contains("%") && !canonical.contains("@"), "\(text)")
            distinct.insert(recipe)
        }
        #expect(distinct.count > 6000)
    }

    @Test func `the values behind equal canonical texts are equal`() throws {
        let writer = RecipeWriter(seed: 2)
        for _ in 0..<3000 {
            let recipe = try Recipe(writer.recipe())
            let again = try Recipe(recipe.description)
            for (left, right) in zip(recipe.steps, again.steps) {
                #expect(String(reflecting: left) == String(reflecting: right))
            }
        }
    }

    @Test func `equality, hash and canonical text always agree`() throws {
        let writer = RecipeWriter(seed: 3)
        let recipes = try (0..<400).map { _ in try Recipe(writer.step()) }
        for left in recipes {
            for right in recipes where (left.description == right.description) != (left == right) {
                Issue.record("\(left) and \(right)")
            }
        }
    }
}
