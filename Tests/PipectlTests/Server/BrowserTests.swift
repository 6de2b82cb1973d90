import PipelineSupport
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import pipectl

extension CommandTests {
    /// A real browser's view of the answers.
    @Suite(.enabled(if: access("/usr/bin/chromium", X_OK) == 0, "needs Debian's chromium"))
    struct Browser {
        /// The document of a page once it and its pictures have loaded.
        private static func document(_ page: String, folder: ScratchFolder) async throws -> String {
            let chromium = try HelperProgram([
                "timeout", "--kill-after=5", "120", "chromium", "--headless", "--no-sandbox", "--disable-gpu",
                "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
                // Nothing but this machine is asked.
                "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
                "--proxy-server=direct://",
                "--user-data-dir=" + folder("profile"),
                // For certificates of a test's own authority.
                "--ignore-certificate-errors", "--dump-dom", "--virtual-time-budget=60000", page,
            ])
            let status = await chromium.end()
            #expect(status == 0, "\(chromium.text)")
            return chromium.text
        }

        @Test func `Chromium is given JPEG XL for auto, and shows it`() async throws {
            let images = try FolderOrigin(folder: Samples.folder + "/originals", maxAge: 3600)
            defer { images.stop() }
            let folder = ScratchFolder()
            try await RunningServer.with(folder: folder) { server in
                let path = RunningServer.variant("thumbnail:64", images.url("/meadow-small.jpg"))
                let page = """
                    <body onload="document.body.title = document.images[0].naturalWidth + ' px'">
                    <img src="http://127.0.0.1:\(server.port)\(path)"></body>
                    """
                let site = try LoopbackOrigin { _ in
                    .response(200, ["Content-Type": "text/html"], body: Array(page.utf8))
                }
                defer { site.stop() }
                let document = try await Self.document(site.url("/"), folder: folder)
                #expect(document.contains("title=\"64 px\""), "\(document)")
            }
            let list = try ChildProgram(
                ["cache", "list", "--tier", "variants", "--json", "--cache", folder("cache")], folder: folder.path)
            let variants = await list.end.lines.map { SettingValue.parsed($0) }
            #expect(variants.map { $0["format"] } == [.string("jxl")], "\(variants)")
        }

        @Test func `in Chromium a page that may read an answer gets its fields`() async throws {
            let images = try FolderOrigin(folder: Samples.folder + "/originals", maxAge: 3600)
            defer { images.stop() }
            let page = Mutex("")
            let site = try LoopbackOrigin { _ in
                .response(200, ["Content-Type": "text/html"], body: Array(page.withLock { $0 }.utf8))
            }
            defer { site.stop() }
            let folder = ScratchFolder()
            try await RunningServer.with(["server.cors=" + site.url("")], folder: folder) { server in
                let target = RunningServer.variant("thumbnail:64,png", images.url("/meadow-small.jpg"))
                page.withLock {
                    $0 = """
                        <body><script type="module">
                        const url = "http://127.0.0.1:\(server.port)\(target)";
                        let text;
                        try {
                            const answer = await fetch(url);
                            // Of the PNG's header: Chromium's virtual time passes while it decodes a picture.
                            const width = new DataView(await answer.arrayBuffer()).getUint32(16);
                            text = [width, answer.headers.get("content-disposition")].join(" ");
                        } catch (error) { text = String(error); }
                        document.body.title = text;
                        </script></body>
                        """
                }
                let document = try await Self.document(site.url("/"), folder: folder)
                #expect(document.contains("64 inline; filename=&quot;meadow-small.png&quot;"), "\(document)")
                // Another origin: a name for the same address.
                let other = try await Self.document("http://localhost:\(site.port)/", folder: folder)
                #expect(other.contains("TypeError"), "\(other)")
            }
        }
    }
}
