import Glibc
import PipelineSupport
import TestSupport
import Testing

@testable import pipectl

extension CommandTests {
    /// Names in folders that a batch reads or leaves out.
    @Suite struct BatchFolder {
        private let site = CommandSite()

        private func copy(_ name: String, of sample: String = "grey.jpg") throws {
            site.folder.write(try #require(ScratchFolder.bytes(at: Samples.original(sample))), to: name)
        }

        @Test func `what lies beside pictures is counted and reported, and is no item`() async throws {
            for name in ["a.jpg", ".b.jpg", "@eaDir/a.jpg/SYNOPHOTO_THUMB_M.jpg", "node_modules/c.jpg", "d.jpg"] {
                try copy("in/" + name)
            }
            try copy("elsewhere/e.jpg")
            symlink("../elsewhere", site.folder("in/linked"))
            symlink("../elsewhere/e.jpg", site.folder("in/e.jpg"))
            let words = ["batch", "in", "-r", "thumbnail:20", "-o", "out", "--report", "report.jsonl", "--json"]
            let ended = try await site.run(words + ["--exclude", "d.*"])
            #expect(ended.exit == 0 && site.folder.names("out") == ["a.jpg"], "\(ended.errors)")
            let summary = SettingValue.parsed(ended.text)
            #expect(summary["items"] == .int(1))
            for (name, count) in [
                ("hidden", 1), ("otherPrograms", 2), ("excluded", 1), ("link", 2), ("deadLink", 0), ("knownFolder", 0),
            ] {
                #expect(summary.at("leftOut", name) == .int(count), "\(name): \(ended.text)")
            }
            #expect(
                ended.errors.contains(
                    "skipped: 1 hidden (--hidden includes them), 2 created by other programs, 1 excluded"),
                "\(ended.errors)")
            #expect(ended.errors.contains("2 links were skipped; --follow-links includes them"), "\(ended.errors)")
            let lines = (site.folder.text("report.jsonl") ?? "").split(separator: "\n").map { SettingValue.parsed($0) }
            let leftOut = lines.filter { $0["outcome"] == .string("leftOut") }
            #expect(leftOut.count == 6 && lines.count == 7)
            #expect(leftOut.contains { $0["source"] == .string("in/@eaDir") })
            #expect(leftOut.allSatisfy { $0.at("error", "code") == .string("leftOut") })
            let globbed = try await site.run(["batch", "in/*.jpg", "-r", "thumbnail:20", "-o", "out", "-n"])
            #expect(globbed.text.contains("in/a.jpg") && !globbed.text.contains("in/e.jpg"), "\(globbed.text)")
            let plan = try await site.run(["batch", "in", "-r", "thumbnail:20", "-o", "out", "-n"])
            #expect(
                plan.exit == 0 && plan.errors.contains("2 items of 2 sources; nothing was fetched or written; 5 names"))
            let all = try await site.run(words + ["--hidden", "--follow-links"])
            #expect(all.exit == 0, "\(all.errors)")
            #expect(site.folder.names("out") == ["a.jpg", "b.jpg", "d.jpg", "e.jpg", "linked"])
        }

        @Test func `a folder of links says what it is`() async throws {
            try copy("elsewhere/e.jpg")
            try copy("in/.keep/x.jpg")
            for name in ["1", "2", "3"] { symlink("../elsewhere/e.jpg", site.folder("in/\(name).jpg")) }
            let words = ["batch", "in", "-r", "thumbnail:20", "-o", "out"]
            let ended = try await site.run(words)
            #expect(
                ended.exit == 0 && ended.errors.contains("3 links were skipped; --follow-links"), "\(ended.errors)")
            #expect(ended.errors.contains("nothing to do: every name found in the sources was skipped"))
            #expect(try await site.run(words + ["--follow-links"]).exit == 0)
            #expect(site.folder.names("out") == ["1.jpg", "2.jpg", "3.jpg"])
            let empty = try await site.run(words + ["--exclude", ""])
            #expect(empty.exit == 2 && empty.errors.contains("--exclude requires a pattern"), "\(empty.errors)")
        }

        @Test func `an excluded file is not overwritten`() async throws {
            try copy("in/a.jpg")
            try copy("in/a.png", of: "balloon-palette.png")
            let before = site.folder.bytes("in/a.jpg")
            let ended = try await site.run(["batch", "in", "-r", "jpeg", "-o", "in", "--exclude", "*.jpg"])
            #expect(ended.exit == 1 && ended.errors.contains("it is one of the sources"), "\(ended.errors)")
            #expect(site.folder.bytes("in/a.jpg") == before)
        }
    }
}
