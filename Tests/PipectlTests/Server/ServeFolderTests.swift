import Glibc
import TestSupport
import Testing

@testable import pipectl

extension CommandTests {
    /// `pipectl serve FOLDER`.
    @Suite struct ServeFolder {
        private static let host = "127.0.0.1"

        private static func pictures() throws -> ScratchFolder {
            let folder = ScratchFolder()
            for (sample, name) in [
                ("night-tiny.jpg", "my pictures/a.jpg"), ("balloon.webp", "my pictures/2026/b.webp"),
            ] {
                _ = folder.write(try #require(ScratchFolder.bytes(at: Samples.original(sample))), to: name)
            }
            return folder
        }

        @Test func `a folder is served to this machine without any setting`() async throws {
            let folder = try Self.pictures()
            let server = try await RunningServer.start(
                folder: folder, unsigned: nil, pictures: folder("my pictures"))
            let page = try await server.ask("/", host: Self.host)
            #expect(page.status == 200)
            let listing = try await server.ask("/page/folder.json?folder=pictures:", host: Self.host)
            #expect(listing.text.contains(#""source":"pictures:a.jpg""#) && listing.text.contains(#""pictures:2026""#))
            for host in ["rebound.test", "192.0.2.1"] {
                #expect(try await server.ask("/page/folder.json?folder=pictures:", host: host).status == 403)
            }
            for source in ["pictures:a.jpg", "pictures:2026/b.webp"] {
                for target in [RunningServer.original(source), RunningServer.variant("thumbnail:20,png", source)] {
                    #expect(try await server.ask(target, host: Self.host).status == 200, "\(target)")
                }
            }
            symlink("/etc/passwd", folder("my pictures/link.jpg"))
            let refused = try await server.ask(RunningServer.original("pictures:link.jpg"), host: Self.host)
            #expect(refused.status == 404 && !refused.text.contains("link in"))
            let ended = await server.stop()
            #expect(ended.exit == 0)
            #expect(ended.errors.contains("see folders and try recipes at http://"), "\(ended.errors)")
            #expect(
                ended.errors.contains(
                    "source refused (logged once per file): pictures:link.jpg: the path contains a symbolic"),
                "\(ended.errors)")
            // No answer and no record has the machine's paths.
            let listed = try await ChildProgram.run(["cache", "list", "--cache", folder("cache")], folder: folder.path)
            #expect(listed.text.contains("pictures:a.jpg") && !listed.text.contains("my pictures"), "\(listed.text)")
            for source in ["pictures:a.jpg", "pictures:2026/b.webp"] {
                let purged = try await ChildProgram.run(
                    ["cache", "purge", source, "--cache", folder("cache")], folder: folder.path)
                #expect(purged.text.contains("1 record, "), "\(purged.text)")
            }
        }

        /// The token of the address that the server has printed.
        private static func token(_ server: RunningServer) async throws -> String {
            let told = await server.waitForOutput("try recipes at ")
            let start = try #require(told.firstRange(of: "/?token=")).upperBound
            return String(told[start...].prefix { $0.isHexDigit })
        }

        @Test func `without the token of the printed address a folder shows nothing but its health`() async throws {
            let folder = try Self.pictures()
            let server = try await RunningServer.start(
                folder: folder, unsigned: nil, arguments: ["-v"], pictures: folder("my pictures"), hasToken: true)
            let token = try await Self.token(server)
            #expect(token.count == 32)
            let host = "127.0.0.1:\(server.port)"
            let targets = [
                RunningServer.variant("thumbnail:20,png", "pictures:a.jpg"), RunningServer.original("pictures:a.jpg"),
                "/info/unsigned/pictures:a.jpg", "/", "/page/folder.json?folder=pictures:", "/ready", "/metrics",
            ]
            #expect(try await server.ask("/health", host: host).status == 200)
            for target in targets {
                let wrong = String(repeating: "0", count: 32)
                let query = target + (target.contains("?") ? "&" : "?") + "token="
                for _ in 0..<2 {
                    for answer in [
                        try await server.ask(target, host: host), try await server.ask(query + wrong, host: host),
                        try await server.ask(target, host: host, ["Authorization": "Bearer " + wrong]),
                        try await server.ask(target, host: host, ["Cookie": "pipectl-\(server.port)=\(wrong)"]),
                    ] { #expect(answer.status == 401 && !answer.text.contains(token), "\(target)") }
                    let bearer = try await server.ask(target, host: host, ["Authorization": "Bearer " + token])
                    #expect(bearer.status == 200, "\(target)")
                    let named = try await server.ask(query + token, host: host)
                    #expect(named.status == (target == "/" ? 303 : 200), "\(target)")
                }
                // A browser gets a cookie, and an address without the token.
                let opened = try await server.ask(query + token, host: host, ["Sec-Fetch-Mode": "navigate"])
                #expect(opened.status == 303 && opened["location"] == target && opened.body.isEmpty)
                let cookie = try #require(opened["set-cookie"])
                #expect(cookie.hasSuffix("; Path=/; HttpOnly; SameSite=Strict"), "\(cookie)")
                let pair = String(cookie.prefix { $0 != ";" })
                let own = try await server.ask(target, host: host, ["Cookie": "a=b; " + pair])
                let control = own.values("cache-control").joined()
                #expect(
                    own.status == 200 && (control.hasPrefix("private") || control.hasPrefix("no-store")), "\(target)")
                let foreign = try await server.ask(
                    target, host: host, ["Cookie": pair, "Sec-Fetch-Site": "cross-site"])
                #expect(foreign.status == 403)
            }
            let errors = await server.stop().errors
            #expect(errors.split(separator: token).count == 2, "printed once, and in no line of a request: \(errors)")
        }

        @Test(arguments: [
            ["allowUnsigned=true"], [#"keys={"a":"00112233445566778899aabbccddeeff"}"#],
        ]) func `with keys, or with unsigned URLs for everybody, a folder needs no token`(settings: [String])
            async throws
        {
            let folder = try Self.pictures()
            let server = try await RunningServer.start(
                settings, folder: folder, unsigned: nil, pictures: folder("my pictures"), hasToken: true)
            #expect(try await server.ask("/ready", host: Self.host, ["Sec-Fetch-Site": "cross-site"]).status == 200)
            let ended = await server.stop()
            #expect(ended.exit == 0 && !ended.errors.contains("token="), "\(ended.errors)")
        }

        @Test func `what other programs keep beside pictures is neither listed nor served`() async throws {
            let folder = try Self.pictures()
            let picture = try #require(folder.bytes("my pictures/a.jpg"))
            for name in ["@eaDir/a.jpg/thumb.jpg", "node_modules/b.jpg", ".trash-1/c.jpg", "eaDir/d.jpg"] {
                _ = folder.write(picture, to: "my pictures/" + name)
            }
            let server = try await RunningServer.start(
                folder: folder, unsigned: nil, pictures: folder("my pictures"))
            let listing = try await server.ask("/page/folder.json?folder=pictures:", host: Self.host)
            #expect(listing.text.contains("pictures:eaDir") && !listing.text.contains("node_modules"))
            #expect(!listing.text.contains("%40eaDir"), "\(listing.text)")
            let statuses = [
                "pictures:@eaDir/a.jpg/thumb.jpg": 404, "pictures:%40EADIR/a.jpg/thumb.jpg": 404,
                "pictures:node_modules/b.jpg": 404, "pictures:eaDir/d.jpg": 200,
            ]
            for (source, status) in statuses {
                #expect(
                    try await server.ask(RunningServer.original(source), host: Self.host).status == status, "\(source)")
            }
            #expect(await server.stop().exit == 0)
        }

        @Test func `an original is sent from the file: whole, in parts, or not at all`() async throws {
            let folder = try Self.pictures()
            let start = try #require(folder.bytes("my pictures/a.jpg"))
            let body = start + (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31 / 257) }
            _ = folder.write(body, to: "my pictures/long.jpg")
            try await RunningServer.with(
                [#"baseURLs={"photos":"file://\#(folder("my%20pictures"))"}"#], folder: folder, isProgram: true
            ) { server in
                let target = RunningServer.original("photos:long.jpg")
                let before = try #require(server.child.peakMemory)
                let whole = try await server.ask(target)
                #expect(whole.status == 200 && whole["content-type"] == "image/jpeg")
                #expect(whole.body == body)
                let (tag, modified) = (try #require(whole["etag"]), try #require(whole["last-modified"]))
                let head = try await server.ask(target, method: "HEAD")
                #expect(head.status == 200 && head["content-length"] == "\(body.count)" && head.body.isEmpty)
                let part = try await server.ask(target, ["Range": "bytes=1000007-1999999"])
                #expect(part.status == 206 && part["content-range"] == "bytes 1000007-1999999/\(body.count)")
                #expect(part.body == Array(body[1_000_007..<2_000_000]))
                #expect(try await server.ask(target, ["If-None-Match": tag]).status == 304)
                #expect(try await server.ask(target, ["If-Modified-Since": modified]).status == 304)
                #expect(try await server.ask(target, ["Range": "bytes=0-1", "If-Range": "\"x\""]).status == 200)
                #expect(try await server.ask(target, ["If-Match": "\"x\""]).status == 412)
                #expect(try await server.ask(target, ["If-Match": tag]).status == 200)
                let past: KeyValuePairs = ["If-Unmodified-Since": "Mon, 01 Jan 2001 00:00:00 GMT"]
                #expect(try await server.ask(target, past).status == 412)
                #expect(try #require(server.child.peakMemory) - before < 12_000_000)
                _ = folder.write(start, to: "my pictures/long.jpg")
                let changed = try await server.ask(target, ["If-None-Match": tag])
                #expect(changed.status == 200 && changed["etag"] != tag && changed.body == start)
                // It has no writer, and requests must not wait for one.
                mkfifo(folder("my pictures/fifo.jpg"), 0o644)
                #expect(try await server.ask(RunningServer.original("photos:fifo.jpg")).status == 404)
            }
        }

        @Test func `a folder that goes is one line in the log each time, and comes back by itself`() async throws {
            let folder = try Self.pictures()
            let (path, away) = (folder("my pictures"), folder("away"))
            let server = try await RunningServer.start(folder: folder, unsigned: nil, pictures: path)
            for _ in 0..<2 {
                rename(path, away)
                for source in ["pictures:a.jpg", "pictures:2026/b.webp", "pictures:a.jpg"] {
                    let answer = try await server.ask(RunningServer.variant("png", source), host: Self.host)
                    #expect(answer.status == 502, "\(answer.text)")
                }
                rename(away, path)
                #expect(try await server.ask(RunningServer.original("pictures:a.jpg"), host: Self.host).status == 200)
            }
            let ended = await server.stop()
            let lines = ended.errors.split(separator: "\n").filter { $0.contains("my pictures: No such file") }
            #expect(lines.count == 2, "\(ended.errors)")
        }

        @Test func `a folder that is not there is an error at the start`() async throws {
            let folder = ScratchFolder()
            for (arguments, words) in [
                ([folder("none")], "the folder \(folder("none")) does not exist; use `pipectl serve FOLDER`"),
                (
                    ["--set", #"baseURLs={"a":"file://\#(folder("none"))"}"#],
                    "`baseURLs`: `a`: \(folder("none")): No such file or directory"
                ),
            ] {
                let ended = try await ChildProgram.run(
                    ["serve", "--listen", "127.0.0.1:0", "--cache", folder("cache")] + arguments, folder: folder.path)
                #expect(ended.exit == 2, "\(ended.errors)")
                #expect(ended.errors.contains(words), "\(ended.errors)")
            }
        }
    }
}
