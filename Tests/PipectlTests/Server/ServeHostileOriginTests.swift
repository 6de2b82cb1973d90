import TestSupport
import Testing

@testable import pipectl

extension CommandTests {
    /// Every misbehaviour of an origin, through a running server.
    @Suite struct ServeHostileOrigin {
        /// Bytes that all of them together may add to the process: several bodies of the longest length at once, and a
        /// little for what allocators keep.
        private static let longest = 2_000_000
        private static let room = 24_000_000
        private static let settings = [
            #"acceptedTypes=["*/*"]"#, "fetch.breaker=false", "fetch.perHost=64", "fetch.headerSeconds=2",
            "fetch.stallSeconds=1", "fetch.totalSeconds=4", "limits.bytes=\(longest)",
        ]

        @Test func `each is a problem of its own, takes no memory to speak of, and the next good picture comes`()
            async throws
        {
            let origin = try HostileOrigin(good: #require(ScratchFolder.bytes(at: Samples.original("night-tiny.jpg"))))
            defer { origin.stop() }
            try await RunningServer.with(Self.settings, isProgram: true) { server in
                let good = { @Sendable name in
                    RunningServer.variant("thumbnail:20,jpeg", origin.goodURL(name))
                }
                #expect(try await server.ask(good("before")).status == 200)
                let before = try #require(server.child.peakMemory)
                let paths: [@Sendable (String) -> String] = [
                    { RunningServer.original($0) }, { RunningServer.variant("thumbnail:20,jpeg", $0) },
                ]
                for path in paths {
                    try await withThrowingTaskGroup(of: Void.self) { group in
                        for (index, misbehavior) in HostileOrigin.Misbehavior.allCases.enumerated() {
                            if index >= 8 { try await group.next() }
                            group.addTask {
                                let answer = try await server.ask(path(origin.url(misbehavior)))
                                let isProblem = [413, 415, 422, 502, 504].contains(answer.status)
                                // Answers that are not HTTP errors pass, or are pictures.
                                #expect(isProblem ? answer.problem != nil : answer.status < 600, "\(misbehavior)")
                                let next = try await server.ask(good("after-\(misbehavior)"))
                                #expect(next.status == 200, "\(misbehavior)")
                            }
                        }
                        try await group.waitForAll()
                    }
                }
                let after = try #require(server.child.peakMemory)
                #expect(after - before < Self.room, "from \(before) to \(after) bytes")
            }
        }
    }
}
