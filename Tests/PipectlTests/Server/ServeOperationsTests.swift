import PipelineSupport
import Dispatch
import Glibc
import TestSupport
import Testing

@testable import ImageServer
import Pipeline
@testable import pipectl

extension CommandTests {
    /// `/info`, `/metrics`, `/ready`, and a server with as much to do as it takes.
    @Suite struct ServeOperations {
        @Test func `info tells what is known, with a validator, and asks the origin once`() async throws {
            let origin = try FolderOrigin(folder: Samples.folder + "/originals", maxAge: 3600)
            defer { origin.stop() }
            try await RunningServer.with { server in
                let url = origin.url("/meadow-small.jpg")
                let path = "/info/unsigned/" + RunningServer.encoded(url)
                let first = try await server.ask(path)
                #expect(first.status == 200 && first["content-type"] == "application/json")
                let known = SettingValue.parsed(first.text)
                #expect(known["source"] == .string(url) && known["format"] == .string("jpeg"))
                #expect(known["palette"] != nil && known["blurhash"] != nil && known["freshness"] == nil)
                #expect(first["cache-control"]?.hasPrefix("max-age=3") == true)
                let tag = try #require(first["etag"])
                #expect(try await server.ask(path, ["If-None-Match": tag]).status == 304)
                #expect(try await server.ask(path, method: "HEAD")["content-length"] == first["content-length"])
                #expect(origin.requests.count == 1)
                let missing = try await server.ask("/info/unsigned/" + RunningServer.encoded(origin.url("/no.jpg")))
                #expect(missing.status == 404 && missing.problem == "not-found")
            }
        }

        @Test func `metrics are for operators, and count what was answered`() async throws {
            let origin = try FolderOrigin(folder: Samples.folder + "/originals", maxAge: 3600)
            defer { origin.stop() }
            try await RunningServer.with { server in
                let path = RunningServer.variant("thumbnail:16,png", origin.url("/night-tiny.jpg"))
                for _ in 0..<3 { #expect(try await server.ask(path).status == 200) }
                let metrics = try await server.ask("/metrics")
                #expect(
                    metrics.status == 200 && metrics["content-type"]?.hasPrefix("text/plain; version=0.0.4") == true)
                let lines = metrics.text.split(separator: "\n")
                #expect(lines.contains("image_pipeline_http_requests_total{route=\"variant\",status=\"200\"} 3"))
                #expect(lines.contains("image_pipeline_request_seconds_count{result=\"hit\"} 2"))
                #expect(lines.contains("image_pipeline_request_seconds_count{result=\"rendered\"} 1"))
                #expect(lines.contains { $0.hasPrefix("image_pipeline_folder_entries{part=\"variant\"}") })
                #expect(lines.contains("image_pipeline_work{kind=\"renders\"} 0"))
                // Somebody else's request, passed on by a proxy on this machine.
                let passed = try await server.ask("/metrics", ["X-Forwarded-For": "192.0.2.1"])
                #expect(passed.status == 403 && passed.problem == "forbidden")
                #expect(try await server.ask("/ready", ["Via": "1.1 proxy"]).text == "{\"ready\":true}\n")
                #expect(try await server.ask("/ready").text.contains("\"renders\":0"))
            }
            try await RunningServer.with(["server.metrics=false"]) { server in
                let answer = try await server.ask("/metrics")
                #expect(answer.status == 404)
            }
        }

        @Test(.enabled(if: access("/usr/bin/promtool", X_OK) == 0, "needs Debian's prometheus"))
        func `promtool finds nothing to object to in the metrics`() async throws {
            let folder = ScratchFolder()
            try await RunningServer.with(folder: folder) { server in
                for path in ["/health", "/no", RunningServer.variant("circle", "http://127.0.0.1:1/a.jpg")] {
                    _ = try await server.ask(path)
                }
                let text = try await server.ask("/metrics").text
                _ = folder.write(text, to: "metrics.txt")
                let check = try HelperProgram(["sh", "-c", "promtool check metrics < \(folder("metrics.txt"))"])
                let status = await check.end()
                #expect(status == 0 && !text.isEmpty, "\(check.text)")
            }
        }

        @Test func `the process tells of itself as Prometheus' clients do`() async throws {
            try await RunningServer.with(isProgram: true) { server in
                let lines = try await server.ask("/metrics").text.split(separator: "\n")
                func value(_ name: String) -> Double? {
                    lines.first { $0.hasPrefix("process_\(name) ") }.flatMap { Double($0.split(separator: " ")[1]) }
                }
                let resident = try #require(value("resident_memory_bytes"))
                let space = try #require(value("virtual_memory_bytes"))
                #expect(resident > 1e6 && resident < space && (value("cpu_seconds_total") ?? 0) > 0)
                let files = try #require(value("open_fds"))
                #expect(files > 5 && files < (value("max_fds") ?? 0))
                // Within a minute of the system's own word for it.
                let start = try #require(value("start_time_seconds"))
                #expect(abs(start - Double(time(nil))) < 600)
            }
        }

        @Test(.enabled(if: access("/usr/bin/promtool", X_OK) == 0, "needs Debian's prometheus"))
        func `promtool finds nothing to object to in the alert rules`() async throws {
            let check = try HelperProgram(["promtool", "check", "rules", Samples.folder + "/../deploy/alerts.yaml"])
            let status = await check.end()
            #expect(status == 0, "\(check.text)")
        }

        @Test(arguments: ["grafana.json", "alerts.yaml"])
        func `the dashboard and the alert rules ask for metrics that there are`(name: String) throws {
            let file = try #require(ScratchFolder.bytes(at: Samples.folder + "/../deploy/" + name))
            let text = String(decoding: file, as: UTF8.self)
            let asked = Set(text.matches(of: #/image_pipeline_[a-z_]+/#).map { String($0.output) })
            let known =
                Array(ImagePipeline.metricMeanings.keys)
                + [RequestMetrics.requests, RequestMetrics.durations, RequestMetrics.bytes]
                + Site.folderMeanings.keys.map { Site.folderPrefix + $0 }
            let series = Set(known.flatMap { name in ["", "_bucket", "_sum", "_count"].map { name + $0 } })
            #expect(asked.count >= 6 && asked.isSubset(of: series), "\(asked.subtracting(series))")
        }

        @Test func `beyond the bound clients are told when to come again, and hits go on`() async throws {
            let (asked, asks) = AsyncStream<Void>.makeStream()
            let gate = DispatchSemaphore(value: 0)
            let body = try #require(ScratchFolder.bytes(at: Samples.folder + "/originals/night-tiny.jpg"))
            let origin = try LoopbackOrigin { request in
                if request.path.hasPrefix("/held") {
                    asks.yield()
                    gate.wait()
                    // One after the other goes through.
                    gate.signal()
                }
                return .response(200, ["Content-Type": "image/jpeg", "Cache-Control": "max-age=600"], body: body)
            }
            defer {
                gate.signal()
                origin.stop()
            }
            try await RunningServer.with(["server.queue=2"]) { server in
                let known = RunningServer.variant("thumbnail:16,png", origin.url("/known.jpg"))
                #expect(try await server.ask(known).status == 200)
                try await withThrowingTaskGroup(of: Int.self) { group in
                    for number in 0..<2 {
                        group.addTask {
                            try await server.ask(RunningServer.original(origin.url("/held\(number)"))).status
                        }
                    }
                    var arrived = 0
                    for await _ in asked {
                        arrived += 1
                        if arrived == 2 { break }
                    }
                    let refused = try await server.ask(RunningServer.original(origin.url("/more")))
                    #expect(refused.status == 503 && refused.problem == "overloaded")
                    #expect(refused["retry-after"].flatMap { Int($0) }.map { $0 >= 1 } == true)
                    #expect(try await server.ask(known).status == 200)
                    #expect(try await server.ask("/health").status == 200)
                    let metrics = try await server.ask("/metrics").text
                    #expect(metrics.contains("image_pipeline_work{kind=\"fetches\"} 2"))
                    #expect(metrics.contains("image_pipeline_work_refused_total{kind=\"fetches\"} 1"))
                    gate.signal()
                    for try await status in group { #expect(status == 200) }
                }
                #expect(try await server.ask(RunningServer.original(origin.url("/more"))).status == 200)
            }
        }

        @Test func `ready turns false before the listener closes`() async throws {
            let server = try await RunningServer.start(
                ["server.drainSeconds=3600", "server.adminListen=127.0.0.1:0"], isProgram: true)
            let operators = try await server.operators()
            #expect(try await operators.ask("/metrics", ["Via": "1.1 proxy"]).status == 200)
            #expect(try await server.ask("/ready").status == 200)
            server.child.signal(SIGTERM)
            var answer = try await server.ask("/ready")
            while answer.status == 200 { answer = try await server.ask("/ready") }
            #expect(answer.status == 503 && answer.text.contains("\"ready\":false"))
            #expect(try await server.ask("/health").status == 200)
            // The second ends it at once.
            server.child.signal(SIGTERM)
            #expect(await server.child.end.exit == 130)
        }
    }
}
