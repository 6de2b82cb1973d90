import TestSupport
import Testing
import Variants

@testable import pipectl

extension CommandTests {
    @Suite struct TranscodingServer {
        @Test func `auto keeps the data of a JPEG if the client accepts JPEG XL and no pixel changes`() async throws {
            let folder = ScratchFolder()
            for name in ["meadow-small.jpg", "cmyk.jpg", "moon-grey-alpha.png"] {
                folder.write(Samples.bytes("originals/" + name), to: name)
            }
            let medium = RenderJob(
                original: Samples.bytes("originals/meadow-small.jpg"),
                header: try ImageHeader.probe(Samples.bytes("originals/meadow-small.jpg")),
                recipe: try Recipe("jpeg:40"))
            folder.write(try await InProcessRenderer().render(medium).bytes, to: "medium.jpg")
            let origin = try FolderOrigin(folder: folder.path, maxAge: 3600)
            defer { origin.stop() }
            let all = "image/jxl,image/avif,image/webp,*/*;q=0.8"
            try await RunningServer.with { server in
                for (name, recipe, accept, type, isKept) in [
                    ("meadow-small.jpg", "auto", all, "jxl", false), ("medium.jpg", "auto", all, "jxl", true),
                    ("medium.jpg", "thumbnail:90,auto", all, "jxl", false),
                    ("meadow-small.jpg", "auto:70", all, "jxl", false),
                    ("meadow-small.jpg", "thumbnail:200,auto", all, "jxl", false),
                    ("meadow-small.jpg", "auto", "image/webp", "webp", false),
                    ("cmyk.jpg", "auto", all, "jxl", false), ("cmyk.jpg", "jxl:transcode", "*/*", "jxl", false),
                    ("meadow-small.jpg", "jxl:transcode", "*/*", "jxl", true),
                    ("moon-grey-alpha.png", "jxl:transcode", "*/*", "jxl", false),
                ] {
                    let answer = try await server.ask(
                        RunningServer.variant(recipe, origin.url("/" + name)), ["Accept": accept])
                    #expect(answer.status == 200 && answer["content-type"] == "image/" + type, "\(name) \(recipe)")
                    #expect(answer.body.contains("jbrd".utf8) == isKept, "\(name) \(recipe) \(accept)")
                }
            }
        }
    }
}
