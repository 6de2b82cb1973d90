import Glibc
import TestSupport
import Testing

@testable import pipectl

extension CommandTests {
    /// Offered formats with libraries that lack one, and the inputs of keys.
    @Suite struct Libraries {
        private let folder = ScratchFolder()

        /// The folder with the modules of Debian's libvips; the modules for AVIF, HEIF and JPEG XL are loaded from
        /// there.
        private static let libraries = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu"].first {
            access($0 + "/vips-modules-8.14/vips-jxl.so", R_OK) == 0
        }

        private func link(_ name: String, to target: String) {
            mkdir(folder("lib"), 0o755)
            unlink(folder("lib/" + name))
            symlink(target, folder("lib/" + name))
        }

        private func run(_ words: [String], _ environment: [String] = []) async throws -> ChildProgram.Ended {
            let all = words + ["--cache", folder("cache")]
            return await (try ChildProgram(all, folder: folder.path, environment: environment)).end
        }

        private var search: [String] { ["LD_LIBRARY_PATH=" + folder("lib")] }

        @Test(.enabled(if: libraries != nil)) func `what this machine cannot write is not offered`() async throws {
            // A libvips without modules beside it. A link would find the modules beside its target.
            let bytes = ScratchFolder.bytes(at: try #require(Self.libraries) + "/libvips.so.42")
            folder.write(try #require(bytes), to: "lib/libvips.so.42")
            let photo = Samples.original("night-tiny.jpg")
            let whole = try await run(["recipes"]).text
            let less = try await run(["recipes"], search)
            for name in ["avif", "jxl"] {
                #expect(whole.contains("\n\(name)[") && !less.text.contains("\n\(name)["), "\(less.errors)")
                let asked = try await run(
                    ["get", photo, "-r", "thumbnail:20,\(name)", "-o", folder("a"), "--json"], search)
                #expect(
                    asked.exit == 2 && asked.text.contains("notAvailable") && asked.text.contains("install libvips42"))
            }
            #expect(less.text.contains("\nwebp["))
            // AVIF is neither read nor written, and what cannot be read is said so.
            let avif = Samples.original("forest.avif")
            let read = try await run(["get", avif, "-r", "thumbnail:20", "-o", folder("b"), "--json"], search)
            #expect(read.exit == 5 && read.text.contains("cannot read AVIF: install"), "\(read.text)")

            let origin = try FolderOrigin(folder: Samples.folder + "/originals", maxAge: 3600)
            defer { origin.stop() }
            try await RunningServer.with(
                ["server.playground=true"], folder: folder, environment: search, isProgram: true
            ) { server in
                let said = await server.waitForOutput("listening on")
                for words in ["cannot write JPEG XL", "libvips42t64 with libjxl0.11", "libheif-plugin-aomenc"] {
                    #expect(said.contains(words), "\(said)")
                }
                let accept = "image/jxl,image/avif,image/webp,*/*;q=0.8"
                let source = origin.url("/meadow-small.jpg")
                let auto = try await server.ask(RunningServer.variant("thumbnail:20,auto", source), ["Accept": accept])
                #expect(auto.status == 200 && auto["content-type"] == "image/webp")
                let named = try await server.ask(RunningServer.variant("thumbnail:20,jxl", source))
                #expect(named.status == 501, "\(String(decoding: named.body, as: UTF8.self))")
                let page = try await server.ask("/page/catalogue.json")
                let text = String(decoding: page.body, as: UTF8.self)
                #expect(text.contains("\"name\":\"webp\"") && !text.contains("\"name\":\"jxl\""))
            }
        }

        @Test(.enabled(if: libraries != nil)) func `an updated codec keeps variants: keys name libvips alone`()
            async throws
        {
            let libraries = try #require(Self.libraries)
            let name = "libjxl.so.0.7"
            let photo = Samples.original("night-tiny.jpg")
            func outcome(_ environment: [String] = []) async throws -> (key: Substring?, outcome: Substring?) {
                let words = ["get", photo, "-r", "thumbnail:20,webp", "-o", folder("a"), "--json"]
                let text = try await run(words, environment).text
                func value(_ name: String) -> Substring? {
                    text.split(separator: ",").first { $0.hasPrefix("\"\(name)\":") }?.split(separator: "\"").last
                }
                return (value("key"), value("outcome"))
            }
            let first = try await outcome()
            #expect(first.outcome == "rendered")
            let again = try await outcome()
            #expect(again == first || again.outcome == "disk" && again.key == first.key)
            // Another version of libjxl is what the loader finds now.
            let bytes = try #require(ScratchFolder.bytes(at: libraries + "/" + name))
            folder.write(bytes, to: "lib/\(name).99")
            link(name, to: folder("lib/\(name).99"))
            #expect(try await outcome(search) == (first.key, "disk"))
        }
    }
}
