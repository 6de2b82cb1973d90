import Glibc
import TestSupport
import Testing

@testable import pipectl

extension CommandTests {
    /// Deep zoom through a server.
    @Suite struct ServeIIIF {
        private static let python = Page.python
        private static let grammar = #"grammars={"iiif":{"path":"/iiif","unsigned":true,"tile":512}}"#

        private static func service(_ url: String) -> String { "/iiif/3/" + url.replacing("/", with: "%2F") }

        /// Returns the region and the size of each tile of a level.
        private static func tiles(_ width: Int, _ height: Int, _ factor: Int) -> [String] {
            let edge = 512 * factor
            return stride(from: 0, to: height, by: edge).flatMap { y in
                stride(from: 0, to: width, by: edge).map { x in
                    let (w, h) = (min(edge, width - x), min(edge, height - y))
                    return "\(x),\(y),\(w),\(h)/\((w + factor - 1) / factor),\((h + factor - 1) / factor)"
                }
            }
        }

        @Test func `a viewer walks a picture of 537 megapixels with one fetch, in workers of 192 MiB`() async throws {
            let (width, height) = (28_000, 19_200)
            let origin = try LoopbackOrigin { _ in
                .response(
                    200, ["Content-Type": "image/tiff", "Cache-Control": "max-age=600"],
                    body: HandmadePyramid.file(width: width, height: height, levels: 6))
            }
            defer { origin.stop() }
            let service = Self.service(origin.url("/map.tif"))
            let settings = [Self.grammar, "limits.workerMemory=192MiB", "limits.pixels=20000000"]
            try await RunningServer.with(settings, isProgram: true) { server in
                let info = try await server.ask(service + "/info.json")
                #expect(info.text.contains("\"width\":\(width),\"height\":\(height)"))
                #expect(info.text.contains("\"scaleFactors\":[1,2,4,8,16,32,64]"))
                // All tiles of the coarse levels, and some of the others.
                var targets = [64, 32, 16].flatMap { Self.tiles(width, height, $0) }
                for factor in [8, 4, 2, 1] {
                    let all = Self.tiles(width, height, factor)
                    targets += [all[0], all[all.count / 2], all[all.count - 1]]
                }
                #expect(targets.count == 29)
                try await withThrowingTaskGroup { group in
                    for target in targets {
                        group.addTask { (target, try await server.ask(service + "/\(target)/0/default.png")) }
                    }
                    for try await (target, response) in group {
                        #expect(response.status == 200, "\(target) \(response.text)")
                        let size = target.split(separator: "/")[1].split(separator: ",").map { Int($0) ?? 0 }
                        // The width and the height in the header of a PNG.
                        let header = response.body.dropFirst(16).prefix(8).map { Int($0) }
                        let (width, height) = (header[2] << 8 | header[3], header[6] << 8 | header[7])
                        #expect(size == [width, height], "\(target)")
                    }
                }
                // One render each, and none again.
                let again = try await server.ask(service + "/\(targets[0])/0/default.png")
                #expect(again["cache-status"]?.contains("hit") == true)
                let metrics = try await server.ask("/metrics").text
                #expect(
                    metrics.contains("image_pipeline_stage_seconds_count{stage=\"render\"} \(targets.count)\n"),
                    "\(metrics)")
                #expect(metrics.contains("image_pipeline_worker_events_total{cause=\"crashed\"} 0\n"), "\(metrics)")
                let whole = try await server.ask(service + "/full/512,/90/default.png")
                #expect(whole.status == 200)
                let large = try await server.ask(service + "/0,0,8192,8192/8192,8192/0/default.png")
                #expect(large.status == 413 && large["access-control-allow-origin"] == "*")
            }
            #expect(origin.requests.count == 1)
        }

        /// `Tests/Page/zoom_test.py` has the checks.
        @Test(
            .enabled(
                if: access("/usr/bin/chromium", X_OK) == 0 && access(python, X_OK) == 0,
                "needs Debian's chromium and playwright (scripts/install-dependencies chromium)"))
        func `a page shows the tiles of each level as one picture in Chromium`() async throws {
            let images = try FolderOrigin(folder: Samples.folder + "/originals", maxAge: 3600)
            defer { images.stop() }
            try await RunningServer.with([Self.grammar.replacing("512", with: "256")]) { server in
                let address = "http://127.0.0.1:\(server.port)" + Self.service(images.url("/dunes-2mp.jpg"))
                let checks = try HelperProgram([
                    "timeout", "--kill-after=5", "300", Self.python, Page.repository + "/Tests/Page/zoom_test.py",
                    address,
                ])
                let status = await checks.end()
                #expect(status == 0, "\(checks.text)")
                #expect(checks.text.split(separator: "\n").last == "done")
            }
            #expect(images.requests.count == 1)
        }

        @Test func `limits, full queues and late origins are plain text that every page may read`() async throws {
            let gate = BlockingGate()
            let images = try LoopbackOrigin { request in
                if request.target.contains("late") { gate.pass() }
                return .response(
                    200, ["Content-Type": "image/jpeg"],
                    body: ScratchFolder.bytes(at: Samples.original("meadow-small.jpg")) ?? [])
            }
            defer { images.stop() }
            defer { gate.open() }
            func check(_ response: RawResponse, _ status: Int, retries: Bool = false) {
                #expect(
                    response.status == status && response["content-type"] == "text/plain; charset=utf-8",
                    "\(response.text)")
                #expect(response["access-control-allow-origin"] == "*" && response["cache-control"] == "no-store")
                #expect((response["retry-after"] != nil) == retries && !response.text.contains("127.0.0.1"))
            }
            let rest = "/full/max/0/default.png"
            try await RunningServer.with([Self.grammar, "limits.pixels=1000"]) { server in
                check(try await server.ask(Self.service(images.url("/a.jpg")) + rest), 413)
            }
            try await RunningServer.with([Self.grammar, "fetch.headerSeconds=0.3"]) { server in
                check(try await server.ask(Self.service(images.url("/late.jpg")) + rest), 504)
                check(try await server.ask(Self.service(images.url("/late.jpg")) + "/info.json"), 504)
            }
            let before = images.requests.count
            try await RunningServer.with([Self.grammar, "server.queue=1"]) { server in
                async let first = server.ask(Self.service(images.url("/late1.jpg")) + rest)
                try await waitWhile { images.requests.count == before }
                check(try await server.ask(Self.service(images.url("/late2.jpg")) + rest), 503, retries: true)
                gate.open()
                #expect(try await first.status == 200)
            }
        }
    }
}
