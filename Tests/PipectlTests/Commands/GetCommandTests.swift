import PipelineSupport
import Glibc
import Pipeline
import TestSupport
import Testing

@testable import pipectl

extension CommandTests {
    @Suite struct Get {
        private let site = CommandSite()

        @Test func `get writes a file, and the second time it comes from disk without asking the origin`() async throws
        {
            let origin = try FolderOrigin(folder: Samples.folder + "/originals", maxAge: 3600)
            defer { origin.stop() }
            let arguments = ["get", origin.url("/meadow-small.jpg"), "-r", "thumbnail:40x40:fill,png"]
            let first = try await site.run(arguments + ["-o", "a.png", "--json"])
            #expect(first.exit == 0 && first.errors == "")
            let line = SettingValue.parsed(first.text)
            #expect(line["outcome"] == .string("rendered") && line["originalOutcome"] == .string("network"))
            #expect(line["width"] == .int(40) && line["height"] == .int(40) && line["format"] == .string("png"))
            #expect(line["written"] == .bool(true) && line["output"] == .string("a.png"))
            let bytes = site.folder.bytes("a.png") ?? []
            #expect(bytes.starts(with: [0x89, 0x50, 0x4E, 0x47]))
            #expect(line["bytes"] == .int(bytes.count))

            let second = try await site.run(arguments + ["-o", "b.png", "--json"])
            let again = SettingValue.parsed(second.text)
            #expect(second.exit == 0 && again["outcome"] == .string("disk"))
            #expect(again["key"] == line["key"] && again["digest"] == line["digest"])
            #expect(site.folder.bytes("b.png") == bytes)
            #expect(origin.requests.count == 1)
        }

        @Test func `the setting policy is the default of what --policy says`() async throws {
            let origin = try FolderOrigin(folder: Samples.folder + "/originals", maxAge: 0)
            defer { origin.stop() }
            let arguments = ["get", origin.url("/grey.jpg"), "-r", "thumbnail:20", "--json"]
            for (words, requests) in [
                ([], 1), (["--set", "policy=cacheElseLoad"], 1), (["--set", "policy=protocol"], 2),
                (["--set", "policy=cacheElseLoad", "--policy", "revalidate"], 3),
            ] {
                #expect(try await site.run(arguments + words).exit == 0)
                #expect(origin.requests.count == requests, "\(words)")
            }
            let batch = ["batch", origin.url("/grey.jpg"), "-r", "thumbnail:20", "-o", "out", "--set"]
            #expect(try await site.run(batch + ["policy=cacheElseLoad"]).exit == 0 && origin.requests.count == 3)
            #expect(try await site.run(arguments + ["--set", "policy=reload"]).exit == 2)
        }

        @Test func `an image goes into a pipe as it is, and - means the same`() async throws {
            let source = Samples.original("night-tiny.jpg")
            let original = try await site.run(["get", source])
            #expect(original.exit == 0 && original.errors == "")
            let sample = ScratchFolder.bytes(at: source)
            #expect(sample?.isEmpty == false && original.output == sample)

            let piped = try await site.run(["get", source, "-r", "thumbnail:20,webp", "-o", "-"])
            #expect(piped.exit == 0)
            #expect(piped.output.prefix(4).elementsEqual(Array("RIFF".utf8)))
            #expect(site.folder.names() == ["cache"])
        }

        @Test func `--json without -o tells and prints no bytes`() async throws {
            let ended = try await site.run(["get", Samples.original("grey.jpg"), "-r", "thumbnail:20", "--json"])
            #expect(ended.exit == 0 && ended.lines.count == 1)
            let line = SettingValue.parsed(ended.text)
            #expect(line["outcome"] == .string("rendered") && line["output"] == nil && line["error"] == nil)
        }

        @Test func `a recipe without an output takes the format of the file's extension`() async throws {
            let source = Samples.original("grey.jpg")
            for (name, format) in [
                ("a.webp", "webp"), ("a.PNG", "png"), ("a.jpeg", "jpeg"), ("a.jxl", "jxl"), ("a.tif", "tiff"),
                ("a.TIFF", "tiff"),
                ("a.b/c", "jpeg"), ("a.data", "jpeg"),
            ] {
                let ended = try await site.run(["get", source, "-r", "thumbnail:20", "-o", name, "--json"])
                #expect(SettingValue.parsed(ended.text)["format"] == .string(format), "\(name): \(ended.errors)")
            }
            let named = try await site.run(["get", source, "-r", "thumbnail:20,png", "-o", "b.webp", "--json"])
            #expect(SettingValue.parsed(named.text)["format"] == .string("png"))
            let original = try await site.run(["get", source, "-o", "c.webp", "--json"])
            #expect(SettingValue.parsed(original.text)["format"] == .string("jpeg"))
        }

        @Test func `file URLs are files, and what is not there comes with a hint`() async throws {
            let bytes = try #require(ScratchFolder.bytes(at: Samples.original("grey.jpg")))
            let path = site.folder.write(bytes, to: "a picture.jpg")
            let url = path.split(separator: " ").joined(separator: "%20")
            for source in ["file://" + url, "file://localhost" + url] {
                let ended = try await site.run(["get", source, "-r", "thumbnail:20", "-o", "a.png"])
                #expect(ended.exit == 0, "\(ended.errors)")
            }
            for (source, exit, words) in [
                ("file://elsewhere/a.jpg", Int32(2), "use http or https"),
                ("file:///a%00b", 2, "use http or https"),
                ("example.org/a.jpg", 4, "did you mean https://example.org/a.jpg?"),
                ("img.example.org:8080/a/b.png?c", 4, "did you mean https://img.example.org:8080/a/b.png?c?"),
                (site.folder(""), 4, "it is a folder; to render all pictures in it, use `pipectl batch"),
            ] {
                for command in [["get", source, "-r", "thumbnail:20", "-o", "b.png"], ["info", source]] {
                    let ended = try await site.run(command)
                    #expect(ended.exit == exit && ended.errors.contains(words), "\(ended.errors)")
                }
            }
            for source in ["missing.jpg", "folder/missing.jpg", "a.b/c.jpg", "./example.org/a.jpg"] {
                let ended = try await site.run(["get", source, "-r", "thumbnail:20", "-o", "b.png"])
                #expect(ended.exit == 4 && !ended.errors.contains("did you mean"), "\(ended.errors)")
            }
        }

        @Test func `an equal file is left alone`() async throws {
            let arguments = ["get", Samples.original("grey.jpg"), "-r", "thumbnail:20", "-o", "grey.jpg", "--json"]
            _ = try await site.run(arguments)
            let before = FileIdentity(path: site.folder("grey.jpg"))
            let second = try await site.run(arguments)
            #expect(SettingValue.parsed(second.text)["written"] == .bool(false))
            #expect(FileIdentity(path: site.folder("grey.jpg")) == before)
        }

        @Test(arguments: [
            ("balloon-palette.png", "photo.jpg", "png"), ("balloon.webp", "picture.png", "webp"),
            ("forest.avif", "forest.gif", "avif"), ("meadow-small.jpg", "meadow", "jpeg"),
        ])
        func `a file is what its bytes are, whatever its name says`(sample: String, name: String, format: String)
            async throws
        {
            let source = site.folder.write(try #require(ScratchFolder.bytes(at: Samples.original(sample))), to: name)
            let here = try await site.run(["get", source, "-r", "thumbnail:40", "-o", "a.out", "--json"])
            #expect(here.exit == 0, "\(here.errors)")
            #expect(SettingValue.parsed(here.text)["format"] == .string(format))
            let named = try await site.run(
                ["get", Samples.original(sample), "-r", "thumbnail:40", "-o", "b.out", "--json"])
            #expect(SettingValue.parsed(named.text)["key"] == SettingValue.parsed(here.text)["key"])
            #expect(site.folder.bytes("a.out") == site.folder.bytes("b.out"))
        }

        @Test func `on a terminal get says what it waits for, and takes the line away again`() async throws {
            // The origin answers once the writing end is closed.
            var gate: [Int32] = [-1, -1]
            try #require(pipe(&gate) == 0)
            for end in gate { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
            let held = gate[0]
            defer { close(held) }
            let bytes = try #require(ScratchFolder.bytes(at: Samples.original("grey.jpg")))
            let origin = try LoopbackOrigin { _ in
                var byte: UInt8 = 0
                _ = read(held, &byte, 1)
                return .response(200, ["Content-Type": "image/jpeg"], body: bytes)
            }
            defer { origin.stop() }
            let arguments = ["get", origin.url("/a.jpg"), "-r", "thumbnail:40", "-o", "a.jpg"] + site.flags
            let child = try ChildProgram(arguments, folder: site.folder.path, hasTerminal: true)
            let shown = await child.waitForOutput("waiting for the origin · 1")
            close(gate[1])
            #expect(shown.contains("\r\u{1b}[Kwaiting for the origin · 1"))
            let ended = await child.end
            #expect(ended.exit == 0 && ended.errors.hasSuffix("\r\u{1b}[K"), "\(ended.errors)")
            #expect(site.folder.bytes("a.jpg")?.isEmpty == false)

            let quick = try ChildProgram(
                arguments + ["--policy", "cacheOnly"], folder: site.folder.path, hasTerminal: true)
            #expect(await quick.end.errors == "")
            let quiet = try ChildProgram(
                ["get", "nothing.jpg", "-q", "-o", "b.jpg"] + site.flags, folder: site.folder.path, hasTerminal: true)
            #expect(await quiet.end.exit == 4)
        }

        @Test func `-v tells where an answer came from and how long each stage took`() async throws {
            let arguments = ["get", Samples.original("grey.jpg"), "-r", "thumbnail:40", "-o", "a.jpg", "-v"]
            let first = try await site.run(arguments)
            #expect(first.exit == 0 && first.errors.contains("grey.jpg: rendered, in "))
            #expect(first.errors.contains("decode ") && first.errors.contains("encode "), "\(first.errors)")
            let second = try await site.run(arguments)
            #expect(second.errors.contains("grey.jpg: disk, in "), "\(second.errors)")
            // It has nothing to add to what these print.
            for command in [["explain", "a.jpg"], ["cache", "stats"], ["recipe", "circle"], ["settings"]] {
                #expect(try await site.plain(command + ["-v"]).exit == 2, "\(command)")
            }
        }

        @Test(
            arguments: [
                (LoadStatus.Phase.waiting, 0, nil, "working · 2.5 s"),
                (.fetching, 0, nil, "waiting for the origin · 2.5 s"),
                (.fetching, 1_200_000, nil, "fetched 1.2 MB · 2.5 s"),
                (.fetching, 1_200_000, 4_000_000, "fetched 1.2 MB of 4.0 MB · 2.5 s"),
                (.rendering, 4_000_000, 4_000_000, "rendering · 2.5 s"),
            ] as [(LoadStatus.Phase, Int, Int?, String)])
        func `the line tells how far the work is`(phase: LoadStatus.Phase, received: Int, expected: Int?, text: String)
        {
            var status = LoadStatus()
            (status.phase, status.received, status.expected) = (phase, received, expected)
            #expect(WaitLine.text(status, seconds: 2.5) == text)
        }

        @Test func `info tells format, size and colours`() async throws {
            let json = try await site.run(["info", Samples.original("exif-orientation-6.jpg"), "--json"])
            let object = SettingValue.parsed(json.text)
            #expect(json.exit == 0 && json.lines.count == 1)
            #expect(object["format"] == .string("jpeg") && object["orientation"] == .int(6))
            #expect(object["averageColour"] != nil && object["blurhash"] != nil)
            let text = try await site.run(["info", Samples.original("exif-orientation-6.jpg")])
            #expect(text.exit == 0 && text.text.contains("blurhash") && text.text.contains("orientation"))
            #expect(object["uprightWidth"] == object["height"] && object["uprightHeight"] == object["width"])
            #expect(object["width"] == .int(800) && object["height"] == .int(600))
            #expect(object["thumbhash"] != nil && object["colourSpace"] == .string("RGB"))
            guard case .list(let palette)? = object["palette"] else { throw CancellationError() }
            #expect((2...5).contains(palette.count))
            let inks = try await site.run(["info", Samples.original("cmyk-profile.jpg")])
            #expect(inks.text.contains("CMYK, 8 bits") && inks.text.contains("Sample inks"))
        }

        @Test func `info tells what the camera wrote, and where only when asked`() async throws {
            let jpeg = try #require(ScratchFolder.bytes(at: Samples.original("grey.jpg")))
            let source = site.folder.write(CameraEXIF.inserted(CameraEXIF().complete, into: jpeg), to: "a.jpg")
            let plain = try await site.run(["info", source])
            #expect(plain.text.contains("camera  ") && plain.text.contains("Canon EOS R5"), "\(plain.text)")
            #expect(plain.text.contains("1/250 s, f/2.8") && plain.text.contains("2024-05-01T12:30:07"))
            #expect(!plain.text.contains("position"))
            let asked = try await site.run(["info", source, "--position", "--json"])
            let place = SettingValue.parsed(asked.text).at("exif", "position")
            #expect(place?["longitude"] == .double(151.2), "\(asked.text)")
        }
    }

    @Suite struct Help {
        private let site = CommandSite()

        @Test(arguments: [
            ["--help"], ["get", "--help"], ["batch", "--help"], ["info", "--help"], ["recipe", "--help"],
            ["cache", "--help"], ["serve", "--help"],
        ])
        func `help ends with 0 and shows examples`(arguments: [String]) async throws {
            let ended = try await site.plain(arguments)
            #expect(ended.exit == 0 && ended.errors == "")
            #expect(ended.text.contains("Example") && ended.text.contains("  pipectl "))
        }

        @Test func `recipes lists every step and output`() async throws {
            let text = try await site.plain(["recipes"])
            let json = try await site.plain(["recipes", "--json"])
            #expect(text.exit == 0 && json.exit == 0 && json.lines.count > 20)
            for line in json.lines {
                guard case .string(let name)? = SettingValue.parsed(line)["name"] else {
                    Issue.record("no name: \(line)")
                    continue
                }
                #expect(text.text.contains(name))
            }
        }

        @Test func `recipe gives the canonical text and a line a step`() async throws {
            let written = "thumbnail:0300x200:fill,rounded-mask:8%,webp:80"
            let text = try await site.plain(["recipe", written])
            #expect(text.exit == 0)
            let canonical = try #require(text.lines.first)
            #expect(canonical.hasPrefix("thumbnail:300x200:fill,rounded-mask:8pct"))
            #expect(text.lines.count == 4 && text.lines.dropFirst().allSatisfy { $0.hasPrefix("  ") })
            let json = try await site.plain(["recipe", written, "--json"])
            #expect(SettingValue.parsed(json.text)["recipe"] == .string(String(canonical)))
            let again = try await site.plain(["recipe", String(canonical)])
            #expect(again.lines.first == canonical)
        }

        @Test func `the version is told`() async throws {
            let ended = try await site.plain(["--version"])
            #expect(ended.exit == 0 && ended.lines.count == 1)
        }
    }
}
