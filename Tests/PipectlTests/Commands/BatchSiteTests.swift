import Glibc
import PipelineSupport
import TestSupport
import Testing

@testable import pipectl

extension CommandTests {
    /// Responsive sets for sites, with their manifest.
    @Suite struct BatchSite {
        private let site = CommandSite()

        private func copy(_ name: String, of sample: String = "grey.jpg") throws {
            site.folder.write(try #require(ScratchFolder.bytes(at: Samples.original(sample))), to: name)
        }

        @Test func `a responsive set has each size once, and a manifest that says all of it`() async throws {
            try copy("in/a b.jpg")
            try copy("in/2026/c.png", of: "balloon-palette.png")
            site.folder.write("no picture", to: "in/notes.txt")
            site.folder.write([0xFF, 0xD8, 0xFF, 0xE0], to: "in/cut.jpg")
            let info = SettingValue.parsed(try await site.run(["info", "in/a b.jpg", "--json"]).text)
            guard case .int(let width)? = info["uprightWidth"], case .int(let height)? = info["uprightHeight"] else {
                Issue.record("no size")
                return
            }
            let words = [
                "batch", "in", "--srcset", "16,24,4000,8000", "--formats", "webp,jpeg", "-o", "out", "--manifest",
                "images.json", "--url-prefix", "/img", "--json",
            ]
            let ended = try await site.run(words)
            #expect(ended.exit == 1, "\(ended.errors)")
            let summary = SettingValue.parsed(ended.text)
            #expect(summary["repeated"] == .int(4) && summary["renamed"] == .int(0), "\(ended.text)")
            let names = [16, 24, width].flatMap { ["a b-\($0).jpg", "a b-\($0).webp"] }
            #expect(site.folder.names("out") == (["2026"] + names).sorted())
            #expect(site.folder.names("out/2026").count == 6)

            let manifest = SettingValue.parsed(site.folder.text("images.json") ?? "")
            #expect(manifest["version"] == .int(1))
            let picture = try #require(manifest.at("images", "in/a b.jpg"))
            #expect(picture["width"] == .int(width) && picture["height"] == .int(height))
            #expect(picture["thumbhash"] == info["thumbhash"])
            guard case .list(let palette)? = info["palette"], case .string(let color)? = palette.first else {
                Issue.record("no palette")
                return
            }
            #expect(picture["colour"] == .string("#" + color))
            #expect(picture["placeholder"]?.json.hasPrefix("\"data:image/webp;base64,") == true)
            #expect(
                picture.at("srcset", "webp")
                    == .string("/img/a%20b-16.webp 16w, /img/a%20b-24.webp 24w, /img/a%20b-\(width).webp \(width)w"))
            #expect(picture["sizes"] == .string("(max-width: \(width)px) 100vw, \(width)px"))
            guard case .list(let files)? = picture["files"] else {
                Issue.record("no files")
                return
            }
            #expect(files.count == 6)
            for file in files {
                guard case .string(let path)? = file["path"], case .int(let bytes)? = file["bytes"] else { continue }
                #expect(site.folder.bytes("out/" + path)?.count == bytes)
                #expect(file["type"] == .string(path.hasSuffix("webp") ? "image/webp" : "image/jpeg"))
            }
            #expect(
                manifest.at("images", "in/2026/c.png", "srcset", "jpeg")?.json.contains("/img/2026/c-16.jpg") == true)
            #expect(manifest.at("images", "in/cut.jpg", "error") != nil)
            #expect(manifest.at("images", "in/notes.txt") == nil)

            let text = site.folder.text("images.json")
            let again = try await site.run(words)
            #expect(SettingValue.parsed(again.text)["written"] == .int(0), "\(again.text)")
            #expect(site.folder.text("images.json") == text)
        }

        @Test func `names of the template work at the top and below, and say when another output has them`()
            async throws
        {
            for name in ["in/a.jpg", "in/x/a.jpg"] { try copy(name) }
            try copy("in/a.png", of: "balloon-palette.png")
            let words = ["batch", "in", "-r", "thumbnail:20,webp", "-o", "out", "--name"]
            let ended = try await site.run(words + ["{dir}/{stem}-{width}.{ext}"])
            #expect(ended.exit == 0, "\(ended.errors)")
            #expect(site.folder.bytes("out/a-20.webp") != nil && site.folder.bytes("out/x/a-20.webp") != nil)
            #expect(site.folder.names("out").count == 3, "\(site.folder.names("out"))")
            let fix = "{dir}/{stem}-{width}-{index}.{ext}"
            #expect(ended.errors.contains("1 output was renamed") && ended.errors.contains("--name '\(fix)'"))
            let mended = try await site.run(words + [fix])
            #expect(mended.exit == 0 && !mended.errors.contains("renamed"), "\(mended.errors)")
        }

        @Test(arguments: [
            (["--srcset", "320,x"], "--srcset: expected"), (["--srcset", "0"], "--srcset: expected"),
            (["--srcset", "9000"], "--srcset: expected"),
            (["--srcset", "320", "-r", "webp"], "--srcset and -r cannot be combined"),
            (["-r", "webp", "--formats", "avif"], "--formats requires --srcset"),
            (["-r", "webp", "--url-prefix", "/"], "--url-prefix requires --manifest"),
            (["--srcset", "320", "--formats", "webq"], "webq"),
            (["--srcset", "320", "--formats", "webp,webp:50"], "each format occurs at most once"),
            (["--srcset", "320", "--formats", "thumbnail:20x,webp"], "`thumbnail:20x` is not valid here"),
            (["--srcset", "320", "--manifest", "-"], "the name of a file"),
            (["--srcset", "320", "--manifest", "m.json", "--url-prefix", "/a b/"], "--url-prefix"),
            (["--srcset", "320", "--manifest", "m.json", "--queue", "redis://127.0.0.1:1"], "--manifest"),
        ])
        func `what cannot be a responsive set is a usage error`(_ options: [String], _ reason: String) async throws {
            try copy("in/a.jpg")
            let ended = try await site.run(["batch", "in", "-o", "out"] + options)
            #expect(ended.exit == 2 && ended.errors.contains(reason), "\(ended.errors)")
        }
    }
}
