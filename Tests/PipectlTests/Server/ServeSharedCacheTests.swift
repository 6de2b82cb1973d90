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

        private func get(_ source: String, to name: String) throws -> ChildProgram {
            try ChildProgram(
                ["get", source, "-r", "thumbnail:20,png", "-o", name] + site.flags, folder: site.folder.path)
        }

        /// Returns once the child has come as far as to fetch, or to wait for who fetches.
        private func arrival(of child: ChildProgram) async throws {
            try await waitWhile { child.openFiles?.contains(where: { $0.hasSuffix("/flights.lock") }) == false }
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

        @Test func `four programs that want one cold source ask for it once`() async throws {
            let door = DispatchSemaphore(value: 0)
            let origin = try LoopbackOrigin { _ in
                door.wait()
                return Self.reply("max-age=600")
            }
            defer { origin.stop() }
            let children = try (0..<4).map { try get(origin.url("/a.jpg"), to: "\($0).png") }
            for child in children { try await arrival(of: child) }
            // One for whoever would ask in vain.
            for _ in children { door.signal() }
            for child in children {
                let ended = await child.end
                #expect(ended.exit == 0, "\(ended.errors)")
            }
            #expect(origin.requests.count == 1)
            let first = site.folder.bytes("0.png")
            #expect(first?.isEmpty == false && (1..<4).allSatisfy { site.folder.bytes("\($0).png") == first })
            let stats = SettingValue.parsed(
                try await site.plain(["cache", "stats", "--json", "--cache", site.cache]).text)
            #expect(stats.at("variants", "insertions") == .int(1))
        }

        @Test func `when the program that fetches is killed the next one fetches`() async throws {
            let (asked, asks) = AsyncStream<Void>.makeStream()
            let isFirst = Atomic<Bool>(true)
            let origin = try LoopbackOrigin { _ in
                defer { asks.yield() }
                return isFirst.exchange(false, ordering: .relaxed) ? .hang : Self.reply("max-age=600")
            }
            defer { origin.stop() }
            let victim = try get(origin.url("/a.jpg"), to: "0.png")
            for await _ in asked { break }
            let others = try (1..<3).map { try get(origin.url("/a.jpg"), to: "\($0).png") }
            for child in others { try await arrival(of: child) }
            victim.signal(SIGKILL)
            #expect(await victim.end.exit == 137)
            for child in others { #expect(await child.end.exit == 0) }
            #expect(origin.requests.count == 2)
        }

        @Test func `what may not be stored is fetched by each program, and not in line`() async throws {
            let door = DispatchSemaphore(value: 0)
            let arrived = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
            let count = Atomic<Int>(0)
            let origin = try LoopbackOrigin { _ in
                switch count.add(1, ordering: .relaxed).newValue {
                case 1:
                    door.wait()
                case 2:
                    // Answered only while the third is being asked for as well.
                    arrived.0.signal()
                    arrived.1.wait()
                default:
                    arrived.1.signal()
                    arrived.0.wait()
                }
                return Self.reply("no-store")
            }
            defer { origin.stop() }
            let children = try (0..<3).map { try get(origin.url("/a.jpg"), to: "\($0).png") }
            for child in children { try await arrival(of: child) }
            #expect(count.load(ordering: .relaxed) <= 1)
            door.signal()
            for child in children {
                let ended = await child.end
                #expect(ended.exit == 0, "\(ended.errors)")
            }
            #expect(origin.requests.count == 3)
            for semaphore in [arrived.0, arrived.1] { semaphore.signal() }
        }
    }
}
