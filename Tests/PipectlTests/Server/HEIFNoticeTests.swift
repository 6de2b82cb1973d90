import TestSupport
import Testing
import Variants

@testable import pipectl

@Suite struct HEIFNoticeTests {
    private func lines(_ version: String?, _ formats: Set<ImageFormat> = [.avif, .heif], trusted: Bool = false)
        -> [String]
    {
        HEIFNotice.lines(version: version, formats: formats, isTrusted: trusted)
    }

    @Test(arguments: [
        ("1.15.1", true), ("1.23.4", true), ("1.23", true), ("0.9.9", true), (nil, true), ("1.23.5", false),
        ("1.24.0", false), ("2.0.0", false), ("1.23.10", false),
    ]) func `an old or unknown libheif is warned of, unless it is trusted or decodes nothing`(
        version: String?, isWarned: Bool
    ) {
        let said = lines(version)
        #expect(said.count == (isWarned ? 2 : 1) && said[0].contains(version ?? "unknown version"))
        #expect(said.dropFirst().allSatisfy { $0.contains("1.23.5") && $0.contains("heif.trusted=true") })
        #expect(lines(version, trusted: true).count == 1)
        #expect(lines(version, [.jpeg]).isEmpty)
        #expect(lines(version, [.avif, .jpeg])[0].hasSuffix("decodes avif"))
    }
}

extension CommandTests {
    @Suite struct Decoders {
        private let site = CommandSite()

        @Test func `serve names its libheif at the start, and decodes what the setting lists`() async throws {
            let images = try FolderOrigin(folder: Samples.folder + "/originals", maxAge: 3600)
            defer { images.stop() }
            try await RunningServer.with(["decoders=[\"jpeg\",\"heif\"]"], isProgram: true) { server in
                #expect(await server.waitForOutput("decodes heif").contains("libheif "))
                let refused = try await server.ask(RunningServer.variant("thumbnail:20", images.url("/balloon.gif")))
                #expect(refused.status == 415, "\(String(decoding: refused.body, as: UTF8.self))")
                let made = try await server.ask(RunningServer.variant("thumbnail:20", images.url("/meadow-small.jpg")))
                #expect(made.status == 200)
            }
        }

        @Test func `get refuses what is not listed, and AVIF in process`() async throws {
            let avif = Samples.original("forest.avif")
            let words = ["get", avif, "-r", "thumbnail:20", "-o", site.folder("a.jpg")]
            for (setting, text) in [
                ("decoders=jpeg,png", "`decoders` contains only jpeg, png"),
                ("render.isolation=inProcess", "only in render workers"),
            ] {
                let ended = try await site.run(words + ["--set", setting])
                #expect(ended.exit == 5 && ended.errors.contains(text), "\(ended.errors)")
            }
            #expect(try await site.run(words).exit == 0)
            let unknown = try await site.run(words + ["--set", "decoders=jpeg,psd"])
            #expect(unknown.exit == 2 && unknown.errors.contains("not `psd`"), "\(unknown.errors)")
        }
    }
}
