import PipelineSupport
import Glibc
import ImageServer
import ImageServerNIO
import TestSupport
import Testing

@testable import pipectl

extension CommandTests {
    /// The page at `/`, and when there is one.
    @Suite struct Page {
        static let repository = Samples.folder + "/.."
        /// Made by `scripts/install-dependencies chromium`.
        static let python = repository + "/.build/page-tests/bin/python3"

        /// `Tests/Page/page_test.py` has the checks.
        @Test(
            .enabled(
                if: access("/usr/bin/chromium", X_OK) == 0 && access(python, X_OK) == 0,
                "needs Debian's chromium and playwright (scripts/install-dependencies chromium)"))
        func `the page works in a browser`() async throws {
            let images = try FolderOrigin(folder: Samples.folder + "/originals", maxAge: 3600)
            defer { images.stop() }
            let token = "the-token-of-this-test"
            try await RunningServer.with(
                [
                    "sources.deny=denied.test", "masks=\(Samples.folder)/masks",
                    #"presets={"card":"thumbnail:90x60:fill,jpeg:60"}"#,
                ],
                environment: ["PIPECTL_ADMIN_TOKEN=" + token]
            ) { server in
                let origin = images.url("/x").dropLast(2)
                let checks = try HelperProgram([
                    "timeout", "--kill-after=5", "600", Self.python, Self.repository + "/Tests/Page/page_test.py",
                    "http://127.0.0.1:\(server.port)", String(origin), "--token", token,
                ])
                let status = await checks.end()
                #expect(status == 0, "\(checks.text)")
                #expect(checks.text.split(separator: "\n").last == "done")
            }
        }

        /// `Tests/Page/original_test.py` has the checks.
        @Test(
            .enabled(
                if: access("/usr/bin/chromium", X_OK) == 0 && access(python, X_OK) == 0,
                "needs Debian's chromium and playwright (scripts/install-dependencies chromium)"))
        func `originals run nothing in a browser, and without keys other sites read nothing`() async throws {
            let server = try await RunningServer.start(unsigned: nil)
            let checks = try HelperProgram([
                "timeout", "--kill-after=5", "600", Self.python, Self.repository + "/Tests/Page/original_test.py",
                "http://127.0.0.1:\(server.port)",
            ])
            let status = await checks.end()
            #expect(status == 0, "\(checks.text)")
            #expect(checks.text.split(separator: "\n").last == "done")
            _ = await server.stop()
        }

        /// `Tests/Page/folder_test.py` has the checks.
        @Test(
            .enabled(
                if: access("/usr/bin/chromium", X_OK) == 0 && access(python, X_OK) == 0,
                "needs Debian's chromium and playwright (scripts/install-dependencies chromium)"))
        func `the page shows a folder, and a click leads from a picture to its controls`() async throws {
            let folder = ScratchFolder()
            for (sample, name) in [("meadow-small.jpg", "a.jpg"), ("balloon.webp", "2026/ö b.webp")] {
                _ = folder.write(
                    try #require(ScratchFolder.bytes(at: Samples.original(sample))), to: "pictures/" + name)
            }
            let whole = try #require(ScratchFolder.bytes(at: Samples.original("meadow-small.jpg")))
            let drawing = "<svg xmlns='http://www.w3.org/2000/svg' width='9' height='6'/>"
            for (name, bytes) in [
                ("a10.jpg", whole), ("a2.jpg", whole), ("cut.jpg", Array(whole.prefix(3_000))),
                ("fake.jpg", Array("no picture".utf8)), ("logo.svg", Array(drawing.utf8)),
            ] { _ = folder.write(bytes, to: "pictures/kinds/" + name) }
            for number in 0..<250 { _ = folder.write("x", to: "pictures/many/\(number).txt") }
            _ = folder.write("x", to: "pictures/notes.txt")
            let server = try await RunningServer.start(
                folder: folder, unsigned: nil, pictures: folder("pictures"))
            let checks = try HelperProgram([
                "timeout", "--kill-after=5", "600", Self.python, Self.repository + "/Tests/Page/folder_test.py",
                "http://127.0.0.1:\(server.port)",
            ])
            let status = await checks.end()
            #expect(status == 0, "\(checks.text)")
            #expect(checks.text.split(separator: "\n").last == "done")
            _ = await server.stop()
        }

        /// `Tests/Page/next_test.py` has the checks.
        @Test(
            .enabled(
                if: access("/usr/bin/chromium", X_OK) == 0 && access(python, X_OK) == 0,
                "needs Debian's chromium and playwright (scripts/install-dependencies chromium)"))
        func `a page with the pictures of Next js works without a change`() async throws {
            let folder = ScratchFolder()
            let picture = try #require(ScratchFolder.bytes(at: Samples.original("dunes-2mp.jpg")))
            folder.write(picture, to: "app/photos/dunes 2mp.jpg")
            let origin = try FolderOrigin(folder: folder("app"), maxAge: 60)
            defer { origin.stop() }
            // A manifest as builds of Next.js 15 write it: globs have become regular expressions.
            let manifest = folder.write(
                #"""
                {"version": 1, "images": {"deviceSizes": [640, 750, 828, 1080, 1200, 1920, 2048, 3840],
                "imageSizes": [16, 32, 48, 64, 96, 128, 256, 384], "path": "/_next/image", "loader": "default", "domains": [],
                "minimumCacheTTL": 60, "formats": ["image/avif", "image/webp"], "qualities": [75],
                "dangerouslyAllowSVG": false, "contentDispositionType": "attachment",
                "localPatterns": [{"pathname":
                "^(?:\\/photos(?:\\/(?!\\.{1,2}(?:\\/|$))(?:(?:(?!(?:^|\\/)\\.{1,2}(?:\\/|$)).)*?)|$))$", "search": ""}],
                "remotePatterns": [], "unoptimized": false}}
                """#, to: "images-manifest.json")
            let grammar =
                #"grammars={"next":{"path":"/_next/image","unsigned":true,"baseURL":"\#(origin.url(""))","manifest":"\#(manifest)"}}"#
            let server = try await RunningServer.start([grammar])
            let checks = try HelperProgram([
                "timeout", "--kill-after=5", "600", Self.python, Self.repository + "/Tests/Page/next_test.py",
                "http://127.0.0.1:\(server.port)",
            ])
            let status = await checks.end()
            #expect(status == 0, "\(checks.text)")
            #expect(checks.text.split(separator: "\n").last == "done")
            #expect(Set(origin.requests.map(\.target)) == ["/photos/dunes%202mp.jpg"])
            // The manifest lists neither this folder nor this width.
            for (query, text) in [
                ("url=%2Fsecret%2Fa.jpg&w=640&q=75", "not allowed"),
                ("url=%2Fphotos%2Fa.jpg&w=641&q=75", "not allowed"),
                ("url=%2Fphotos%2F%252e%252e%2Fsecret%2Fa.jpg&w=640&q=75", "not allowed"),
                ("url=https%3A%2F%2Fother.example%2Fa.jpg&w=640&q=75", "not allowed"),
            ] {
                let refused = try await server.ask("/_next/image?" + query)
                #expect(refused.status == 400 && refused.text.contains(text), "\(query)")
            }
            _ = await server.stop()
        }

        /// `Tests/Page/svg_test.py` has the checks.
        @Test(
            .enabled(
                if: access("/usr/bin/chromium", X_OK) == 0 && access(python, X_OK) == 0
                    && access("/usr/share/icons/Adwaita", R_OK) == 0,
                "needs Debian's chromium, adwaita-icon-theme and playwright (scripts/install-dependencies chromium)"))
        func `a sanitized SVG runs and loads nothing in a browser, and looks the same`() async throws {
            try await RunningServer.with(isProgram: true) { server in
                let checks = try HelperProgram([
                    "timeout", "--kill-after=5", "600", Self.python, Self.repository + "/Tests/Page/svg_test.py",
                    "http://127.0.0.1:\(server.port)",
                ])
                let status = await checks.end()
                #expect(status == 0, "\(checks.text)")
                #expect(checks.text.split(separator: "\n").last == "done")
            }
        }

        /// `Tests/Page/jxl_test.py` has the checks.
        @Test(
            .enabled(
                if: access("/usr/bin/chromium", X_OK) == 0 && access(python, X_OK) == 0,
                "needs Debian's chromium and playwright (scripts/install-dependencies chromium)"))
        func `a browser shows a JPEG and its JPEG XL file with the same pixels`() async throws {
            try await RunningServer.with { server in
                let checks = try HelperProgram([
                    "timeout", "--kill-after=5", "300", Self.python, Self.repository + "/Tests/Page/jxl_test.py",
                    "http://127.0.0.1:\(server.port)", Samples.folder + "/originals",
                ])
                let status = await checks.end()
                #expect(status == 0, "\(checks.text)")
                #expect(checks.text.split(separator: "\n").last == "done")
            }
        }

        /// `Tests/Page/gallery_test.py` has the checks.
        @Test(
            .enabled(
                if: access("/usr/bin/chromium", X_OK) == 0 && access(python, X_OK) == 0,
                "needs Debian's chromium and playwright (scripts/install-dependencies chromium)"))
        func `a contact sheet of 10,000 variants opens and scrolls to its end`() async throws {
            let folder = ScratchFolder()
            let small = try #require(ScratchFolder.bytes(at: Samples.original("balloon.webp")))
            let large = try #require(ScratchFolder.bytes(at: Samples.original("dunes-2mp.jpg")))
            folder.write(small, to: "out/small.webp")
            folder.write(large, to: "out/large.jpg")
            folder.write(small, to: "out/last.webp")
            let gallery = try Gallery(
                path: folder("sheet.html"), title: "10,000 variants", groupsBySource: true)
            for number in 0..<10_000 {
                var item = ItemJSON(source: "https://h/\(number / 3).jpg", recipe: "circle", outcome: .rendered)
                let isLarge = number % 3 == 0
                (item.width, item.height) = isLarge ? (1_600, 1_250) : (240, 240)
                item.format = isLarge ? "jpeg" : "webp"
                item.output = folder(number == 9_998 ? "out/last.webp" : isLarge ? "out/large.jpg" : "out/small.webp")
                try gallery.add(BatchOutput(line: item))
            }
            var summary = BatchSummary()
            summary.items = 10_000
            try gallery.finish(&summary)
            let checks = try HelperProgram([
                "timeout", "--kill-after=5", "300", Self.python, Self.repository + "/Tests/Page/gallery_test.py",
                folder("sheet.html"), "10000",
            ])
            let status = await checks.end()
            #expect(status == 0, "\(checks.text)")
            #expect(checks.text.split(separator: "\n").last == "done")
        }

        @Test func `the page is there if anybody on this machine may ask, unless it is switched off`() async throws {
            try await RunningServer.with { server in
                let page = try await server.ask("/")
                #expect(page.status == 200)
                let posted = try await server.ask("/", method: "POST")
                #expect(posted.status == 405)
                // The request's host is not this machine.
                let caches = try await server.ask("/page/cache.json")
                #expect(caches.status == 403)
            }
            try await RunningServer.with(["server.playground=false"]) { server in
                let page = try await server.ask("/")
                #expect(page.status == 404)
            }
        }

        @Test(
            arguments: [
                ("127.0.0.1:8080", true, nil, true), ("[::1]:8080", true, nil, true), ("localhost:1", true, nil, true),
                ("0.0.0.0:8080", true, nil, false), ("192.0.2.1:80", true, nil, false), ("[::]:80", true, nil, false),
                ("127.0.0.1:8080", false, nil, false), ("0.0.0.0:8080", false, true, true),
                ("127.0.0.1:8080", true, false, false),
            ] as [(String, Bool, Bool?, Bool)])
        func `an unset server.playground follows from who can ask`(
            _ listen: String, _ allowUnsigned: Bool, _ set: Bool?, _ isOn: Bool
        ) throws {
            let settings = try Settings(
                assignments: ["listen=\(listen)", "allowUnsigned=\(allowUnsigned)"]
                    + (set.map { ["server.playground=\($0)"] } ?? []))
            // Whether it starts is another matter.
            var errors = SettingErrors()
            let site = settings.configuration(serves: true, &errors).serverConfiguration(settings, &errors)
            #expect(site.playground == isOn)
        }
    }
}
