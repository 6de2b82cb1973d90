import PipelineSupport
import Glibc
import TestSupport
import Testing

@testable import pipectl

extension CommandTests {
    @Suite struct Batch {
        private let site = CommandSite()

        private func report(_ name: String = "report.jsonl") -> [SettingValue] {
            (site.folder.text(name) ?? "").split(separator: "\n").map { SettingValue.parsed($0) }
        }

        @Test func `a folder is rendered once, then comes from disk, with and without its files`() async throws {
            let arguments = [
                "batch", Samples.folder + "/originals", "-r", "thumbnail:48,png", "-o", "out", "--report",
                "report.jsonl", "--json",
            ]
            let count = Samples.originals.count
            #expect(count > 20)

            let first = try await site.run(arguments)
            #expect(first.exit == 0, "\(first.errors)")
            #expect(report().count == count)
            #expect(report().allSatisfy { $0["outcome"] == .string("rendered") && $0["written"] == .bool(true) })
            let names = site.folder.names("out")
            #expect(names.count == count)
            let bytes = names.map { site.folder.bytes("out/" + $0) }
            let identities = names.map { FileIdentity(path: site.folder("out/" + $0)) }

            let second = try await site.run(arguments)
            #expect(second.exit == 0, "\(second.errors)")
            #expect(report().count == count)
            #expect(report().allSatisfy { $0["outcome"] == .string("disk") && $0["written"] == .bool(false) })
            #expect(names.map { FileIdentity(path: site.folder("out/" + $0)) } == identities)
            let summary = SettingValue.parsed(second.text)
            #expect(summary["unchanged"] == .int(count) && summary.at("outcomes", "disk") == .int(count))

            for name in names { unlink(site.folder("out/" + name)) }
            #expect(rmdir(site.folder("out")) == 0)
            let third = try await site.run(arguments)
            #expect(third.exit == 0, "\(third.errors)")
            #expect(report().allSatisfy { $0["outcome"] == .string("disk") && $0["written"] == .bool(true) })
            #expect(site.folder.names("out") == names)
            #expect(names.map { site.folder.bytes("out/" + $0) } == bytes)
        }

        @Test func `one bad item does not stop the rest`() async throws {
            let ended = try await site.run([
                "batch", Samples.original("grey.jpg"), Samples.broken("html-as.jpg"), "missing.jpg",
                Samples.original("night-tiny.jpg"), "-r", "thumbnail:20", "-o", "out", "--report", "report.jsonl",
            ])
            #expect(ended.exit == 1, "\(ended.errors)")
            #expect(
                report().map { $0.at("error", "code") } == [nil, .string("notAnImage"), .string("notFound"), nil])
            #expect(site.folder.names("out") == ["grey.jpg", "night-tiny.jpg"])
            #expect(ended.output.isEmpty && ended.errors.contains("failed 2"))
        }

        @Test func `a file of no image format is skipped if a folder held it, and failed if it was named`() async throws
        {
            for (name, bytes) in [
                ("notes.txt", Array("hello".utf8)), ("empty", []), ("cut.jpg", [0xFF, 0xD8, 0xFF, 0xE0]),
                ("a.bmp", Array("BM".utf8) + [UInt8](repeating: 0, count: 60)),
            ] {
                site.folder.write(bytes, to: "in/" + name)
            }
            site.folder.write(try #require(ScratchFolder.bytes(at: Samples.original("grey.jpg"))), to: "in/grey.jpg")
            let words = ["batch", "in", "-r", "thumbnail:20", "-o", "out", "--report", "report.jsonl"]
            let ended = try await site.run(words)
            #expect(ended.exit == 1, "\(ended.errors)")
            let outcomes = Dictionary(
                uniqueKeysWithValues: report().map { line in (line["source"]?.json ?? "", line["outcome"]?.json ?? "") }
            )
            let expected = [
                "a.bmp": "failed", "cut.jpg": "failed", "empty": "skipped", "grey.jpg": "rendered",
                "notes.txt": "skipped",
            ]
            for (name, outcome) in expected { #expect(outcomes["\"in/\(name)\""] == "\"\(outcome)\"", "\(outcomes)") }
            let skipped = report().first { $0["source"] == .string("in/notes.txt") }
            #expect(skipped?.at("error", "code") == .string("notAnImage"))
            #expect(ended.errors.contains("failed 2, skipped 2") && !ended.errors.contains("notes.txt"))
            for name in ["a.bmp", "cut.jpg"] { unlink(site.folder("in/" + name)) }
            #expect(try await site.run(words).exit == 0)
            let named = try await site.run(["batch", "in/empty", "-r", "thumbnail:20", "-o", "out"])
            #expect(named.exit == 1 && named.errors.contains("failed 1"), "\(named.errors)")
        }

        @Test func `the first ten failures are printed with their sentences, with -v all as they happen`() async throws
        {
            for number in 10..<23 { site.folder.write("no image", to: "list/\(number).jpg") }
            let names = (10..<23).map { "list/\($0).jpg" }
            let words = ["batch"] + names + ["-r", "thumbnail:20", "-o", "out"]
            let ended = try await site.run(words)
            #expect(ended.exit == 1)
            for name in names.prefix(10) { #expect(ended.errors.contains("\(name): not an image: plain text")) }
            #expect(
                !ended.errors.contains(names[10]) && ended.errors.contains("… and 3 more; use -v to print all of them"))
            let all = try await site.run(words + ["-v"])
            for name in names { #expect(all.errors.contains("failed: \(name): not an image")) }
            #expect(!all.errors.contains("more; use -v"))
            #expect(try await site.run(words + ["-q"]).errors.isEmpty)
        }

        @Test func `recipes of one source that fail for one reason are one failure`() async throws {
            for number in 10..<12 { site.folder.write("no image", to: "list/\(number).jpg") }
            let words = [
                "batch", "list/10.jpg", "list/11.jpg", "-o", "out", "-r", "thumbnail:20", "-r", "png", "-r", "circle",
            ]
            let ended = try await site.run(words)
            #expect(ended.exit == 1 && ended.errors.contains("failed 6"))
            for name in ["10", "11"] {
                let lines = ended.errors.split(separator: "\n").filter { $0.contains("list/\(name).jpg") }
                #expect(lines.count == 1 && lines[0].hasSuffix("(3 recipes)"), "\(ended.errors)")
            }
            let all = try await site.run(words + ["-v"])
            #expect(all.errors.ranges(of: "failed: list/").count == 6, "\(all.errors)")
            let one = try await site.run(["batch", "list/10.jpg", "-o", "out", "-r", "thumbnail:20"])
            #expect(one.errors.contains("[thumbnail:20x20]"), "\(one.errors)")
        }

        @Test func `a dry run names the items and their outputs, and makes none`() async throws {
            let sources = [Samples.original("grey.jpg"), Samples.original("balloon.gif")]
            let list = site.folder.write(
                #"{"source":"\#(sources[0])","recipes":["thumbnail:20,webp","none","circle"]}"# + "\n", to: "list.jsonl"
            )
            let ended = try await site.run(["batch", list, sources[1], "-r", "png", "-o", "out", "-n"])
            let lines = ended.text.split(separator: "\n").map { $0.split(separator: "\t").map(String.init) }
            try #require(ended.exit == 1 && lines.count == 4, "\(ended.text) \(ended.errors)")
            #expect(lines[0] == [sources[0], "thumbnail:20x20,webp", "out/grey-20x20.webp"])
            #expect(lines[1][2].hasPrefix("error: ") && lines[2][2] == "out/grey-circle.{ext}")
            #expect(lines[3] == [sources[1], "png", "out/balloon.png"])
            #expect(ended.errors.contains("4 items of 2 sources, 1 of them would fail"), "\(ended.errors)")
            #expect(site.folder.names("out").isEmpty)
            _ = try await site.run(["batch", list, sources[1], "-r", "png", "-o", "out"])
            #expect(site.folder.names("out") == ["balloon.png", "grey-20x20.webp", "grey-circle.png"])
            let plan = try await site.run(["batch"] + sources + ["-r", "png", "-o", "other", "--dry-run", "-q"])
            #expect(plan.exit == 0 && plan.errors.isEmpty && plan.text.split(separator: "\n").count == 2)
            #expect(try await site.run(["batch", "a", "-r", "png", "-o", "out", "-n", "--json"]).exit == 2)
        }

        @Test func `a second pass makes smaller files, and requires workers`() async throws {
            func batch(_ name: String, _ more: String...) async throws -> ChildProgram.Ended {
                let words = [
                    "batch", Samples.original("dusk-2mp.jpg"), "-r", "thumbnail:320,avif", "--name", "{stem}.{ext}",
                    "--cache", name + "-cache", "-o", name,
                ]
                return try await ChildProgram.run(words + more, folder: site.folder.path)
            }
            for ended in [try await batch("plain"), try await batch("best", "--best")] {
                #expect(ended.exit == 0, "\(ended.errors)")
            }
            let plain = try #require(site.folder.bytes("plain/dusk-2mp.avif"))
            let best = try #require(site.folder.bytes("best/dusk-2mp.avif"))
            #expect(best.count * 100 <= plain.count * 95 && !best.isEmpty)
            let refused = try await batch("refused", "--best", "--set", "render.isolation=inProcess")
            #expect(refused.exit == 2 && refused.errors.contains("--best requires render workers"))
        }

        @Test func `jobs are the setting for workers`() async throws {
            let source = Samples.original("grey.jpg")
            let one = try await site.run(["batch", source, "-r", "thumbnail:20", "-o", "out", "--jobs", "1"])
            #expect(one.exit == 0, "\(one.errors)")
            let bad = try await site.run(["batch", source, "-r", "thumbnail:20", "-o", "out", "--jobs", "1025"])
            #expect(bad.exit == 2 && bad.errors.contains("--jobs"), "\(bad.errors)")
        }

        @Test func `the program alone says what to do next`() async throws {
            let ended = try await site.plain([])
            #expect(ended.exit == 0 && ended.errors.isEmpty)
            for command in ["get", "batch", "serve", "recipes", "doctor"] {
                #expect(ended.text.contains("pipectl \(command)"), "\(ended.text)")
            }
        }

        @Test func `a batch with nothing to do says why`() async throws {
            mkdir(site.folder("empty"), 0o755)
            site.folder.write("# none\n", to: "none.txt")
            site.folder.write("x", to: "photos/out/a.jpg")
            for (source, output, words) in [
                ("empty", "out", "nothing to do: empty contains no files\n"),
                ("none.txt", "out", "nothing to do: none.txt lists no sources"),
                (
                    "photos", "photos/out",
                    "photos contains no files except in the output folder and the cache folder, which are skipped"
                ),
            ] {
                let ended = try await site.run(["batch", source, "-r", "thumbnail:20", "-o", output])
                #expect(ended.exit == 0 && ended.errors.contains(words), "\(ended.errors)")
            }
        }

        @Test func `a name that would leave the output folder is refused and nothing is written outside`() async throws
        {
            let source = Samples.original("night-tiny.jpg")
            let outside = site.folder("absolute.jpg")
            let names = ["../escape.jpg", "a/../../escape.jpg", outside, "fine/inside.jpg"]
            let lines = names.enumerated().map { index, name in
                #"{"source":"\#(source)","name":"\#(name)","recipes":["thumbnail:\#(20 + index),jpeg"]}"#
            }
            site.folder.write(lines.joined(separator: "\n"), to: "items.jsonl")
            let before = site.folder.names()
            let ended = try await site.run([
                "batch", "items.jsonl", "-o", "out", "--report", "report.jsonl", "--quiet",
            ])
            #expect(ended.exit == 1 && ended.errors == "", "\(ended.errors)")
            #expect(site.folder.names() == (before + ["cache", "out", "report.jsonl"]).sorted())
            #expect(site.folder.names("out") == ["fine"] && site.folder.names("out/fine") == ["inside.jpg"])
            let refused = SettingValue.string("badName")
            #expect(report().map { $0.at("error", "code") } == [refused, refused, refused, nil])
        }

        @Test func `a JSON Lines manifest names its outputs and recipes; a bad line is an item`() async throws {
            let text = """
                {"source":"\(Samples.original("grey.jpg"))","name":"one/{stem}.{ext}","recipes":["thumbnail:20,png"]}

                {"source":"\(Samples.original("night-tiny.jpg"))"}
                {"source":
                {"source":"\(Samples.original("dusk.webp"))","recipes":["thumbnail:20,jpeg","thumbnail:30,jpeg"]}
                """
            site.folder.write(text, to: "items.jsonl")
            let ended = try await site.run([
                "batch", "items.jsonl", "-r", "thumbnail:10,png", "-o", "out", "--report", "report.jsonl",
            ])
            #expect(ended.exit == 1, "\(ended.errors)")
            #expect(report().count == 5 && report().count { $0["error"] != nil } == 1)
            #expect(report().contains { $0.at("error", "code") == .string("badManifestLine") })
            #expect(site.folder.names("out/one") == ["grey.png"])
            #expect(site.folder.names("out").count == 4 && site.folder.names("out").contains("night-tiny.png"))
        }

        @Test func `a CSV manifest, and a list on stdin`() async throws {
            let csv = """
                source,name,recipes
                \(Samples.original("grey.jpg")),small-{width}.{ext},"thumbnail:20,png"
                "\(Samples.original("night-tiny.jpg"))","with, comma.{ext}","thumbnail:20,webp"

                """
            site.folder.write(csv, to: "items.csv")
            let first = try await site.run(["batch", "items.csv", "-o", "out"])
            #expect(first.exit == 0, "\(first.errors)")
            #expect(site.folder.names("out") == ["small-20.png", "with, comma.webp"])

            let list = site.folder.write(
                "# two\n\(Samples.original("grey.jpg"))\n\n\(Samples.original("dusk.webp"))\n", to: "list")
            let second = try await site.run(
                ["batch", "-", "-r", "thumbnail:20,png", "-o", "listed", "--name", "{index}-{stem}.{ext}"], input: list)
            #expect(second.exit == 0, "\(second.errors)")
            #expect(site.folder.names("listed") == ["1-grey.png", "2-dusk.png"])
        }

        @Test func `two batches on one cache at once both succeed`() async throws {
            let sources = Samples.originals.filter { !$0.hasPrefix("mountains") }.map(Samples.original)
            async let one = site.run(["batch"] + sources + ["-r", "thumbnail:32,png", "-o", "one", "--json"])
            async let two = site.run(
                ["batch"] + sources + ["-r", "thumbnail:32,png", "-o", "two", "--json"])
            let ended = try await (one, two)
            #expect(ended.0.exit == 0 && ended.1.exit == 0, "\(ended.0.errors) \(ended.1.errors)")
            let names = site.folder.names("one")
            #expect(names.count == sources.count && site.folder.names("two") == names)
            for name in names { #expect(site.folder.bytes("one/" + name) == site.folder.bytes("two/" + name)) }
            let verified = try await site.run(["cache", "verify"])
            #expect(verified.exit == 0, "\(verified.text)")
        }

        @Test func `an interrupted batch keeps what is done and ends with 130`() async throws {
            let picture = ScratchFolder.bytes(at: Samples.original("night-tiny.jpg")) ?? []
            let (hanging, reached) = AsyncStream.makeStream(of: Void.self)
            let origin = try LoopbackOrigin { request in
                guard request.path.hasPrefix("/hang") else {
                    return .response(
                        200, ["Content-Type": "image/jpeg", "Cache-Control": "max-age=3600"], body: picture)
                }
                reached.yield()
                return .hang
            }
            defer { origin.stop() }
            let paths = ["/a.jpg", "/b.jpg", "/hang1.jpg", "/hang2.jpg", "/hang3.jpg", "/c.jpg"]
            let arguments = ["batch"] + paths.map(origin.url) + ["-r", "thumbnail:20,png", "-o", "out"] + site.flags
            let waits = ["--set", "fetch.headerSeconds=600", "--set", "fetch.totalSeconds=600"]
            let program = try ChildProgram(
                arguments + waits + ["--set", "fetch.stallSeconds=600", "--report", "-"], folder: site.folder.path)
            // Both pictures are reported, and a transfer hangs: only then is it interrupted.
            await program.prints(lines: 2)
            var waiting = hanging.makeAsyncIterator()
            await waiting.next()
            program.signal(SIGINT)
            let ended = await program.end
            #expect(ended.exit == 130, "\(ended.errors)")
            #expect(ended.errors.contains("interrupted"))
            let lines = ended.lines.map { SettingValue.parsed($0) }
            #expect(lines.prefix(2).map { $0["outcome"] } == [.string("rendered"), .string("rendered")])
            #expect(Set(site.folder.names("out")).isSuperset(of: ["a.png", "b.png"]))
            #expect(site.folder.names("out").allSatisfy { $0.hasSuffix(".png") })

            let again = try await site.run(["get", origin.url("/a.jpg"), "-r", "thumbnail:20,png", "--json"])
            #expect(SettingValue.parsed(again.text)["outcome"] == .string("disk"))
            #expect(try await site.run(["cache", "verify"]).exit == 0)
        }

        @Test(arguments: [["get", "-o", "a.jpg", "--json"], ["info"]])
        func `an interrupted command ends with 130`(command: [String]) async throws {
            let (hanging, reached) = AsyncStream.makeStream(of: Void.self)
            let origin = try LoopbackOrigin { _ in
                reached.yield()
                return .hang
            }
            defer { origin.stop() }
            let program = try ChildProgram(
                command + [origin.url("/a.jpg"), "--set", "fetch.headerSeconds=600"]
                    + ["--set", "fetch.totalSeconds=600", "--set", "fetch.stallSeconds=600"] + site.flags,
                folder: site.folder.path)
            var waiting = hanging.makeAsyncIterator()
            await waiting.next()
            program.signal(SIGTERM)
            let ended = await program.end
            #expect(ended.exit == 130, "\(ended.errors)")
            #expect(ended.errors.contains("interrupted"))
            if command.contains("--json") {
                #expect(SettingValue.parsed(ended.text).at("error", "code") == .string("cancelled"))
            }
            #expect(site.folder.bytes("a.jpg") == nil)
        }

        @Test(.enabled(if: SmallDisk.isPermitted, "needs leave to mount a tmpfs"))
        func `a full cache disk costs hits, not items`() async throws {
            let disk = try #require(SmallDisk(at: site.folder("disk"), kilobytes: 1024))
            defer { disk.unmount() }
            // Without the flags of the site, which name a cache of their own.
            let ended = try await site.plain([
                "batch", Samples.folder + "/originals", "-r", "thumbnail:400,png", "-r", "thumbnail:300,png", "-o",
                "out", "--cache", site.folder("disk/cache"), "--json", "--set", "disk.freeSpace=0", "--set",
                "limits.seconds=120",
            ])
            #expect(ended.exit == 0, "\(ended.errors)")
            #expect(site.folder.names("out").count == Samples.originals.count * 2)
            // Warned of, but not once an item.
            #expect(ended.errors.split(separator: "\n").count { $0.hasPrefix("pipectl:") } <= 4, "\(ended.errors)")
            let stats = try await site.plain(["cache", "stats", "--cache", site.folder("disk/cache")])
            #expect(stats.exit == 0, "\(stats.errors)")
        }
    }
}
