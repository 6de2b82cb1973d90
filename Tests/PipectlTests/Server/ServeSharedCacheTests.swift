import PipelineSupport
import Dispatch
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import pipectl

extension CommandTests {
    /// Several programs on one cache folder.
    @Suite struct SharedCache {
        private let site = CommandSite()

        private static func reply(_ control: String) -> OriginReply {
            .response(
                200, ["Content-Type": "image/jpeg", "Cache-Control": control],
                body: ScratchFolder.bytes(at: Samples.original("night-tiny.jpg")) ?? [])
        }

        private func get(_ source: String, to name: String, _ options: [String] = []) throws -> ChildProgram {
            try ChildProgram(
                ["get", source, "-r", "thumbnail:20,png", "-o", name] + site.flags + options, folder: site.folder.path)
        }

        @Test func `what another program purges is not served from the server's memory`() async throws {
            let origin = try FolderOrigin(folder: Samples.folder + "/originals", maxAge: 3600)
            defer { origin.stop() }
            try await RunningServer.with { server in
                let sources = ["/night-tiny.jpg", "/meadow-small.jpg"].map { origin.url($0) }
                let targets = sources.map { RunningServer.variant("thumbnail:20,png", $0) }
                for target in targets { _ = try await server.ask(target) }
                for target in targets {
                    #expect(try await server.ask(target)["cache-status"]?.contains("detail=memory") == true)
                }
                #expect(origin.requests.count == 2)
                let purged = try await ChildProgram.run(
                    ["cache", "purge", sources[0], "--cache", server.folder("cache")], folder: server.folder.path)
                #expect(purged.exit == 0, "\(purged.errors)")
                #expect(try await server.ask(targets[1])["cache-status"]?.contains("detail=memory") == true)
                #expect(try await server.ask(targets[0])["cache-status"]?.contains("fwd=uri-miss") == true)
                #expect(origin.requests.count == 3)
            }
        }

        @Test(.timeLimit(.minutes(1)))
        func `programs that want one cold source at once all get it, and the next finds it`() async throws {
            let (asked, asks) = AsyncStream<Void>.makeStream()
            let door = DispatchSemaphore(value: 0)
            let origin = try LoopbackOrigin { _ in
                asks.yield()
                door.wait()
                return Self.reply("max-age=600")
            }
            defer { origin.stop() }
            let children = try (0..<4).map { try get(origin.url("/a.jpg"), to: "\($0).png") }
            // No program waits for another one.
            var arrivals = asked.makeAsyncIterator()
            for _ in children { await arrivals.next() }
            for _ in children { door.signal() }
            for child in children {
                let ended = await child.end
                #expect(ended.exit == 0, "\(ended.errors)")
            }
            #expect(try await get(origin.url("/a.jpg"), to: "4.png").end.exit == 0)
            #expect(origin.requests.count == 4)
            let first = site.folder.bytes("0.png")
            #expect(first?.isEmpty == false && (1...4).allSatisfy { site.folder.bytes("\($0).png") == first })
            let stats = SettingValue.parsed(
                try await site.plain(["cache", "stats", "--json", "--cache", site.cache]).text)
            for tier in ["records", "originals", "variants"] {
                #expect(stats.at(tier, "entries") == .int(1) && stats.at(tier, "corrupt") == .int(0), "\(stats)")
            }
            #expect(try await site.plain(["cache", "verify", "--cache", site.cache]).exit == 0)
        }

        @Test(.timeLimit(.minutes(1)))
        func `a program that is stopped while it fetches delays no other, and goes on later`() async throws {
            let (asked, asks) = AsyncStream<Void>.makeStream()
            let door = DispatchSemaphore(value: 0)
            let isFirst = Atomic<Bool>(true)
            let origin = try LoopbackOrigin { _ in
                if isFirst.exchange(false, ordering: .relaxed) {
                    asks.yield()
                    door.wait()
                }
                return Self.reply("max-age=600")
            }
            defer { origin.stop() }
            let patience = ["--set", "fetch.totalSeconds=3600", "--set", "fetch.headerSeconds=3600"]
            let stopped = try get(origin.url("/a.jpg"), to: "0.png", patience)
            for await _ in asked { break }
            stopped.signal(SIGSTOP)
            for number in 1..<3 {
                #expect(try await get(origin.url("/a.jpg"), to: "\(number).png", patience).end.exit == 0)
            }
            #expect(origin.requests.count == 2)
            door.signal()
            stopped.signal(SIGCONT)
            #expect(await stopped.end.exit == 0)
            let first = site.folder.bytes("0.png")
            #expect(first?.isEmpty == false && (1..<3).allSatisfy { site.folder.bytes("\($0).png") == first })
            #expect(try await site.plain(["cache", "verify", "--cache", site.cache]).exit == 0)
        }
    }
}
