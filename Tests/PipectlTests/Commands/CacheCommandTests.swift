import PipelineSupport
import Glibc
import TestSupport
import Testing

@testable import pipectl

extension CommandTests {
    @Suite struct Cache {
        private let site = CommandSite()

        @Test func `stats, list and inspect show what is stored, as text and as JSON`() async throws {
            let origin = try FolderOrigin(folder: Samples.folder + "/originals", maxAge: 3600)
            defer { origin.stop() }
            let source = origin.url("/night-tiny.jpg")
            let got = SettingValue.parsed(try await site.run(["get", source, "-r", "thumbnail:20,png", "--json"]).text)

            let stats = try await site.run(["cache", "stats", "--json"])
            let object = SettingValue.parsed(stats.text)
            #expect(stats.exit == 0 && stats.errors == "")
            for tier in ["originals", "variants", "records"] { #expect(object.at(tier, "entries") == .int(1)) }
            // A render may look several times whether another request was quicker.
            #expect(object.at("variants", "misses") == .int(1))
            #expect(try await site.run(["cache", "stats"]).lines.count == 4)

            let list = try await site.run(["cache", "list", "--json"])
            let entries = list.lines.map { SettingValue.parsed($0) }
            #expect(entries.map { $0["kind"] } == [.string("original"), .string("variant")])
            #expect(entries.first?["source"] == .string(source) && entries.last?["key"] == got["key"])
            let text = try await site.run(["cache", "list"])
            #expect(text.lines.count == 2 && text.text.contains(source) && text.text.contains("thumbnail:20"))

            guard case .string(let key)? = got["key"] else {
                Issue.record("no key")
                return
            }
            for name in [source, key, String(key.prefix(8))] {
                let found = try await site.run(["cache", "inspect", name, "--json"])
                #expect(found.exit == 0 && found.lines.contains { SettingValue.parsed($0)["key"] == .string(key) })
            }
            let inspected = try await site.run(["cache", "inspect", source])
            #expect(inspected.exit == 0 && inspected.text.lowercased().contains("etag"))
            let nothing = try await site.run(["cache", "inspect", "http://127.0.0.1/none"])
            #expect(nothing.exit == 4 && nothing.output.isEmpty)
        }

        @Test func `a turned original is shown with the size that its file has`() async throws {
            let origin = try FolderOrigin(folder: Samples.folder + "/originals", maxAge: 3600)
            defer { origin.stop() }
            let source = origin.url("/exif-orientation-6.jpg")
            let got = SettingValue.parsed(try await site.run(["get", source, "-o", "a", "--json"]).text)
            let inspected = SettingValue.parsed(try await site.run(["cache", "inspect", source, "--json"]).text)
            for object in [got, inspected] {
                #expect(object["width"] == .int(800) && object["height"] == .int(600), "\(object)")
            }
            #expect(try await site.run(["cache", "inspect", source]).text.contains("800 × 600"))
        }

        @Test func `what an origin sends cannot steer the terminal`() async throws {
            let origin = try LoopbackOrigin { request in
                .response(
                    200,
                    ["Cache-Control": "max-age=60", "X-Escape": "a\u{1B}[31mb", "Content-Type": "image/\u{1B}[2Jx"],
                    body: Array("GIF89".utf8))
            }
            defer { origin.stop() }
            let source = origin.url("/a")
            let got = try await site.run(["get", source, "-o", "a", "--set", "acceptedTypes=[\"image/*\"]"])
            let refused = try await site.run(["get", source, "-o", "a", "--set", "acceptedTypes=[\"text/*\"]"])
            let inspected = try await site.run(["cache", "inspect", source])
            let json = try await site.run(["cache", "inspect", source, "--json"])
            #expect(inspected.exit == 0 && inspected.text.contains("X-Escape: a [31mb"), "\(inspected.text)")
            #expect(json.text.contains("\\u001b[31m"))
            for ended in [got, refused, inspected, json] {
                #expect(!(ended.text + ended.errors).unicodeScalars.contains("\u{1B}"))
            }
        }

        @Test func `a file in the place of the folder is called a file, and left as it is`() async throws {
            let file = site.folder.write("not a cache", to: "file")
            for words in [["cache", "stats"], ["cache", "verify"], ["cache", "stats", "--json"]] {
                let ended = try await site.plain(words + ["--cache", file])
                #expect(ended.exit == 7 && ended.errors.contains("this is a file, not a folder"), "\(ended.errors)")
                #expect(ended.errors.contains(file))
            }
            let below = try await site.plain(["cache", "stats", "--cache", file + "/cache"])
            #expect(below.exit != 0 && !below.errors.contains("File exists"), "\(below.errors)")
            symlink("nowhere", site.folder("link"))
            let link = try await site.plain([
                "get", Samples.original("grey.jpg"), "--cache", site.folder("link"), "-o", "a",
            ])
            #expect(link.errors.contains("dangling symbolic link"), "\(link.errors)")
            #expect(site.folder.bytes("file") == Array("not a cache".utf8))
        }

        @Test(.enabled(if: SmallDisk.isPermitted, "needs leave to mount a tmpfs"))
        func `on a disk that can only be read the cache is looked at and verified, and not mended`() async throws {
            let disk = try #require(SmallDisk(at: site.folder("disk"), kilobytes: 8 << 10))
            defer { disk.unmount() }
            let flags = ["--cache", site.folder("disk/cache"), "--set", "disk.freeSpace=0"]
            let got = try await site.plain(
                ["get", Samples.original("grey.jpg"), "-r", "thumbnail:20,png", "-o", "a.png"] + flags)
            #expect(got.exit == 0, "\(got.errors)")
            try #require(disk.mayWrite(false))
            for words in [["stats"], ["list"], ["verify"]] {
                let ended = try await site.plain(["cache"] + words + flags)
                #expect(ended.exit == 0 && ended.errors.isEmpty, "\(words) \(ended.errors)")
                if words == ["verify"] { #expect(ended.text.contains("checked 1 body"), "\(ended.text)") }
            }
            let repair = try await site.plain(["cache", "verify", "--repair"] + flags)
            #expect(repair.exit == 7 && repair.errors.contains("the cache folder is read-only"), "\(repair.errors)")
        }

        @Test func `purge removes a source and what was made of it, and nothing else`() async throws {
            let kept = Samples.original("grey.jpg")
            let gone = Samples.original("night-tiny.jpg")
            for source in [kept, gone] {
                #expect(try await site.run(["get", source, "-r", "thumbnail:20,png", "--json"]).exit == 0)
            }
            let json = try await site.run(["cache", "purge", gone, "--json"])
            let object = SettingValue.parsed(json.text)
            #expect(json.exit == 0 && object["variants"] == .int(1) && object["records"] == .int(1))
            let again = try await site.run(["cache", "purge", gone])
            #expect(again.exit == 4 && again.text.isEmpty && again.errors.contains("nothing is stored under `file:"))
            let unknown = SettingValue.parsed(try await site.run(["cache", "purge", gone, "--json"]).text)
            #expect(unknown["unknown"] == .list([.string("file:" + gone)]) && unknown["records"] == .int(0))
            let outcomes = try await [kept, gone].asyncMap { source in
                SettingValue.parsed(
                    try await site.run(["get", source, "-r", "thumbnail:20,png", "--json"]).text)["outcome"]
            }
            #expect(outcomes == [.string("disk"), .string("rendered")])
        }

        @Test func `every command takes the names of a source that the server's settings give it`() async throws {
            let origin = try FolderOrigin(folder: Samples.folder + "/originals", maxAge: 3600)
            defer { origin.stop() }
            let url = origin.url("/night-tiny.jpg")
            let config = site.folder.write(
                """
                baseURLs: {photos: "\(origin.url("/"))", sub: "\(origin.url("/sub/"))", files: "file://\(Samples.folder)/originals"}
                defaultBase: photos
                server.mountPoint: /images
                """, to: "c.yaml")
            func run(_ words: String...) async throws -> ChildProgram.Ended {
                try await site.run(words + ["--config", config])
            }
            for (name, stored) in [
                ("photos:night-tiny.jpg", url),
                ("/images/variant/unsigned/thumbnail:20,png/photos:night-tiny.jpg?v=1", url),
                ("/variant/thumbnail:20,png/\(url)", url), ("/original/night-tiny.jpg", url),
                ("files:night-tiny.jpg", "files:night-tiny.jpg"),
                ("/info/unsigned/files:night-tiny.jpg", "files:night-tiny.jpg"),
            ] {
                let json = SettingValue.parsed(try await run("get", name, "-r", "thumbnail:20,png", "--json").text)
                #expect(json["width"] == .int(20), "\(name)")
                #expect(
                    SettingValue.parsed(try await run("info", name, "--json").text)["format"] == .string("jpeg"),
                    "\(name)")
                let explained = try await run("explain", name, "-r", "thumbnail:20,png")
                #expect(explained.exit == 0 && explained.text.contains(stored), "\(explained.text) \(explained.errors)")
                #expect(try await run("cache", "inspect", name).exit == 0, "\(name)")
                let purged = try await run("cache", "purge", name)
                #expect(purged.exit == 0 && purged.text.contains("removed 1 record"), "\(name) \(purged.errors)")
                #expect(try await run("cache", "inspect", name).exit == 4)
                let again = try await run("cache", "purge", name)
                #expect(
                    again.exit == 4 && again.errors.contains("nothing is stored under `\(stored)`"), "\(again.errors)")
            }
            // The recipe of a path, unless another is given.
            let small = SettingValue.parsed(
                try await run("get", "/variant/thumbnail:30,png/photos:night-tiny.jpg", "--json").text)
            #expect(small["width"] == .int(30) && small["format"] == .string("png"))
            for (wrong, words) in [
                ("sub:../a.jpg", "leads outside the base URL"),
                ("/original/unsigned/a%zz", "two hexadecimal digits"),
                ("none:a.jpg", "none:a.jpg"),
            ] {
                let ended = try await run("get", wrong, "-o", "x.png")
                #expect([2, 4].contains(ended.exit) && ended.errors.contains(words), "\(ended.errors)")
            }
        }

        @Test func `purge takes a name as list has it`() async throws {
            let picture = Samples.original("night-tiny.jpg")
            #expect(try await site.run(["get", picture, "-r", "thumbnail:20,png"]).exit == 0)
            let listed = try await site.run(["cache", "list", "--tier", "originals", "--json"])
            let name = "file:" + picture
            #expect(SettingValue.parsed(listed.text)["source"] == .string(name))
            #expect(try await site.run(["cache", "list"]).text.contains("used once"))
            let ended = try await site.run(["cache", "purge", name])
            #expect(ended.text.contains("removed 1 record, 0 bodies and 1 variant,"), "\(ended.text)")
        }

        @Test func `purge takes a prefix or a host, and one of them alone`() async throws {
            let origin = try FolderOrigin(folder: Samples.folder + "/originals", maxAge: 3600)
            defer { origin.stop() }
            for name in ["/grey.jpg", "/night-tiny.jpg"] {
                #expect(try await site.run(["get", origin.url(name), "-r", "thumbnail:20,png", "--json"]).exit == 0)
            }
            let prefix = try await site.run(["cache", "purge", "--prefix", origin.url("/night"), "--json"])
            let object = SettingValue.parsed(prefix.text)
            #expect(
                prefix.exit == 0 && object["sources"] == .int(1) && object["records"] == .int(1), "\(prefix.errors)")
            #expect(object["originals"] == .int(1) && object["variants"] == .int(1))
            let left = try await site.run(["cache", "list"])
            #expect(left.lines.count == 2 && left.text.contains("/grey.jpg"))
            #expect(try await site.run(["cache", "purge", "--host", "127.0.0.2"]).text.contains("removed 0 sources"))
            let host = try await site.run(["cache", "purge", "--host", "127.0.0.1"])
            #expect(host.exit == 0 && host.text.contains("removed 1 source: 1 record, 1 body and 1 variant,"))
            #expect(try await site.run(["cache", "list"]).output.isEmpty)
            for wrong in [
                [], ["http://a/", "--host", "a"], ["--host", "a", "--prefix", "http://a/"], ["--host", "a/b"],
                ["--prefix", "http://"],
            ] {
                let refused = try await site.run(["cache", "purge"] + wrong)
                #expect(refused.exit == 2 && refused.output.isEmpty && !refused.errors.isEmpty, "\(wrong)")
            }
        }

        @Test func `list sorts, filters and stops`() async throws {
            let origin = try FolderOrigin(folder: Samples.folder + "/originals", maxAge: 3600)
            defer { origin.stop() }
            let sources = [origin.url("/night-tiny.jpg"), origin.url("/grey.jpg")]
            for source in sources {
                let got = try await site.run(["get", source, "-r", "thumbnail:20,png", "--json"])
                #expect(got.exit == 0)
            }
            #expect(try await site.run(["get", sources[0], "-r", "thumbnail:30,png", "--json"]).exit == 0)
            func list(_ arguments: String...) async throws -> [SettingValue] {
                let ended = try await site.run(["cache", "list", "--json"] + arguments)
                #expect(ended.exit == 0 && ended.errors.isEmpty, "\(ended.errors)")
                return ended.lines.map { SettingValue.parsed($0) }
            }
            func bytes(_ entries: [SettingValue]) -> [Int] {
                entries.compactMap { if case .int(let bytes)? = $0["bytes"] { bytes } else { nil } }
            }
            #expect(try await list().count == 5)
            let sizes = bytes(try await list("--sort", "size"))
            #expect(sizes.count == 5 && sizes == sizes.sorted(by: >))
            #expect(bytes(try await list("--sort", "size", "--reverse")) == sizes.reversed())
            #expect(bytes(try await list("--sort", "size", "--limit", "2")) == Array(sizes.prefix(2)))
            let filtered = try await list("--source", "*grey*", "--host", "127.0.0.1")
            #expect(filtered.map { $0["kind"] } == [.string("original"), .string("variant")])
            #expect(filtered.first?["source"] == .string(sources[1]))
            #expect(try await list("--tier", "variants", "--prefix", sources[0]).count == 2)
            #expect(
                try await list("--recipe", "thumbnail:30*").map { $0["recipe"] } == [.string("thumbnail:30x30,png")])
            #expect(try await list("--host", "localhost").isEmpty)
            for order in ["stored", "age", "last-use", "hits", "cost"] {
                #expect(try await list("--sort", order).count == 5)
            }
            for wrong in [["--sort", "colour"], ["--limit", "-1"], ["--tier", "records"], ["--host", "a:1"]] {
                #expect(try await site.run(["cache", "list"] + wrong).exit == 2, "\(wrong)")
            }
        }

        @Test func `stats add up what hits have spared, over processes`() async throws {
            let source = Samples.original("night-tiny.jpg")
            let arguments = ["get", source, "-r", "thumbnail:20,png", "--json"]
            let first = SettingValue.parsed(try await site.run(arguments).text)
            for _ in 0..<2 { #expect(try await site.run(arguments).exit == 0) }
            let stats = SettingValue.parsed(try await site.run(["cache", "stats", "--json"]).text)
            guard case .int(let bytes)? = first["bytes"] else {
                Issue.record("no bytes")
                return
            }
            #expect(stats.at("variants", "hits") == .int(2))
            #expect(stats.at("variants", "bytesSaved") == .int(2 * bytes))
            for name in [
                "entries", "bytes", "budget", "hits", "misses", "stale", "insertions", "evictions", "refused",
                "corrupt",
                "bytesSaved", "millisecondsSaved",
            ] {
                for tier in ["originals", "variants", "records"] {
                    #expect(stats.at(tier, name) != nil, "\(tier).\(name)")
                }
            }
            #expect(stats["folder"] == .string(site.cache) && stats["freeBytes"] != nil && stats["freeSpace"] != nil)
        }

        @Test func `trim takes sources, counts and sizes`() async throws {
            let sources = ["night-tiny.jpg", "grey.jpg"].map { Samples.original($0) }
            for source in sources {
                for recipe in ["thumbnail:20,png", "thumbnail:30,png"] {
                    #expect(try await site.run(["get", source, "-r", recipe, "--json"]).exit == 0)
                }
            }
            func trim(_ arguments: String...) async throws -> SettingValue {
                let ended = try await site.run(["cache", "trim", "--json"] + arguments)
                #expect(ended.exit == 0, "\(ended.errors)")
                return SettingValue.parsed(ended.text)
            }
            #expect(try await trim("--source", "*/grey.jpg", "--older-than", "1d")["variants"] == .int(0))
            #expect(try await trim("--source", "*/grey.jpg")["variants"] == .int(2))
            #expect(try await trim("--max-entries", "1", "--tier", "originals")["variants"] == .int(0))
            #expect(try await trim("--max-entries", "1")["variants"] == .int(1))
            #expect(try await trim("--max-bytes", "1kB", "--prefix", Samples.folder)["variants"] == .int(1))
            for wrong in [
                [], ["--tier", "variants"], ["--max-bytes", "10%"], ["--max-entries", "-1"], ["--older-than", "soon"],
            ] {
                #expect(try await site.run(["cache", "trim"] + wrong).exit == 2, "\(wrong)")
            }
        }

        @Test func `a file system short of space stores nothing and fails nothing`() async throws {
            let source = Samples.original("night-tiny.jpg")
            let got = try await site.run(
                ["get", source, "-r", "thumbnail:20,png", "--json", "--set", "disk.freeSpace=100%"])
            #expect(got.exit == 0 && SettingValue.parsed(got.text)["outcome"] == .string("rendered"))
            #expect(
                got.errors.contains("bytes are free") && got.errors.split(separator: "\n").count == 1, "\(got.errors)")
            let stats = SettingValue.parsed(try await site.run(["cache", "stats", "--json"]).text)
            #expect(stats.at("variants", "refused") == .int(1) && stats.at("variants", "entries") == .int(0))
        }

        @Test func `every command explains itself`() async throws {
            for name in ["stats", "list", "inspect", "trim", "purge", "clear", "verify"] {
                let help = try await site.plain(["cache", name, "--help"])
                #expect(help.exit == 0 && help.text.contains("USAGE: pipectl cache \(name)"), "\(name)")
                #expect(help.text.contains("--json") && help.text.contains("--cache"), "\(name)")
            }
        }

        @Test(arguments: [
            ["stats"], ["list"], ["inspect", "http://a.example/"], ["trim", "--older-than", "1d"],
            ["purge", "http://a.example/"], ["clear"], ["verify"],
        ])
        func `a folder that is not there is no cache, and stays away`(command: [String]) async throws {
            #expect(access(site.cache, F_OK) != 0)
            let ended = try await site.run(["cache"] + command)
            #expect(ended.exit == 2 && ended.output.isEmpty, "\(ended.errors)")
            #expect(ended.errors.contains("there is no cache at \(site.cache)"), "\(ended.errors)")
            #expect(access(site.cache, F_OK) != 0)
        }

        @Test func `clear and trim empty the tiers`() async throws {
            let source = Samples.original("night-tiny.jpg")
            #expect(try await site.run(["get", source, "-r", "thumbnail:20,png", "--json"]).exit == 0)
            let recent = try await site.run(["cache", "trim", "--older-than", "1d", "--json"])
            #expect(SettingValue.parsed(recent.text)["variants"] == .int(0))
            #expect(try await site.run(["cache", "list"]).lines.count == 2)
            let cleared = SettingValue.parsed(try await site.run(["cache", "clear", "--json"]).text)
            #expect(cleared["variants"] == .int(1) && cleared["records"] == .int(1))
            #expect(try await site.run(["cache", "clear"]).text.contains("removed 0 records"))
            let list = try await site.run(["cache", "list", "--json"])
            #expect(list.exit == 0 && list.output.isEmpty)
            let again = try await site.run(["get", source, "-r", "thumbnail:20,png", "--json"])
            #expect(SettingValue.parsed(again.text)["outcome"] == .string("rendered"))
        }

        @Test func `verify finds a damaged body, and repair mends it`() async throws {
            let source = Samples.original("dunes-2mp.jpg")
            let arguments = ["get", source, "-r", "thumbnail:500,png", "--json"]
            #expect(try await site.run(arguments).exit == 0)
            let clean = try await site.run(["cache", "verify"])
            #expect(clean.exit == 0 && clean.text.contains("no faults found"))
            let json = SettingValue.parsed(try await site.run(["cache", "verify", "--json"]).text)
            #expect(json["clean"] == .bool(true))
            let intact = try await site.run(["cache", "verify", "--repair", "--json"])
            #expect(SettingValue.parsed(intact.text)["repaired"] == .bool(false))

            let bodies = Self.files(below: site.cache).filter { !$0.contains("cache.sqlite") }
            let large = try #require(bodies.first { (ScratchFolder.bytes(at: $0)?.count ?? 0) > 65_536 })
            #expect(Self.flipByte(of: large))
            let damaged = try await site.run(["cache", "verify"])
            #expect(damaged.exit == 1 && damaged.text.contains("damaged"))
            let mended = try await site.run(["cache", "verify", "--repair", "--json"])
            let report = SettingValue.parsed(mended.text)
            #expect(mended.exit == 0 && report["repaired"] == .bool(true) && report["clean"] == .bool(false))
            #expect(try await site.run(["cache", "verify"]).exit == 0)
            #expect(try await site.run(arguments).exit == 0)
        }

        private static func files(below folder: String) -> [String] {
            guard let names = try? FolderNames(folder) else { return [] }
            return (0..<names.count).compactMap { names[$0] }.flatMap { name in
                let path = folder + "/" + name
                var status = stat()
                guard lstat(path, &status) == 0 else { return [String]() }
                return status.st_mode & S_IFMT == S_IFDIR ? files(below: path) : [path]
            }
        }

        private static func flipByte(of path: String) -> Bool {
            chmod(path, 0o644)
            let file = open(path, O_RDWR)
            guard file >= 0 else { return false }
            defer { close(file) }
            var byte: UInt8 = 0
            guard pread(file, &byte, 1, 1000) == 1 else { return false }
            byte ^= 0xFF
            return pwrite(file, &byte, 1, 1000) == 1
        }
    }
}

extension Sequence {
    /// One after the other.
    fileprivate func asyncMap<Value>(_ transform: (Element) async throws -> Value) async rethrows -> [Value] {
        var values: [Value] = []
        for element in self { values.append(try await transform(element)) }
        return values
    }
}
