import Glibc
import PipelineSupport
import TestSupport
import Testing

@testable import pipectl

extension CommandTests {
    /// Outputs of earlier runs that have lost their sources.
    @Suite struct BatchRerun {
        private let site = CommandSite()

        private func copy(_ name: String, of sample: String = "grey.jpg") throws {
            site.folder.write(try #require(ScratchFolder.bytes(at: Samples.original(sample))), to: name)
        }

        private func run(_ more: [String] = []) async throws -> (ChildProgram.Ended, SettingValue) {
            let ended = try await site.run(["batch", "in", "-r", "thumbnail:20,webp", "-o", "out", "--json"] + more)
            return (ended, SettingValue.parsed(ended.text))
        }

        @Test func `outputs whose sources are gone are listed, and removed on request alone`() async throws {
            for name in ["a.jpg", "b.jpg", "x/c.jpg", "x/d.jpg", "x/e.jpg"] { try copy("in/" + name) }
            site.folder.write("mine", to: "out/own.webp")
            let (first, made) = try await run()
            #expect(first.exit == 0 && made["orphans"] == .list([]) && made["pruned"] == .list([]), "\(first.errors)")
            for name in ["b.jpg", "x/c.jpg", "x/d.jpg"] { unlink(site.folder("in/" + name)) }
            site.folder.write("changed", to: "out/x/d.webp")
            let (second, listed) = try await run()
            let orphans: [SettingValue] = [.string("out/b.webp"), .string("out/x/c.webp")]
            #expect(second.exit == 0 && listed["orphans"] == .list(orphans), "\(second.text)")
            #expect(
                second.errors.contains(
                    "outputs whose sources no longer exist: 2; --prune removes them\n    out/b.webp\n"))
            #expect(site.folder.bytes("out/b.webp") != nil)
            // A run with other inputs does not consider these sources.
            try copy("other/f.jpg")
            let other = try await site.run(["batch", "other", "-r", "thumbnail:10", "-o", "out", "--prune", "--json"])
            #expect(SettingValue.parsed(other.text)["pruned"] == .list([]), "\(other.errors)")
            let (third, removed) = try await run(["--prune"])
            #expect(third.exit == 0 && removed["pruned"] == .list(orphans), "\(third.errors)")
            #expect(
                third.errors.contains("outputs removed because their sources no longer exist: 2\n    out/b.webp\n"),
                "\(third.errors)")
            #expect(site.folder.names("out") == ["a.webp", "f.jpg", "own.webp", "x"])
            #expect(site.folder.text("out/x/d.webp") == "changed" && site.folder.text("out/own.webp") == "mine")
            let (fourth, rest) = try await run(["--prune"])
            #expect(fourth.exit == 0 && rest["pruned"] == .list([]) && rest["orphans"] == .list([]))
        }

        /// Each case changes the folders after a first run, so that `--prune` must remove nothing.
        @Test(arguments: [
            // The user's own file had the bytes that the batch would have written.
            "cp in/a.png out/a.png", "mv in/a.png out/a.png",
            // A folder of the output is now a link to pictures kept elsewhere.
            "mv in/x kept; rm -r out/x; ln -s ../kept out/x",
            // Absent sources: an empty folder, a folder with other files, a dangling link.
            "rm -r in/x/*", "rm -r in/*; echo x >in/note.txt", "mv in/x kept; ln -s ../nowhere in/x",
        ])
        func `what a batch has not written, and what may come back, is not removed`(_ change: String) async throws {
            try copy("first/a.jpg")
            try copy("first/x/b.jpg", of: "dusk-2mp.jpg")
            // Rendering these files again gives the same bytes.
            _ = try await site.plain(["batch", "first", "-r", "thumbnail:20,png", "-o", "in", "--cache", "another"])
            let words = ["batch", "in", "-r", "png", "-o", "out", "--json", "--follow-links"]
            if change.hasPrefix("cp") { try shell("mkdir out; " + change) }
            _ = try await site.run(words)
            #expect(site.folder.bytes("out/a.png") == site.folder.bytes("in/a.png"))
            try shell(change.hasPrefix("cp") ? "rm in/a.png" : change)
            let before = try shell("find -L . -name '*.png' | sort")
            let ended = try await site.run(words + ["--prune"])
            #expect(SettingValue.parsed(ended.text)["pruned"] == .list([]), "\(ended.errors)")
            #expect(try shell("find -L . -name '*.png' | sort") == before)
        }

        @Test func `outputs beside their sources are not removed, since they may replace them`() async throws {
            for name in ["in/a.jpg", "in/b.jpg"] { try copy(name) }
            let words = ["batch", "in", "-r", "webp", "-o", "in", "--json"]
            _ = try await site.run(words)
            unlink(site.folder("in/b.jpg"))
            let ended = try await site.run(words + ["--prune"])
            #expect(SettingValue.parsed(ended.text)["pruned"] == .list([]), "\(ended.errors)")
            #expect(site.folder.names("in") == ["a.jpg", "a.webp", "b.webp"])
        }

        @discardableResult private func shell(_ text: String) throws -> String {
            let program = try HelperProgram(["/bin/bash", "-c", "cd '\(site.folder.path)' && { \(text); }"])
            #expect(program.waitForEnd() == 0, "\(text)")
            return program.text
        }

        @Test func `URLs that the same list no longer names are gone`() async throws {
            let origin = try LoopbackOrigin { _ in
                .response(
                    200, ["Content-Type": "image/jpeg"],
                    body: ScratchFolder.bytes(at: Samples.original("grey.jpg")) ?? [])
            }
            let urls = ["a", "b"].map { origin.url("/\($0).jpg") }
            site.folder.write(urls.joined(separator: "\n"), to: "list.txt")
            site.folder.write(urls[0], to: "other.txt")
            let words = ["-r", "thumbnail:20,webp", "-o", "out", "--json"]
            _ = try await site.run(["batch", "list.txt"] + words)
            let other = try await site.run(["batch", "other.txt", "--prune"] + words)
            #expect(SettingValue.parsed(other.text)["pruned"] == .list([]), "\(other.errors)")
            site.folder.write(urls[0], to: "list.txt")
            let same = try await site.run(["batch", "list.txt", "--prune"] + words)
            #expect(SettingValue.parsed(same.text)["pruned"] == .list([.string("out/b.webp")]), "\(same.errors)")
            #expect(site.folder.names("out") == ["a.webp"])
            origin.stop()
        }

        @Test func `inputs that cannot be read to their end remove no output`() async throws {
            for name in ["in/a.jpg", "in/b.jpg"] { try copy(name) }
            _ = try await run()
            unlink(site.folder("in/b.jpg"))
            let (ended, summary) = try await run(["missing/*.jpg", "--prune"])
            #expect(
                summary["pruned"] == .list([]) && ended.errors.contains("--prune removed nothing"), "\(ended.errors)")
            unlink(site.folder("in/a.jpg"))
            #expect(try await run(["--prune"]).1["pruned"] == .list([]))
            #expect(site.folder.names("out") == ["a.webp", "b.webp"])
        }

        @Test func `a source that lies in the output folder is not removed`() async throws {
            for name in ["in/a.jpg", "in/b.jpg"] { try copy(name) }
            _ = try await run()
            unlink(site.folder("in/b.jpg"))
            let ended = try await site.run(["batch", "out/b.webp", "-r", "png", "-o", "out", "--prune"])
            #expect(ended.exit == 0 && site.folder.names("out") == ["a.webp", "b.png", "b.webp"], "\(ended.errors)")
        }

        @Test(arguments: [
            ["-o", "s3://bucket/x"], ["-o", "out", "--queue", "redis://127.0.0.1:1"], ["-o", "out", "-n"],
        ])
        func `what no record can tell is a usage error`(_ options: [String]) async throws {
            try copy("in/a.jpg")
            let ended = try await site.run(["batch", "in", "-r", "webp", "--prune"] + options)
            #expect(ended.exit == 2 && ended.errors.contains("--prune"), "\(ended.errors)")
        }
    }
}
