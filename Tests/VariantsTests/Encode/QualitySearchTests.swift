import Glibc
import Testing

@testable import Variants

@Suite struct QualitySearchTests {
    /// Sizes by quality as encoders give them.
    enum Curve: CaseIterable {
        case jpeg, exponential, linear, steps

        func size(_ quality: Int) -> Int {
            let q = Double(quality)
            switch self {
            case .jpeg: return Int(40_000 / pow(quality < 50 ? 5000 / q : max(2, 200 - 2 * q), 0.8))
            case .exponential: return Int(50 * exp(q / 14))
            case .linear: return 1000 + 300 * quality
            case .steps: return 2000 * (1 + quality / 10)
            }
        }
    }

    @Test(arguments: Curve.allCases, [100, 80, 37])
    func `at most six encodes produce the largest file that fits, or one close to it`(curve: Curve, highest: Int) throws
    {
        var (near, all) = (0, 0)
        for share in 0..<49 {
            // Low budgets, where sizes jump most, are the more of them.
            let range = Double(curve.size(100) - curve.size(1)) * 1.1
            let budget = curve.size(1) + Int(range * Double(share * share) / (48 * 48))
            var encodes: [Int] = []
            let bytes = try QualitySearch(budget: budget, highest: highest).result { quality throws(RenderError) in
                encodes.append(quality)
                return [UInt8](repeating: 0, count: curve.size(quality))
            }
            #expect(encodes.count <= 6 && Set(encodes).count == encodes.count)
            #expect(encodes.allSatisfy { (1...highest).contains($0) })
            let best = try #require((1...highest).last { curve.size($0) <= budget }.map(curve.size))
            #expect(bytes.count <= budget)
            // Sizes that jump may leave the six encodes far below.
            #expect(bytes.count * 3 >= best * 2 || curve == .steps, "\(budget): \(encodes), \(bytes.count) of \(best)")
            all += 1
            if bytes.count * 20 >= best * 19 { near += 1 }
        }
        #expect(near * 10 >= all * 9 || curve == .linear || curve == .steps, "\(near) of \(all)")
    }

    @Test(arguments: Curve.allCases) func `what cannot fit is refused with the smallest size there is`(curve: Curve) {
        var encodes = 0
        let error = #expect(throws: RenderError.self) {
            try QualitySearch(budget: curve.size(1) - 1, highest: 100).result { quality throws(RenderError) in
                encodes += 1
                return [UInt8](repeating: 0, count: curve.size(quality))
            }
        }
        #expect(error?.code == .overBudget && encodes <= 6)
        #expect(error?.message.contains("had \(curve.size(1))") == true)
    }

    @Test func `an error of the encoder ends the search`() {
        var encodes = 0
        #expect(throws: RenderError.self) {
            try QualitySearch(budget: 5, highest: 90).result { _ throws(RenderError) in
                encodes += 1
                throw RenderError(.encodingFailed, "no")
            }
        }
        #expect(encodes == 1)
    }

    @Test(arguments: ["jpeg", "webp", "avif", "jxl"], ["frames:first", "frames:all"])
    func `every lossy output meets budgets, and comes near them`(output: String, frames: String) async throws {
        let animated = frames == "frames:all"
        if animated, output != "webp" { return }
        let name = animated ? "balloon.gif" : "dusk-2mp.jpg"
        let recipe = "\(frames),thumbnail:120x120,\(output)"
        let free = try await RenderFixture.renderer.render(RenderSamples.job(name, recipe)).bytes.count
        for share in [0.5, 0.9] {
            let budget = Int(Double(free) * share)
            let variant = try await RenderFixture.renderer.render(RenderSamples.job(name, "\(recipe):max=\(budget)"))
            #expect(variant.bytes.count <= budget && variant.bytes.count * 10 >= budget * 8)
        }
        let error = await #expect(throws: RenderError.self) {
            try await RenderFixture.renderer.render(RenderSamples.job(name, recipe + ":max=60"))
        }
        #expect(error?.code == .overBudget)
    }

    @Test(arguments: ["png", "gif", "tiff", "webp:lossless", "avif:lossless", "jxl:lossless"])
    func `a lossless output over its budget says that it has no quality to lower`(output: String) async throws {
        let recipe = "thumbnail:40x40,\(output)"
        let job = try RenderSamples.job("night-tiny.jpg", recipe)
        let free = try await RenderFixture.renderer.render(job).bytes
        let same = try RenderSamples.job("night-tiny.jpg", recipe + ":max=\(free.count)")
        #expect(try await RenderFixture.renderer.render(same).bytes == free)
        let less = try RenderSamples.job("night-tiny.jpg", recipe + ":max=\(free.count - 1)")
        let error = await #expect(throws: RenderError.self) { try await RenderFixture.renderer.render(less) }
        #expect(error?.code == .overBudget && error?.message.contains("has \(free.count) bytes") == true)
    }
}
