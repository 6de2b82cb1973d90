import Dispatch
import Glibc
import TestSupport
import Testing

@testable import pipectl

extension CommandTests {
    /// Many clients that want the same cold variant at once.
    @Suite struct ServeStampede {
        @Test func `a thousand clients of a cold variant cause one fetch and one render`() async throws {
            let clients = 1000
            Self.raiseDescriptorLimit()
            let gate = DispatchSemaphore(value: 0)
            let body = try #require(ScratchFolder.bytes(at: Samples.folder + "/originals/night-tiny.jpg"))
            let origin = try LoopbackOrigin { _ in
                gate.wait()
                // A second fetch would get through as well, so that the test fails instead of hanging.
                gate.signal()
                return .response(200, ["Content-Type": "image/jpeg", "Cache-Control": "max-age=600"], body: body)
            }
            defer {
                gate.signal()
                origin.stop()
            }
            let patience = [
                "fetch.headerSeconds=600", "fetch.totalSeconds=600", "fetch.stallSeconds=600",
                "server.connectionsPerAddress=1024",
            ]
            try await RunningServer.with(patience) { server in
                let connections = try await Self.connections(clients, to: server)
                let path = RunningServer.variant("thumbnail:16,png", origin.url("/wanted.jpg"))
                for connection in connections { connection.send(RunningServer.head(path)) }

                // Every request has looked into the caches, and found nothing, before the origin answers.
                let lookUps = "image_pipeline_stage_seconds_count{stage=\"look_up\"}"
                var seen = 0
                while seen < clients { seen = try await Self.counter(lookUps, of: server) ?? 0 }
                #expect(origin.requests.count == 1)
                gate.signal()

                let responses = await Self.responses(of: connections)
                #expect(responses.count == clients)
                #expect(responses.allSatisfy { $0.status == 200 && $0["content-type"] == "image/png" })
                let first = try #require(responses.first)
                #expect(!first.body.isEmpty && first["etag"] != nil)
                #expect(responses.allSatisfy { $0.body == first.body && $0["etag"] == first["etag"] })

                #expect(origin.requests.count == 1)
                for stage in ["fetch", "render"] {
                    let runs = "image_pipeline_stage_seconds_count{stage=\"\(stage)\"}"
                    #expect(try await Self.counter(runs, of: server) == 1, "\(stage)")
                }
                let answers = "image_pipeline_http_requests_total{route=\"variant\",status=\"200\"}"
                #expect(try await Self.counter(answers, of: server) == clients)
                for connection in connections { await connection.close() }
            }
        }

        /// A series of `/metrics`; nil while it is not there.
        private static func counter(_ series: String, of server: RunningServer) async throws -> Int? {
            try await server.ask("/metrics").text.split(separator: "\n").first { $0.hasPrefix(series + " ") }
                .flatMap { Int($0.dropFirst(series.count + 1)) }
        }

        /// Open connections; few are being opened at any time, so that the queue of the listener does not overflow.
        private static func connections(_ count: Int, to server: RunningServer) async throws -> [RawClient] {
            try await withThrowingTaskGroup(of: [RawClient].self) { group in
                let tasks = 20
                for task in 0..<tasks {
                    group.addTask {
                        var opened: [RawClient] = []
                        for _ in stride(from: task, to: count, by: tasks) {
                            opened.append(try await RawClient.connect(server.port))
                        }
                        return opened
                    }
                }
                return try await group.reduce(into: []) { $0 += $1 }
            }
        }

        /// The first response of each connection.
        private static func responses(of connections: [RawClient]) async -> [RawResponse] {
            var all: [RawResponse] = []
            for connection in connections { all += await connection.responses(1) }
            return all
        }

        /// A thousand connections need more descriptors than the usual soft limit of 1,024 leaves.
        private static func raiseDescriptorLimit() {
            var limit = rlimit()
            guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return }
            limit.rlim_cur = max(limit.rlim_cur, min(limit.rlim_max, 8192))
            _ = setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        }
    }
}
