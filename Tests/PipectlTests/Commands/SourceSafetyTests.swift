import PipelineSupport
import Glibc
import TestSupport
import Testing

@testable import pipectl

extension CommandTests {
    /// A batch never writes over what it reads.
    @Suite struct SourceSafety {
        private let site = CommandSite()

        private func copied(_ names: [String], into folder: String) -> [[UInt8]] {
            names.map { name in
                let bytes = ScratchFolder.bytes(at: Samples.original(name)) ?? []
                site.folder.write(bytes, to: folder + "/" + name)
                return bytes
            }
        }

        private func codes(_ report: String) -> [String] {
            report.split(separator: "\n").map { line in
                guard case .string(let code)? = SettingValue.parsed(line).at("error", "code") else { return "" }
                return code
            }
        }

        @Test(arguments: ["d", "./d/", "link", "."])
        func `a batch into its own folder leaves the sources as they are`(output: String) async throws {
            let names = ["grey.jpg", "night-tiny.jpg"]
            let originals = copied(names, into: "d")
            symlink("d", site.folder("link"))
            let input = output == "." ? "d/grey.jpg" : "d"
            if output == "." { site.folder.write(originals[0], to: "grey.jpg") }
            let ended = try await site.run(
                ["batch", input, "grey.jpg", "-r", "thumbnail:20", "-o", output, "--report", "-", "--quiet"])
            #expect(ended.exit == 1)
            #expect(codes(ended.text).filter { $0 == "outputFailed" }.count == (output == "." ? 1 : 2))
            #expect(ended.text.contains("one of the sources"))
            for (name, bytes) in zip(names, originals) { #expect(site.folder.bytes("d/" + name) == bytes) }
            if output == "." { #expect(site.folder.bytes("grey.jpg") == originals[0]) }
        }

        @Test func `a source still to come on standard input is not written over`() async throws {
            let originals = copied(["grey.jpg", "night-tiny.jpg"], into: "d")
            site.folder.write(originals[1], to: "d/sub/grey.jpg")
            let list = site.folder.write("d/sub/grey.jpg\nd/grey.jpg\n", to: "list")
            let ended = try await site.run(
                ["batch", "-", "-r", "thumbnail:20", "-o", "d", "--report", "-", "--quiet"], input: list)
            #expect(ended.exit == 1 && codes(ended.text) == ["outputFailed", ""], "\(ended.text)")
            #expect(site.folder.bytes("d/grey.jpg") == originals[0])
            #expect(site.folder.bytes("d/sub/grey.jpg") == originals[1])
        }

        @Test func `outputs of an earlier run are replaced when they changed`() async throws {
            _ = copied(["grey.jpg"], into: "d")
            for edge in ["20", "30"] {
                let ended = try await site.run(["batch", "d", "-r", "thumbnail:\(edge)", "-o", "out", "--json"])
                #expect(ended.exit == 0 && SettingValue.parsed(ended.text)["written"] == .int(1), "\(ended.errors)")
            }
        }

        @Test(arguments: [
            (["d"], ["-r", "thumbnail:20,png"]), (["d"], ["-r", "thumbnail:20", "--name", "{stem}-small.{ext}"]),
            (["d"], ["-r", "thumbnail:20", "--name", "zz/{stem}.{ext}"]),
            (["d"], ["-r", "thumbnail:20,png", "-r", "thumbnail:30,webp"]),
            (["SHELL"], ["-r", "thumbnail:20,png"]), (["d/*.*"], ["-r", "thumbnail:20,png"]),
        ])
        func `a batch leaves out what it wrote beside its sources`(input: [String], more: [String]) async throws {
            _ = copied(["balloon.webp", "grey.jpg", "night-tiny.jpg"], into: "d")
            var found: [[String]] = []
            for run in 0..<3 {
                // The words to which a shell expands `d/*`.
                let sources = input == ["SHELL"] ? site.folder.names("d").map { "d/" + $0 } : input
                let ended = try await site.run(["batch"] + sources + more + ["-o", "d", "--json"])
                #expect(ended.exit == 0, "\(ended.errors)")
                let (count, summary) = (more.count { $0 == "-r" } * 3, SettingValue.parsed(ended.text))
                #expect(summary["items"] == .int(count) && summary[run == 0 ? "written" : "unchanged"] == .int(count))
                // Those in `zz` are there by the time the first run reads that folder, or not yet.
                if run > 0 {
                    #expect(
                        summary["ownOutputs"] == .int(count) && ended.errors.contains("outputs of earlier runs skipped")
                    )
                }
                found.append(site.folder.names("d") + site.folder.names("d/zz"))
            }
            #expect(found[0] == found[1] && found[1] == found[2], "\(found)")
        }

        @Test func `outputs beside their sources are replaced when they changed, and alone are nothing to do`()
            async throws
        {
            let originals = copied(["grey.jpg"], into: "d")
            let words = ["batch", "d", "-r", "thumbnail:200,webp", "-o", "d", "--json"]
            for quality in ["fast", "best"] {
                let ended = try await site.run(words + ["--set", "render.quality=\(quality)"])
                #expect(ended.exit == 0 && SettingValue.parsed(ended.text)["written"] == .int(1), "\(ended.errors)")
            }
            #expect(site.folder.bytes("d/grey.jpg") == originals[0] && site.folder.names("d").count == 2)
            unlink(site.folder("d/grey.jpg"))
            let alone = try await site.run(words)
            #expect(alone.exit == 0 && alone.errors.contains("the sources contain only outputs"), "\(alone.errors)")
        }

        @Test func `an original that its recipe leaves as it is stays a source`() async throws {
            let made = ["get", Samples.original("grey.jpg"), "-r", "thumbnail:20,png", "-o", "p.png"]
            #expect(try await site.plain(made + ["--cache", site.folder("other")]).exit == 0)
            let bytes = try #require(site.folder.bytes("p.png"))
            site.folder.write(bytes, to: "d/p.png")
            let words = ["batch", "d/p.png", "-r", "thumbnail:20,png", "--name", "{stem}-s.{ext}", "-o", "d", "--json"]
            for name in ["written", "unchanged"] {
                let ended = try await site.run(words)
                #expect(SettingValue.parsed(ended.text)[name] == .int(1), "\(ended.errors)")
                #expect(site.folder.bytes("d/p-s.png") == bytes)
            }
        }

        @Test func `get does not write a variant over its source`() async throws {
            let originals = copied(["grey.jpg"], into: "d")
            symlink("d/grey.jpg", site.folder("link.jpg"))
            let url = "file://" + site.folder("d/grey.jpg")
            for (source, output) in [("d/grey.jpg", "./d/grey.jpg"), (url, "d/grey.jpg"), ("d/grey.jpg", "link.jpg")] {
                let ended = try await site.run(["get", source, "-r", "thumbnail:20", "-o", output])
                #expect(ended.exit == 8 && ended.errors.contains("it is the source"), "\(ended.errors)")
                #expect(site.folder.bytes("d/grey.jpg") == originals[0])
            }
            #expect(try await site.run(["get", "d/grey.jpg", "-o", "d/grey.jpg"]).exit == 0)
        }

        @Test(arguments: ["--report", "--gallery"])
        func `a report or gallery in place of a source or manifest is refused`(option: String) async throws {
            let originals = copied(["grey.jpg"], into: "d")
            let list = "d/grey.jpg\n"
            site.folder.write(list, to: "list.txt")
            for target in ["d/grey.jpg", "list.txt"] {
                let ended = try await site.run(["batch", "list.txt", "-r", "thumbnail:20", "-o", "out", option, target])
                #expect(ended.exit == 8 && ended.errors.contains("one of the sources"), "\(ended.errors)")
            }
            #expect(site.folder.bytes("d/grey.jpg") == originals[0])
            #expect(site.folder.text("list.txt") == list)
        }

        @Test func `what a killed run left behind is no source`() async throws {
            let originals = copied(["grey.jpg"], into: "d")
            site.folder.write(originals[0], to: "d/.pipectl-12-1.tmp")
            let ended = try await site.run(["batch", "d", "-r", "thumbnail:20", "-o", "out", "--json"])
            #expect(SettingValue.parsed(ended.text)["items"] == .int(1))
        }

        @Test func `two spellings of a source are one item, and one fetch is counted once`() async throws {
            _ = copied(["grey.jpg"], into: "d")
            let files = try await site.run(
                ["batch", "d/grey.jpg", "./d/../d/grey.jpg", "-r", "thumbnail:20", "-o", "out", "--json"])
            let summary = SettingValue.parsed(files.text)
            #expect(summary["items"] == .int(1) && summary["duplicates"] == .int(1))

            let origin = try FolderOrigin(folder: Samples.folder + "/originals", maxAge: 3600)
            defer { origin.stop() }
            let url = origin.url("/grey.jpg")
            let fetched = try await site.run(
                ["batch", url, url + "#top", "HTTP" + url.dropFirst(4), "-r", "thumbnail:20", "-r", "thumbnail:30"]
                    + ["-r", "thumbnail:40", "-o", "fetched", "--json"])
            let counts = SettingValue.parsed(fetched.text)
            #expect(counts["items"] == .int(3) && counts["duplicates"] == .int(6), "\(fetched.text)")
            #expect(origin.requests.count == 1)
            #expect(counts.at("originalOutcomes", "network") == .int(1), "\(fetched.text)")
        }

        @Test func `get says when a file's name promises another format`() async throws {
            let source = Samples.original("grey.jpg")
            let odd = try await site.run(["get", source, "-r", "thumbnail:20,png", "-o", "x.jpeg"])
            #expect(odd.exit == 0 && odd.errors.contains("x.jpeg contains png"), "\(odd.errors)")
            for name in ["x.heic", "x.bmp"] {
                let foreign = try await site.run(["get", source, "-r", "thumbnail:20", "-o", name])
                let note =
                    "\(name) contains jpeg; \(name.dropFirst(2)) files cannot be written; see `pipectl recipes` for the outputs\n"
                #expect(foreign.exit == 0 && foreign.errors.hasSuffix(note), "\(foreign.errors)")
            }
            let usual = try await site.run(["get", source, "-r", "thumbnail:20", "-o", "x.JPEG"])
            #expect(usual.exit == 0 && usual.errors.isEmpty)
        }

        @Test func `a damaged index is reported once, and clear removes what was set aside`() async throws {
            try #require(
                await site.run(["get", Samples.original("grey.jpg"), "-r", "thumbnail:20", "--json"]).exit == 0)
            for name in ["cache.sqlite-wal", "cache.sqlite-shm"] { unlink(site.folder("cache/" + name)) }
            site.folder.write([UInt8](repeating: 0x55, count: 8192), to: "cache/cache.sqlite")
            let first = try await site.run(["get", Samples.original("grey.jpg"), "-r", "thumbnail:20", "--json"])
            #expect(first.exit == 0 && first.errors.contains("was damaged"), "\(first.errors)")
            #expect(site.folder.names("cache").contains("cache.sqlite.damaged"))
            let second = try await site.run(["get", Samples.original("grey.jpg"), "-r", "thumbnail:20", "--json"])
            #expect(second.exit == 0 && second.errors.isEmpty, "\(second.errors)")
            #expect(try await site.run(["cache", "clear"]).exit == 0)
            #expect(!site.folder.names("cache").contains("cache.sqlite.damaged"))
        }
    }
}
