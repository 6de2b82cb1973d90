public import Pipeline

/// Checks that a `CacheTier` meets the requirements of the protocol. Run all checks in the tests of your tier, each
/// against an empty tier:
///
/// ```swift
/// func violations(by makeTier: () -> any CacheTier) async -> [String] {
///     var found: [String] = []
///     for check in CacheTierConformance.checks {
///         found += await CacheTierConformance.violations(of: check, by: makeTier())
///     }
///     return found
/// }
/// ```
///
/// A tier needs room for 64 MB of originals and 64 MB of variants. `PipelineTests` runs all checks against the memory
/// tier, the disk tier, and a tier of plain files.
public enum CacheTierConformance {
    /// A requirement of `CacheTier`.
    public struct Check: Sendable, CustomStringConvertible {
        /// The requirement, as a sentence.
        public let description: String
        let run: @Sendable (TierBench) async throws -> Void

        init(_ description: String, _ run: @escaping @Sendable (TierBench) async throws -> Void) {
            self.description = description
            self.run = run
        }
    }

    /// All checks.
    public static let checks: [Check] = bodies + records + purges

    /// Runs a check and returns the violations. Empty if the tier passes.
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
