import Glibc
import TestSupport
import Testing

@testable import ImageServer
@testable import pipectl

extension CommandTests {
    /// SIGHUP: settings that change while the server runs.
    @Suite struct ServeReload {
        private static let former = "00112233445566778899aabbccddeeff"
        private static let next = "ffeeddccbbaa99887766554433221100"

        private static func origin() throws -> FolderOrigin { try FolderOrigin(folder: Samples.folder, maxAge: 3600) }

        @Test func `changed keys hold for the next request, on open connections and for hits from memory too`()
            async throws
        {
            let origin = try Self.origin()
            defer { origin.stop() }
            let folder = ScratchFolder()
            let source = origin.url("/originals/night-tiny.jpg")
            func path(_ id: String, _ hex: String) throws -> String {
                try SigningKey(id: id, hex: hex).variantPath(recipe: "thumbnail:20,png", source: source)
            }
            let keys = folder.write("a: \(Self.former)\n", to: "keys")
            let server = try await RunningServer.start(
                ["keysFile=\(keys)"], folder: folder, unsigned: nil, isProgram: true)
            let client = try await RawClient.connect(server.port)
            func statuses(_ targets: [String]) async -> [Int] {
                let before = asked
                asked += targets.count
                for target in targets { client.send(RunningServer.head(target)) }
                return await client.responses(asked).dropFirst(before).map(\.status)
            }
            var asked = 0
            let (former, next) = (try path("a", Self.former), try path("b", Self.next))
            #expect(await statuses([former, former, next]) == [200, 200, 403])

            _ = folder.write("b: \(Self.next)\n", to: "keys")
            server.child.signal(SIGHUP)
            #expect(await server.waitForOutput("reloaded").contains("reloaded"))
            #expect(await statuses([former, next, next]) == [403, 200, 200])
            #expect(origin.requests.count == 1)
            await client.close()
            #expect(await server.stop().exit == 0)
        }

        @Test func `what is wrong with changed settings is told, and those in force stay`() async throws {
            let folder = ScratchFolder()
            let config = folder.write("presets:\n  card: thumbnail:20,png\n", to: "c.yaml")
            let origin = try Self.origin()
            defer { origin.stop() }
            let server = try await RunningServer.start(folder: folder, config: config, isProgram: true)
            let source = origin.url("/originals/night-tiny.jpg")
            #expect(try await server.ask(RunningServer.variant("@card", source)).status == 200)
            _ = folder.write("presets:\n  other: thumbnail:20,png\nserver:\n  rate: many\n", to: "c.yaml")
            server.child.signal(SIGHUP)
            let told = await server.waitForOutput("not reloaded")
            #expect(told.contains("c.yaml, line 4"), "\(told)")
            #expect(try await server.ask(RunningServer.variant("@card", source)).status == 200)
            #expect(try await server.ask(RunningServer.variant("@other", source)).status == 400)

            _ = folder.write("presets:\n  other: thumbnail:20,png\nmemory:\n  variants: 5MB\n", to: "c.yaml")
            server.child.signal(SIGHUP)
            let after = await server.waitForOutput("only after a restart: memory.variants")
            #expect(after.contains("reloaded: presets\n"), "\(after)")
            #expect(after.contains("only after a restart: memory.variants\n"), "\(after)")
            #expect(try await server.ask(RunningServer.variant("@card", source)).status == 400)
            #expect(try await server.ask(RunningServer.variant("@other", source)).status == 200)
            #expect(await server.stop().exit == 0)
        }

        @Test func `a reload without keys is refused where others can connect`() async throws {
            let folder = ScratchFolder()
            let keys = folder.write("a: \(Self.former)\n", to: "keys")
            let config = folder.write("keysFile: \(keys)\n", to: "c.yaml")
            let server = try await RunningServer.start(
                ["listen=0.0.0.0:0"], folder: folder, unsigned: false, config: config, isProgram: true)
            _ = folder.write("", to: "c.yaml")
            server.child.signal(SIGHUP)
            let told = await server.waitForOutput("not reloaded")
            #expect(told.contains("the server has no keys"), "\(told)")
            #expect(await server.stop().exit == 0)
        }
    }
}
