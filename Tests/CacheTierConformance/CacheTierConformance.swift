public import Pipeline

/// What every `CacheTier` promises, as checks that anyone can run against a tier of their own:
///
///     for check in CacheTierConformance.checks {
///         for violation in await CacheTierConformance.violations(of: check, by: MyTier()) { print(violation) }
///     }
///
/// A check wants an empty tier with room for 64 MB of originals and as much of variants. `PipelineTests` runs all of
/// them against the memory tier, the disk tier, and a tier of plain files.
public enum CacheTierConformance {
    /// One promise.
    public struct Check: Sendable, CustomStringConvertible {
        /// The promise, as a sentence.
        public let description: String
        let run: @Sendable (TierBench) async throws -> Void

        init(_ description: String, _ run: @escaping @Sendable (TierBench) async throws -> Void) {
            self.description = description
            self.run = run
        }
    }

    /// All promises.
    public static let checks: [Check] = bodies + records + purges

    /// Runs a check; returns what the tier did wrong, nothing if it passes.
    public static func violations(of check: Check, by tier: any CacheTier) async -> [String] {
        let bench = TierBench(tier)
        do {
            try await check.run(bench)
        } catch {
            bench.expect(false, "threw \(error)")
        }
        return bench.violations.map { "\(tier.name): \(check): \($0)" }
    }
}
