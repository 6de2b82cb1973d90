import PipelineSupport
import Synchronization
import TestSupport
import Testing

@testable import pipectl

extension CommandTests {
    /// Killed at points that the origin's requests and a seeded choice pick.
    @Suite struct Killed {
        /// Small bodies are in the index, larger ones in files. Each is recognized by its first bytes.
        private static func body(_ name: String) -> [UInt8] {
            let length = name.utf8.last.map { Int($0) % 2 == 0 } == true ? 3_000 : 300_000
            let seed = Array(name.utf8)
            return (0..<length).map { seed[$0 % seed.count] &+ UInt8(truncatingIfNeeded: $0 / 251) }
        }

        @Test func `a server killed while it fetches and stores serves nothing torn afterwards`() async throws {
            let folder = ScratchFolder()
            let victim = Mutex<(server: ChildProgram, left: Int)?>(nil)
            let origin = try LoopbackOrigin { request in
                let isLast = victim.withLock { state in
                    state?.left -= 1
                    return state?.left == 0
                }
                // Earlier answers are being received, digested and stored at this moment.
                if isLast { victim.withLock { $0?.server.signal(9) } }
                return .response(
                    200, ["Content-Type": "image/x", "Cache-Control": "max-age=3600"], body: Self.body(request.path))
            }
            defer { origin.stop() }
            var names: [String] = []
            var random = SystemRandomNumberGenerator()
            let settings = ["forwardFields=[\"Cache-Control\"]"]
            for round in 0..<12 {
                let server = try await RunningServer.start(settings, folder: folder, isProgram: true)
                let count = 30
                let mine = (0..<count).map { "/\(round)-\($0)" }
                names += mine
                let last = Int.random(in: 1...count, using: &random)
                victim.withLock { $0 = (server.child, last) }
                await withTaskGroup(of: Void.self) { group in
                    for name in mine {
                        // The server may be gone. Its earlier answers must be whole.
                        group.addTask {
                            guard let got = try? await server.ask(RunningServer.original(origin.url(name))) else {
                                return
                            }
                            if got.status == 200 { #expect(got.body == Self.body(name)) }
                        }
                    }
                }
                let ended = await server.child.end
                #expect(ended.exit == 137, "\(ended.errors.suffix(2000))")
            }
            victim.withLock { $0 = nil }
            let before = origin.requests.count
            try await RunningServer.with(settings, folder: folder) { server in
                var stored = 0
                for name in names {
                    let target = RunningServer.original(origin.url(name))
                    let got = try await server.ask(target, ["Cache-Control": "only-if-cached"])
                    #expect(got.status == 200 || got.status == 504)
                    if got.status == 200 {
                        stored += 1
                        #expect(got.body == Self.body(name), "\(name)")
                    }
                }
                #expect(stored > 0)
            }
            #expect(origin.requests.count == before)
            let verified = try await ChildProgram.run(
                ["cache", "verify", "--json", "--cache", folder("cache")], folder: folder.path)
            let report = SettingValue.parsed(verified.text)
            for fault in ["damagedBodies", "missingFiles", "brokenEntries"] {
                #expect(report[fault] == .int(0), "\(verified.text)")
            }
            #expect(report["indexDamaged"] == .bool(false), "\(verified.text)")
        }
    }
}
