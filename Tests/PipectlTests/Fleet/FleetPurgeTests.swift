import Glibc
import PipelineSupport
import TestSupport
import Testing

@testable import pipectl

extension CommandTests {
    /// Servers with caches of their own that tell each other of purges.
    @Suite(.enabled(if: RedisTestServer.isInstalled, "scripts/install-dependencies redis"))
    struct FleetPurges {
        private static let token = "0123456789abcdef"
        private static let seconds = 0.1

        private static func node(_ redis: RedisTestServer, isProgram: Bool = false) async throws -> RunningServer {
            try await RunningServer.start(
                ["adminToken=\(token)", "fleet.redis=\(redis.url)", "fleet.seconds=\(seconds)"], isProgram: isProgram)
        }

        /// The longer time is beyond the deadline of a read that waited for purges.
        @Test(arguments: [2 * seconds, 6])
        func `a server that was stopped during a purge never answers with what was purged`(_ pause: Double)
            async throws
        {
            let redis = try RedisTestServer()
            let pictures = ScratchFolder()
            func put(_ sample: String) {
                let bytes = ScratchFolder.bytes(at: Samples.folder + "/originals/" + sample) ?? []
                _ = pictures.write(bytes, to: "a.jpg")
            }
            put("night-tiny.jpg")
            let origin = try FolderOrigin(folder: pictures.path, maxAge: 3600)
            defer { origin.stop() }
            let source = RunningServer.encoded(origin.url("/a.jpg"))
            let target = "/variant/unsigned/thumbnail:40,png/" + source
            let nodes = [
                try await Self.node(redis), try await Self.node(redis), try await Self.node(redis, isProgram: true),
            ]
            var old: [UInt8] = []
            for node in nodes {
                let answer = try await node.ask(target)
                #expect(answer.status == 200)
                old = answer.body
            }
            #expect(try await nodes[2].ask(target).body == old)
            put("meadow-small.jpg")
            nodes[2].child.signal(SIGSTOP)
            let stopped = SystemClock.boot.seconds
            let purged = try await nodes[0].ask(
                "/source/" + source, method: "DELETE", ["Authorization": "Bearer \(Self.token)"])
            #expect(purged.status == 200 && !purged.text.contains("unconfirmed"), "\(purged.text)")
            let new = try await nodes[0].ask(target).body
            #expect(new != old && !new.isEmpty)
            try await eventually { try await nodes[1].ask(target).body == new }
            // The time for which it relies on its knowledge has passed.
            try await eventually { SystemClock.boot.seconds > stopped + pause }
            let client = try await RawClient.connect(nodes[2].port)
            client.send(RunningServer.head(target, closes: true))
            nodes[2].child.signal(SIGCONT)
            let answer = RawResponse.all(in: await client.receivedToEnd(), heads: false).first
            #expect(answer?.body == new && answer?["cache-status"]?.contains("hit") == false, "\(answer?.text ?? "")")

            try await eventually {
                try await nodes[2].ask("/ready").text.contains(#""fleet":{"connected":true,"purge":1"#)
            }
            let metrics = try await nodes[2].ask("/metrics").text
            #expect(metrics.contains(#"image_pipeline_fleet_purges_total{event="heard"} 1"#), "\(metrics)")
            redis.stop()
            try await eventually { try await nodes[2].ask("/ready").text.contains(#""connected":false"#) }
            #expect(try await nodes[2].ask(target).body == new)
            let alone = try await nodes[0].ask(
                "/source/" + source, method: "DELETE", ["Authorization": "Bearer \(Self.token)"])
            #expect(alone.text.contains(#""unconfirmed":["fleet"]"#), "\(alone.text)")
            for node in nodes {
                let ended = await node.stop()
                #expect(ended.exit == 0, "\(ended.errors)")
            }
        }

        @Test(arguments: ["http://a.test", "redis://", "redis://:pass/word@a.test"])
        func `a server that cannot be is refused, without its password`(_ url: String) throws {
            let settings = try Settings(assignments: ["fleet.redis=" + url])
            let error = #expect(throws: SettingErrors.self) { _ = try settings.configuration() }
            let text = "\(String(describing: error))"
            #expect(text.contains("fleet.redis") && !text.contains("pass/word"))
        }
    }
}
