import TestSupport
import Testing

@testable import pipectl

extension CommandTests {
    /// The questions of independent tests of shared caches, asked of a running server and compared with a table.
    @Suite struct Conformance {
        private static let groups: [(name: String, exchanges: [Exchange])] = [
            ("freshness", FreshnessExchanges.all), ("directives", DirectiveExchanges.all),
            ("staleness", StaleExchanges.all), ("statuses", StatusExchanges.all), ("selection", VaryExchanges.all),
            ("conditions", ConditionalExchanges.all), ("fields", FieldExchanges.all), ("methods", MethodExchanges.all),
        ]
        private static let all = groups.flatMap(\.exchanges)

        /// Everything passes through, and an origin that fails when asked to is not left alone for it.
        private static let settings = [#"acceptedTypes=["*/*"]"#, #"forwardFields=["*"]"#, "fetch.breaker=false"]

        @Test(arguments: ["memory", "disk"])
        func `every exchange goes as its table says`(_ tier: String) async throws {
            let tiers = tier == "disk" ? ["memory.originals=0"] : []
            try await RunningServer.with(Self.settings + tiers) { server in
                for failure in try await Conversation(Self.all).failures(server: server) { Issue.record(failure) }
            }
        }

        @Test func `no two exchanges have one name`() {
            let names = Self.all.map(\.name)
            #expect(
                Set(names).count == names.count, "\(Dictionary(grouping: names) { $0 }.filter { $1.count > 1 }.keys)")
        }

        @Test func `the documentation tells how many exchanges there are, and why some are not done`() {
            let path = Samples.folder + "/../docs/http-caching.md"
            let text = String(decoding: ScratchFolder.bytes(at: path) ?? [], as: UTF8.self)
            var wanted = (Self.groups + [("all", Self.all)]).map { name, exchanges in
                let counts = ["required", "optional", "chosen", "not done"].map { weight in
                    exchanges.count { $0.weight.name == weight }
                }
                return "| \(name) | \(counts.map(String.init).joined(separator: " | ")) |"
            }
            for case .notDone(let reason) in Self.all.map(\.weight) { wanted.append("| \(reason) |") }
            let missing = wanted.filter { !text.contains($0) }
            #expect(missing.isEmpty, "docs/http-caching.md wants \(missing)")
        }
    }
}
