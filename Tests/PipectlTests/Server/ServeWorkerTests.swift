import Glibc
import TestSupport
import Testing

@testable import pipectl

extension CommandTests {
    /// Render workers under the program itself. Originals that name a fault at their end cause it, which workers heed
    /// only if the environment permits it (docs/workers.md).
    @Suite struct Workers {
        private static let faults = ["IMAGE_PIPELINE_WORKER_FAULTS=1"]

        /// An origin with the sample as its pictures, followed by the fault that the path names.
        private static func origin() throws -> LoopbackOrigin {
            let sample = try #require(ScratchFolder.bytes(at: Samples.original("night-tiny.jpg")))
            return try LoopbackOrigin { request in
                let name = request.path.dropFirst()
                let body = name.hasPrefix("fine") ? sample : sample + Array("pipectl-fault:\(name)".utf8)
                return .response(200, ["Content-Type": "image/jpeg", "Cache-Control": "max-age=3600"], body: body)
            }
        }

        @Test func `a worker that crashes, hangs or lies costs one request of the server`() async throws {
            let origin = try Self.origin()
            defer { origin.stop() }
            let settings = ["limits.seconds=1", "render.workers=1"]
            try await RunningServer.with(settings, environment: Self.faults, isProgram: true) { server in
                let cases = [
                    ("segv", 422, "render-crashed"), ("nonsense", 422, "render-crashed"),
                    ("garbage", 422, "render-crashed"), ("hang", 504, "render-timeout"),
                ]
                for (number, (fault, status, problem)) in cases.enumerated() {
                    let bad = try await server.ask(
                        RunningServer.variant("thumbnail:20", origin.url("/" + fault)), ["X-Forwarded-For": "192.0.2.1"]
                    )
                    #expect(bad.status == status)
                    #expect(String(decoding: bad.body, as: UTF8.self).contains(problem))
                    // Nothing of the server's inside.
                    #expect(!String(decoding: bad.body, as: UTF8.self).contains("SIG"))
                    let good = try await server.ask(RunningServer.variant("thumbnail:2\(number)", origin.url("/fine")))
                    #expect(good.status == 200)
                }
                // The second time it is refused without costing a worker.
                let again = try await server.ask(RunningServer.variant("thumbnail:20", origin.url("/segv")))
                #expect(again.status == 422)
                let told = await server.waitForOutput("was killed by SIGSEGV")
                #expect(told.contains("render workers: ") && told.contains("was killed by SIGSEGV"))
            }
        }

        /// Times that a process has gone to sleep; 0 once it has ended. A worker that hangs does so a thousand times a second.
        private static func sleeps(_ process: pid_t) -> Int {
            let status = String(decoding: ScratchFolder.bytes(at: "/proc/\(process)/status") ?? [], as: UTF8.self)
            // The next line counts involuntary switches, under a name that ends in the same words.
            let words = status.split(separator: "voluntary_ctxt_switches:\t")
            guard !status.contains("State:\tZ"), words.count > 1 else { return 0 }
            return Int(words[1].prefix { $0.isNumber }) ?? 0
        }

        @Test func `a render whose workers are killed from outside is a 503 with Retry-After, and is not remembered`()
            async throws
        {
            let origin = try Self.origin()
            defer { origin.stop() }
            try await RunningServer.with(["render.workers=1"], environment: Self.faults, isProgram: true) { server in
                let path = RunningServer.variant("thumbnail:20", origin.url("/hang"))
                for _ in 0..<2 {
                    async let asked = server.ask(path)
                    for _ in 0..<2 {
                        try await waitWhile { !server.child.children.contains { Self.sleeps($0) > 300 } }
                        let worker = try #require(server.child.children.first { Self.sleeps($0) > 300 })
                        kill(worker, SIGKILL)
                        try await waitWhile { Self.sleeps(worker) > 0 }
                    }
                    let answer = try await asked
                    #expect(answer.status == 503 && answer.problem == "worker-killed", "\(answer.text)")
                    #expect(answer["Retry-After"] == "10")
                }
            }
        }

        @Test func `a slow or crashing encoder costs other recipes of the original nothing`() async throws {
            let origin = try Self.origin()
            defer { origin.stop() }
            let settings = ["limits.encodeSeconds=1", "render.workers=1"]
            try await RunningServer.with(settings, environment: Self.faults, isProgram: true) { server in
                func ask(_ fault: String, _ recipe: String) async throws -> (status: Int, body: String) {
                    let answer = try await server.ask(RunningServer.variant(recipe, origin.url("/" + fault)))
                    return (answer.status, String(decoding: answer.body, as: UTF8.self))
                }
                for recipe in ["avif:max=50kB", "avif:max=60kB", "webp"] {
                    let slow = try await ask("encode-hang", recipe)
                    #expect(slow.status == 504 && slow.body.contains("render-timeout"), "\(slow)")
                    // Not "not rendered": it was tried, whatever happened to the recipes before.
                    #expect(slow.body.contains("1.0 s (limits.encodeSeconds)") && !slow.body.contains("not rendered"))
                    let again = try await ask("encode-hang", recipe)
                    #expect(again.status == 504 && again.body.contains("not rendered"), "\(again)")
                    #expect(try await ask("encode-segv", recipe).body.contains("render-crashed"))
                }
            }
        }

        @Test func `a cached variant of a quarantined original is served`() async throws {
            let origin = try Self.origin()
            defer { origin.stop() }
            let folder = ScratchFolder()
            let source = origin.url("/segv")
            let get = try ChildProgram(
                [
                    "get", source, "-r", "thumbnail:30", "--json", "--cache", folder("cache"), "--set",
                    "allowPrivateAddresses=true",
                ], folder: folder.path)
            let made = await get.end
            #expect(made.exit == 0, "\(made.errors)")
            try await RunningServer.with(
                ["render.workers=1"], folder: folder, environment: Self.faults, isProgram: true
            ) { server in
                for recipe in ["thumbnail:20", "thumbnail:21", "thumbnail:22"] {
                    let answer = try await server.ask(RunningServer.variant(recipe, source))
                    #expect(answer.status == 422)
                }
                let cached = try await server.ask(RunningServer.variant("thumbnail:30", source))
                #expect(cached.status == 200, "\(String(decoding: cached.body, as: UTF8.self))")
            }
        }

        @Test func `after hostile pictures the server has the memory and workers it had`() async throws {
            let sample = try #require(ScratchFolder.bytes(at: Samples.original("night-tiny.jpg")))
            let giant = try #require(ScratchFolder.bytes(at: Samples.broken("giant-header.png")))
            let large = try #require(ScratchFolder.bytes(at: Samples.original("mountains-12mp.jpg")))
            let origin = try LoopbackOrigin { request in
                // A different picture each time, so that none is remembered.
                let number = Array(request.path.utf8)
                let body: [UInt8]
                switch request.path.dropFirst().first {
                case "c": body = Array(large.prefix(large.count / 2)) + number
                case "g": body = giant + number
                case "n": body = Array(sample.prefix(20)) + [UInt8](repeating: 0x41, count: 8_000_000) + number
                case "t": body = Array("<html>".utf8) + number
                case "s": body = sample + number + Array("pipectl-fault:segv".utf8)
                default: body = sample + number
                }
                return .response(200, ["Content-Type": "image/jpeg", "Cache-Control": "no-store"], body: body)
            }
            defer { origin.stop() }
            let settings = ["render.workers=1", "memory.originals=1MB", "memory.variants=1MB"]
            try await RunningServer.with(settings, environment: Self.faults, isProgram: true) { server in
                func ask(_ kinds: String, rounds: Int) async throws -> [Int] {
                    var statuses: [Int] = []
                    for round in 0..<rounds {
                        for kind in kinds {
                            let path = origin.url("/\(kind)\(round)")
                            statuses.append(try await server.ask(RunningServer.variant("thumbnail:20", path)).status)
                        }
                    }
                    return statuses
                }
                #expect(try await ask("f", rounds: 4) == [200, 200, 200, 200])
                // The process takes the freed memory that it keeps for later once.
                _ = try await ask("cgnts", rounds: 4)
                let before = server.child.anonymousBytes
                let statuses = try await ask("cgnts", rounds: 8)
                #expect(statuses.allSatisfy { (400..<500).contains($0) }, "\(statuses)")
                #expect(try await ask("f", rounds: 4) == [200, 200, 200, 200])
                let grown = server.child.anonymousBytes - before
                // Less than the bodies of 8 MB alone would leave.
                #expect(before > 0 && grown < 48 << 20, "\(before) bytes, and then \(grown) more")
                #expect(server.child.children.count == 1)
            }
        }

        @Test func `the server itself maps no libvips, before a render or after one`() async throws {
            let origin = try Self.origin()
            defer { origin.stop() }
            try await RunningServer.with(isProgram: true) { server in
                #expect(server.child.mapped("libvips") == false)
                let answer = try await server.ask(RunningServer.variant("thumbnail:20", origin.url("/fine")))
                #expect(answer.status == 200)
                #expect(server.child.mapped("libvips") == false)
                let workers = server.child.children
                #expect(!workers.isEmpty)
            }
        }

        @Test func `a command answered from the cache loads no libvips, and neither do the cache commands`()
            async throws
        {
            let folder = ScratchFolder()
            let words = ["get", Samples.original("night-tiny.jpg"), "-r", "thumbnail:16", "--cache", folder("c")]
            for (arguments, outcome) in [
                (words + ["--json"], "\"rendered\""), (words + ["--json"], "\"disk\""),
                (["cache", "stats", "--cache", folder("c")], "variants"),
            ] {
                // The loader reports every library that is opened, now or later, in this process only.
                let child = try ChildProgram(arguments, folder: folder.path, environment: ["LD_DEBUG=files"])
                let ended = await child.end
                #expect(ended.exit == 0 && ended.text.contains(outcome), "\(ended.text)")
                #expect(ended.errors.contains("libc.so.6") && !ended.errors.contains("libvips"))
                #expect(!ended.errors.contains("libcurl"))
            }
        }

        @Test func `a server that is killed leaves no worker behind`() async throws {
            let server = try await RunningServer.start(isProgram: true)
            let workers = server.child.children
            #expect(!workers.isEmpty)
            server.child.signal(SIGKILL)
            _ = await server.child.end
            // The kernel ends them; each is gone once its new parent has waited for it.
            for worker in workers {
                try await waitWhile { kill(worker, 0) == 0 && !ChildProgram.isZombie(worker) }
            }
        }

        @Test func `render.isolation decides where pictures are rendered`() async throws {
            let folder = ScratchFolder()
            let sample = try #require(ScratchFolder.bytes(at: Samples.original("night-tiny.jpg")))
            let source = folder.write(sample + Array("pipectl-fault:segv".utf8), to: "a.jpg")
            for (isolation, exit) in [("workers", Int32(6)), ("inProcess", 0)] {
                let child = try ChildProgram(
                    ["get", source, "-r", "thumbnail:16", "--json", "--set", "render.isolation=\(isolation)"],
                    folder: folder.path, environment: Self.faults)
                let ended = await child.end
                #expect(ended.exit == exit, "\(ended.text) \(ended.errors)")
                #expect(ended.text.contains("renderCrashed") == (exit == 6))
            }
        }
    }
}
