import Glibc
import PipelineSupport
import TestSupport
import Testing

@testable import pipectl

extension CommandTests {
    /// Outputs of earlier runs whose sources are gone.
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
            for name in ["in/a.jpg", "in/b.jpg", "in/x/c.jpg", "in/x/d.jpg"] { try copy(name) }
            site.folder.write("mine", to: "out/own.webp")
            let (first, made) = try await run()
            #expect(first.exit == 0 && made["orphans"] == .list([]) && made["pruned"] == .int(0), "\(first.errors)")
            for name in ["b.jpg", "x/c.jpg", "x/d.jpg"] { unlink(site.folder("in/" + name)) }
            site.folder.write("changed", to: "out/x/d.webp")
            let (second, listed) = try await run()
            let orphans: [SettingValue] = [.string("out/b.webp"), .string("out/x/c.webp")]
            #expect(second.exit == 0 && listed["orphans"] == .list(orphans), "\(second.text)")
            #expect(second.errors.contains("outputs whose sources are gone: 2; --prune removes them\n    out/b.webp\n"))
            #expect(site.folder.bytes("out/b.webp") != nil)
            // Other recipes and inputs do not make their outputs orphans.
            try copy("other/e.jpg")
            let other = try await site.run(["batch", "other", "-r", "thumbnail:10", "-o", "out", "--prune", "--json"])
            #expect(SettingValue.parsed(other.text)["pruned"] == .int(2), "\(other.errors)")
            #expect(site.folder.names("out") == ["a.webp", "e.jpg", "own.webp", "x"])
            #expect(site.folder.text("out/x/d.webp") == "changed" && site.folder.text("out/own.webp") == "mine")
            let (third, rest) = try await run(["--prune"])
            #expect(third.exit == 0 && rest["pruned"] == .int(0) && rest["orphans"] == .list([]), "\(third.errors)")
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
            #expect(SettingValue.parsed(other.text)["pruned"] == .int(0), "\(other.errors)")
            site.folder.write(urls[0], to: "list.txt")
            let same = try await site.run(["batch", "list.txt", "--prune"] + words)
            #expect(SettingValue.parsed(same.text)["pruned"] == .int(1), "\(same.errors)")
            #expect(site.folder.names("out") == ["a.webp"])
            origin.stop()
        }

        @Test func `inputs that cannot be read to their end remove no output`() async throws {
            for name in ["in/a.jpg", "in/b.jpg"] { try copy(name) }
            _ = try await run()
            unlink(site.folder("in/b.jpg"))
            let (ended, summary) = try await run(["missing/*.jpg", "--prune"])
            #expect(summary["pruned"] == .int(0) && ended.errors.contains("no output was removed"), "\(ended.errors)")
            unlink(site.folder("in/a.jpg"))
            #expect(try await run(["--prune"]).1["pruned"] == .int(0))
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
