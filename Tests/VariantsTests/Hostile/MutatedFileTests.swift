import TestSupport
import Testing

@testable import Variants

// Within the suite of the workers, which counts and kills the workers of the whole process.
extension WorkerPoolTests {
    /// Pictures with seeded changes through render workers; `scripts/fuzz render 2000x` renders more of them.
    @Suite struct MutatedFileTests {
        /// Changed pictures of each format in the tests.
        private static let usualCount = 40
        private static let recipes = [
            "thumbnail:20x20,png", "png", "frames:all,webp", "crop:8x8+3+3,jpeg", "blur:2,png", "jxl:transcode",
        ]

        /// Two workers' memory is filled with different bytes before it is used, so that unwritten pixels differ.
        @Test
        func `changed pictures give the same bytes or the same error in every worker, and the next picture works`()
            async throws
        {
            let plan = FuzzPlan.current
            guard plan.includes("render") else { return }
            let pools = [HostileFileTests.pool(["MALLOC_PERTURB_=85"]), HostileFileTests.pool(["MALLOC_PERTURB_=170"])]
            var tally: [String: Int] = [:]
            let formats = try SmallPictures.byFormat()
            for (format, pictures) in formats {
                let mutator = Mutator(
                    seeds: pictures, words: [[0xFF, 0xDA], [0xFF, 0xC4], Array("IDAT".utf8)], limit: 65_536)
                let clock = ContinuousClock()
                let end = plan.seconds.map { clock.now + .seconds($0 / Double(formats.count)) }
                var made = 0
                while end.map({ clock.now < $0 }) ?? (made < plan.count ?? Self.usualCount) {
                    var random = FuzzRandom(seed: plan.seed &* 0x1_0000_0001 &+ UInt64(made))
                    let bytes: [UInt8]
                    if let path = plan.input {
                        bytes = FuzzPlan.contents(path) ?? []
                    } else {
                        bytes = mutator.input(&random)
                    }
                    let recipe = Self.recipes[made % Self.recipes.count]
                    made += 1
                    let began = clock.now
                    let outcomes = [
                        try await HostileFileTests.outcome(bytes, recipe, pools[0]),
                        try await HostileFileTests.outcome(bytes, recipe, pools[1]),
                    ]
                    let name = "\(format) \(made - 1) of seed \(plan.seed), `\(recipe)`"
                    if plan.count != nil || plan.seconds != nil {
                        // Two renders, each with its deadline.
                        #expect(clock.now - began < .seconds(2 * (RenderLimits().seconds + 1)), "\(name)")
                    }
                    let texts = outcomes.map(Self.text)
                    if texts[0] != texts[1] {
                        let path = FuzzPlan.keep(bytes, as: "render")
                        Issue.record("\(name): \(texts[0]), then \(texts[1]); scripts/fuzz render --input \(path)")
                    }
                    for case .failure(let error) in outcomes where !HostileFileTests.ordinary.contains(error.code) {
                        let path = FuzzPlan.keep(bytes, as: "render-\(error.code)-\(format)-\(made - 1)")
                        if [.workerUnavailable, .quarantined, .workerProtocol].contains(error.code) {
                            Issue.record("\(name): \(error.code), \(error); \(path)")
                        }
                    }
                    tally["\(format) \(Self.kind(outcomes[0]))", default: 0] += 1
                    if plan.input != nil { break }
                }
            }
            if plan.count != nil || plan.seconds != nil {
                for (kind, count) in tally.sorted(by: { $0.key < $1.key }) { print("fuzz render: \(kind): \(count)") }
            }
            for pool in pools {
                let next = try await HostileFileTests.outcome(try HostileFiles.jpeg(), "thumbnail:20x20,png", pool)
                #expect((try? next.get()) != nil, "\(next)")
                await pool.shutdown()
            }
        }

        private static func kind(_ outcome: Result<RenderedVariant, RenderError>) -> String {
            switch outcome {
            case .success: "picture"
            case .failure(let error): error.code.rawValue
            }
        }

        /// The part that must be equal; of an error its code, since decoders' messages may name differing values.
        private static func text(_ outcome: Result<RenderedVariant, RenderError>) -> String {
            switch outcome {
            case .success(let variant):
                "\(variant.width) × \(variant.height), \(variant.bytes.count) bytes, hash \(hash(variant.bytes))"
            case .failure(let error): error.code.rawValue
            }
        }

        /// FNV-1a.
        private static func hash(_ bytes: [UInt8]) -> UInt64 {
            bytes.reduce(0xcbf2_9ce4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
        }
    }
}
