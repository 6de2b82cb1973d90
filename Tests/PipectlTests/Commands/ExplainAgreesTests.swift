import Glibc
import TestSupport
import Testing

@testable import Pipeline
@testable import pipectl

extension CommandTests {
    /// `explain` says no where `get` does, as far as that can be known without asking an origin or rendering.
    @Suite struct ExplainAgrees {
        private let site = CommandSite()

        /// One source for each state. `FOLDER` stands for the folder of the test.
        private static let sources = [
            "FOLDER/good.jpg", "file://FOLDER/good.jpg", "FOLDER/missing.jpg", "FOLDER/a folder", "FOLDER/broken link",
            "FOLDER/text.jpg", "FOLDER/empty.jpg", "FOLDER/cut.jpg", "FOLDER/a.bmp", Samples.broken("giant-header.png"),
            Samples.original("forest.avif"), "http://127.0.0.1:9/a.jpg", "http://localhost:9/a.jpg",
            "http://x.localhost:9/a.jpg", "http://[::1]:9/a.jpg", "http://2130706433:9/a.jpg",
            "http://0x7f000001:9/a.jpg", "http://10.1.2.3/a.jpg", "http://169.254.169.254/latest",
            "http://[::ffff:10.0.0.1]/a.jpg", "http:///a", "ftp://a.example/a.jpg", "http://denied.example/a.jpg",
            "http://a b/", "example.org/a.jpg",
        ]

        private func makeFiles() {
            let folder = site.folder
            mkdir(folder("a folder"), 0o755)
            symlink("nowhere", folder("broken link"))
            folder.write(Samples.bytes("originals/grey.jpg"), to: "good.jpg")
            folder.write("plain text", to: "text.jpg")
            folder.write([], to: "empty.jpg")
            folder.write([0xFF, 0xD8, 0xFF], to: "cut.jpg")
            folder.write(Array("BM".utf8) + [UInt8](repeating: 0, count: 60), to: "a.bmp")
        }

        private static let recipes: [String?] = [
            nil, "thumbnail:20", "thumbnail:20,png", "nonsense", "thumbnail:9000", "mask:none", "overlay:none", "@none",
            "tif", "frames:all,webp", "scaled:100", "extend:8000", "crop:10x10+9000+0", "crop:10x10,scaled:2",
            "trim,thumbnail:10", "rotate:45,thumbnail:20",
        ]
        /// Each as one user may have it.
        private static let settings: [[String]] = [
            [], ["limits.outputEdge=100"], ["decoders=jpeg"], ["limits.pixels=10"], ["limits.bytes=40"],
            ["render.isolation=inProcess"],
            ["limits.steps=1"],
        ]

        private static func outcome(_ ended: ChildProgram.Ended) -> String {
            // Only `get` continues to the network or a render. `explain` does not know their results before.
            "\(ended.exit) " + (ended.errors.split(separator: "\n").last.map(String.init) ?? "")
        }

        @Test(arguments: sources.indices)
        func `what get refuses, explain refuses with the same words`(_ number: Int) async throws {
            makeFiles()
            let source = Self.sources[number].replacing("FOLDER", with: site.folder.path)
            let always = ["--set", #"sources.deny=["denied.example"]"#, "--set", "retries=0", "--cache", site.cache]
            for (index, recipe) in Self.recipes.enumerated() {
                // Every recipe meets every source; the settings take turns.
                let setting = Self.settings[(number + index) % Self.settings.count]
                let words = [source] + (recipe.map { ["-r", $0] } ?? []) + always + setting.flatMap { ["--set", $0] }
                let explained = try await site.plain(["explain"] + words)
                let got = try await site.plain(["get"] + words + ["-o", site.folder("out")])
                if explained.exit == 0 {
                    // Nothing that was promised is refused but by an origin that was not asked.
                    #expect(got.exit == 0, "\(words): \(got.errors)")
                } else {
                    #expect(Self.outcome(explained) == Self.outcome(got), "\(words)")
                }
            }
        }

        @Test func `stored records that make no picture are refused by both, and so is a cache that has nothing`()
            async throws
        {
            let sample = try #require(ScratchFolder.bytes(at: Samples.original("grey.jpg")))
            let origin = try LoopbackOrigin { request in
                let stored = ("Cache-Control", "max-age=600")
                return switch request.path {
                case "/good": .response(200, [stored.0: stored.1, "Content-Type": "image/jpeg"], body: sample)
                case "/text":
                    .response(200, [stored.0: stored.1, "Content-Type": "image/jpeg"], body: Array("text".utf8))
                case "/gone": .response(410, [stored.0: stored.1])
                default: .response(404, [stored.0: stored.1])
                }
            }
            defer { origin.stop() }
            for path in ["/good", "/text", "/gone", "/missing"] {
                let source = origin.url(path)
                for recipe in [nil, "thumbnail:20", "thumbnail:21"] as [String?] {
                    let words = [source] + (recipe.map { ["-r", $0] } ?? [])
                    let got = try await site.run(["get"] + words + ["-o", site.folder("out")])
                    for policy in ["protocol", "cacheOnly"] {
                        let explained = try await site.run(["explain"] + words + ["--policy", policy])
                        #expect(explained.exit == got.exit, "\(words) \(policy): \(explained.errors) \(got.errors)")
                    }
                }
            }
            let nothing = [origin.url("/never"), "-r", "thumbnail:20", "--policy", "cacheOnly"]
            let explained = try await site.run(["explain"] + nothing)
            let got = try await site.run(["get"] + nothing + ["-o", site.folder("out")])
            #expect(explained.exit == got.exit && explained.errors == got.errors && got.exit == 4)
            #expect(explained.text.contains("an error, `notCached`"))
        }

        @Test func `of an origin that was not asked explain says if`() async throws {
            let explained = try await site.plain([
                "explain", "https://an-origin.example/a.jpg", "-r", "thumbnail:20", "--cache", site.cache,
            ])
            #expect(
                explained.exit == 0 && explained.text.contains("if it is a picture"), "\(explained.text)")
        }
    }
}
