import PipelineSupport
import TestSupport
import PipelineSupport
import Testing

@testable import pipectl

extension CommandTests {
    @Suite struct DamagedOriginals {
        private let site = CommandSite()
        private static let accept = "decode.damaged=accept"

        private func cut() throws -> [UInt8] {
            let whole = try #require(ScratchFolder.bytes(at: Samples.original("meadow-small.jpg")))
            return Array(whole.prefix(whole.count * 6 / 10))
        }

        @Test func `get and info say that pixels are missing, and nothing is stored as if it were whole`() async throws
        {
            let path = site.folder.write(try cut(), to: "cut.jpg")
            let words = ["get", path, "-r", "thumbnail:40,png", "-o", "a.png", "--json"]
            #expect(try await site.run(words).exit == 6)
            for _ in 1...2 {
                let made = try await site.run(words + ["--set", Self.accept])
                let line = SettingValue.parsed(made.text)
                #expect(made.exit == 0 && line["damaged"] == .bool(true), "\(made.text) \(made.errors)")
                #expect(line["outcome"] == .string("rendered"))
            }
            #expect(try await site.run(words).exit == 6)
            let info = try await site.run(["info", path, "--json", "--set", Self.accept])
            #expect(SettingValue.parsed(info.text)["damaged"] == .bool(true), "\(info.text)")
            #expect(try await site.run(["info", path, "--set", Self.accept]).text.contains("pixels are missing"))
        }

        @Test func `the server says so in Cache-Status, and lets no client store it`() async throws {
            site.folder.write(try cut(), to: "in/cut.jpg")
            let images = try FolderOrigin(folder: site.folder("in"), maxAge: 3600)
            defer { images.stop() }
            try await RunningServer.with([Self.accept]) { server in
                for _ in 1...2 {
                    let made = try await server.ask(RunningServer.variant("thumbnail:40", images.url("/cut.jpg")))
                    #expect(made.status == 200 && made["Cache-Control"] == "no-store")
                    #expect(made["Cache-Status"]?.hasSuffix("detail=damaged") == true)
                }
            }
        }
    }
}
