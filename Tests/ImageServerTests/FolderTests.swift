import Glibc
import HTTPCaching
import PipelineFetching
import PipelineSupport
import TestSupport
import Testing
import Variants

@testable import ImageServer
@testable import Pipeline

/// Folders as base URLs: which files are sources, under which name, and which clients see the names.
@Suite struct FolderTests {
    /// A site with the folder `photos`. Files beside it are not sources.
    final class Bench: Sendable {
        let scratch = ScratchFolder()
        var path: String { scratch.path }
        let pipeline: ImagePipeline
        var root: String { path + "/photos" }
        let site: Site

        init(followsLinks: Bool = false, _ change: (inout ServerConfiguration) -> Void = { _ in }) throws {
            let path = scratch.path
            for folder in ["/photos", "/photos/2026", "/photos/.hidden"] { mkdir(path + folder, 0o755) }
            let picture = HitTests.Bench.sample("night-tiny.jpg")
            for file in [
                "outside.jpg", "photos/a.jpg", "photos/2026/b.jpg", "photos/100% a?#ö.jpg", "photos/.dot.jpg",
                "photos/.hidden/c.jpg", "photos/x%2Fy.jpg",
            ] { scratch.write(picture, to: file) }
            scratch.write("no picture", to: "photos/notes.txt")
            for (target, link) in [
                ("a.jpg", "in.jpg"), ("../outside.jpg", "out.jpg"), (path + "/outside.jpg", "absolute.jpg"),
                ("..", "up"),
                ("2026", "year"), ("loop.jpg", "loop.jpg"), ("/proc/self/root", "2026/root"),
            ] { symlink(target, path + "/photos/" + link) }
            mkfifo(path + "/photos/fifo.jpg", 0o644)
            // Only root may do this. Without it there is one name less to refuse.
            _ = mknod(path + "/photos/null.jpg", S_IFCHR | 0o644, 0x103)
            var settings = ServerConfiguration()
            settings.allowUnsigned = true
            settings.playground = true
            settings.baseURLs = ["photos": "file://" + path + "/photos"]
            settings.followsFolderLinks = followsLinks
            change(&settings)
            var configuration = PipelineConfiguration()
            configuration.cacheFolder = path + "/cache"
            pipeline = try ImagePipeline(configuration)
            site = try Site(pipeline: pipeline, configuration: settings)
        }

        func ask(
            _ target: String, _ fields: [HeaderField] = [], client: String? = "127.0.0.1", host: String = "127.0.0.1"
        ) async -> ServerResponse {
            var request = ServerRequest(target: target, fields: [HeaderField("Host", host)] + fields)
            request.client = client
            return await site.respond(to: request)
        }

        func end() async { await pipeline.shutdown() }
    }

    private static func original(_ source: String) -> String { "/original/unsigned/" + PercentText.segment(source) }
    private static func variant(_ source: String, _ recipe: String = "thumbnail:20,png") -> String {
        "/variant/unsigned/\(recipe)/" + PercentText.segment(source)
    }

    @Test func `files below the folder are sources, and nothing else is`() async throws {
        let bench = try Bench()
        for source in [
            "photos:a.jpg", "photos:2026/b.jpg", "photos:%61.jpg", "photos:100% a?#ö.jpg",
            "photos:100%25%20a%3F%23%C3%B6.jpg",
            "photos:x%252Fy.jpg",
        ] {
            for target in [
                Self.original(source), Self.variant(source), "/info/unsigned/" + PercentText.segment(source),
            ] {
                let answer = await bench.ask(target)
                #expect(answer.status == 200, "\(target) \(answer.note ?? "")")
            }
        }
        let long = String(repeating: "a", count: 300)
        for path in [
            "none.jpg", "../outside.jpg", "2026/../a.jpg", "2026/../../outside.jpg", "..", ".", "", "/", "//", "/a.jpg",
            "2026//b.jpg", "2026/", "a.jpg/", "./a.jpg", "%2e%2e/outside.jpg", "%2E%2E%2Foutside.jpg",
            "..%2foutside.jpg",
            "2026%2fb.jpg", "2026%2Fb.jpg", ".dot.jpg", "%2edot.jpg", ".hidden/c.jpg", "in.jpg", "out.jpg",
            "absolute.jpg",
            "up/outside.jpg", "year/b.jpg", "loop.jpg", "2026/root/etc/passwd", "fifo.jpg", "null.jpg", "2026",
            "a.jpg%00",
            "a.jpg\u{0}", "a.jpg%00.png", long, long + "/" + long, String(repeating: "b/", count: 3_000), "a.jpg/x",
            "A.jpg",
            bench.path + "/outside.jpg", "\\..\\outside.jpg",
        ] {
            let source = "photos:" + path
            for target in [
                Self.original(source), Self.variant(source), "/info/unsigned/" + PercentText.segment(source),
            ] {
                let answer = await bench.ask(target)
                let text = String(decoding: answer.body, as: UTF8.self)
                // Nothing tells one reason from another.
                #expect(answer.status == 404, "\(path.prefix(80)) \(answer.status)")
                #expect(
                    text.contains(#""type":"urn:image-pipeline:problem:not-found""#)
                        && text.contains(": the file does not exist\"}")
                        && (!text.contains(bench.path) || path.contains(bench.path)), "\(text.prefix(300))")
            }
        }
        for source in ["file:///etc/passwd", "file:" + bench.root + "/a.jpg", bench.root + "/a.jpg", "other:a.jpg"] {
            #expect(await bench.ask(Self.variant(source)).status == 400, "\(source)")
        }
        await bench.end()
    }

    @Test func `the log says why a file is refused, once for each`() async throws {
        let bench = try Bench()
        for (path, reason) in [
            ("in.jpg", "symbolic link"), ("fifo.jpg", "not a regular file"), ("../x", "begins with a dot"),
            ("2026%2Fb.jpg", "contains a slash"),
        ] {
            let answer = await bench.ask(Self.original("photos:" + path))
            #expect(
                answer.note?.contains(reason) == true && answer.note?.contains("photos:") == true,
                "\(answer.note ?? "")")
        }
        #expect(await bench.ask(Self.original("photos:none.jpg")).note == "not-found")
        await bench.end()
    }

    @Test func `with the setting, links are followed to what is below the folder`() async throws {
        let bench = try Bench(followsLinks: true)
        for path in ["in.jpg", "year/b.jpg", "a.jpg"] {
            #expect(await bench.ask(Self.original("photos:" + path)).status == 200, "\(path)")
        }
        for path in [
            "out.jpg", "absolute.jpg", "up/outside.jpg", "loop.jpg", "2026/root/etc/passwd", ".dot.jpg", "fifo.jpg",
        ] {
            #expect(await bench.ask(Self.original("photos:" + path)).status == 404, "\(path)")
        }
        await bench.end()
    }

    @Test func `a folder that is replaced is seen by the next request, whatever replaced it`() async throws {
        let bench = try Bench()
        let link = bench.path + "/current"
        let releases = [bench.path + "/1", bench.path + "/2"]
        for (release, sample) in [("1", "night-tiny.jpg"), ("2", "grey.jpg")] {
            bench.scratch.write(HitTests.Bench.sample(sample), to: release + "/a.jpg")
        }
        bench.scratch.write(HitTests.Bench.sample("grey.jpg"), to: "2/new.jpg")
        symlink("1", link)
        var settings = bench.site.settings
        settings.baseURLs = ["photos": "file://" + link]
        let site = try Site(pipeline: bench.pipeline, configuration: settings)
        func ask(_ target: String) async -> ServerResponse { await site.respond(to: ServerRequest(target: target)) }
        let targets = [Self.original("photos:a.jpg"), Self.variant("photos:a.jpg")]
        func tags() async -> [String?] {
            var tags: [String?] = []
            for target in targets {
                let answer = await ask(target)
                #expect(answer.status == 200, "\(target)")
                tags.append(answer.fields.first("etag"))
            }
            return tags
        }
        let first = await tags()
        #expect(await ask(Self.original("photos:new.jpg")).status == 404)

        symlink("2", link + ".next")
        rename(link + ".next", link)
        let second = await tags()
        #expect(zip(first, second).allSatisfy { $0 != $1 })
        #expect(await ask(Self.original("photos:new.jpg")).status == 200)

        // The link stays, the folder is moved away, and comes back as another one.
        rename(releases[1], bench.path + "/away")
        for target in targets {
            let answer = await ask(target)
            #expect(
                answer.status == 502
                    && answer.note?.contains("the folder `photos` does not exist at the moment") == true)
        }
        rename(releases[0], releases[1])
        #expect(await tags().count == 2)
        #expect(await ask(Self.original("photos:new.jpg")).status == 404)
        await bench.end()
    }

    @Test func `a folder that cannot be opened is refused by its name`() throws {
        for (url, reason) in [
            ("file:///nowhere/at/all", "No such file"), ("file:///etc/hostname", "Not a directory"),
            ("file://host/x", "must be an http, https, s3 or file URL"),
            ("file:relative", "must be an http, https, s3 or file URL"),
        ] {
            let refusal = #expect(throws: InvalidSetting.self) { _ = try BaseURLs(["photos": url]) }
            #expect(
                refusal?.message.contains("`photos`") == true && refusal?.message.contains(reason) == true, "\(url)")
        }
    }

    @Test func `an original is the file itself, with validators, ranges and the type of its bytes`() async throws {
        let bench = try Bench()
        let target = Self.original("photos:a.jpg")
        let whole = await bench.ask(target)
        #expect(
            whole.file != nil && whole.body.isEmpty && whole.length == HitTests.Bench.sample("night-tiny.jpg").count)
        #expect(whole["content-type"] == "image/jpeg" && whole["x-content-type-options"] == "nosniff")
        #expect(whole["content-security-policy"] == OriginalAnswer.sandbox.value && whole["content-disposition"] == nil)
        var status = stat()
        stat(bench.root + "/a.jpg", &status)
        let modified = HTTPDate.text(unixSeconds: status.st_mtim.tv_sec)
        #expect(whole["last-modified"] == modified && whole["cache-status"] == "pipeline; fwd=bypass; detail=file")
        let tag = try #require(whole["etag"])
        #expect(!tag.contains(String(status.st_ino)))
        for field in [HeaderField("If-None-Match", tag), HeaderField("If-Modified-Since", modified)] {
            let answer = await bench.ask(target, [field])
            #expect(answer.status == 304 && answer.file == nil && answer["etag"] == tag, "\(field)")
        }
        let part = await bench.ask(target, [HeaderField("Range", "bytes=10-19"), HeaderField("If-Range", tag)])
        #expect(part.status == 206 && part.file?.range == 10..<20)
        #expect(await bench.ask(target, [HeaderField("Range", "bytes=9999999-")]).status == 416)
        // A file that is not a picture is not an original either, unless `acceptedTypes` admits all types.
        #expect(await bench.ask(Self.original("photos:notes.txt")).status == 415)
        await bench.end()
    }

    @Test func `a changed file is a new original, and records, tags and purges have its name`() async throws {
        let bench = try Bench { settings in
            settings.tags = .both
            settings.adminToken = "0123456789abcdef0123456789abcdef"
        }
        let (target, source) = (Self.variant("photos:2026/b.jpg"), "photos:2026/b.jpg")
        let first = await bench.ask(target)
        #expect(first["cache-status"]?.hasSuffix("detail=rendered") == true, "\(first["cache-status"] ?? "")")
        #expect(await bench.ask(target)["cache-status"]?.contains("detail=memory") == true)
        // A file is asked for each time.
        #expect(first["cache-control"] == "no-cache" || first["cache-control"] == "no-cache, max-age=0")
        #expect(first["surrogate-key"] == SourceTags.own(source) && first["link"] == nil)
        #expect(first["content-disposition"] == #"inline; filename="b.png""#)
        var asked = ImageRequest(.url(source), recipe: try Recipe("thumbnail:20,png"))
        asked.folder = bench.site.rules.baseURLs.folders.first
        let explained = try await bench.pipeline.explain(asked)
        #expect(explained.source == source && explained.decision == .readFile)

        bench.scratch.write(HitTests.Bench.sample("meadow-small.jpg"), to: "photos/2026/b.jpg")
        let changed = await bench.ask(target)
        #expect(changed.status == 200 && changed["etag"] != first["etag"])
        #expect(await bench.ask(Self.original(source)).length == HitTests.Bench.sample("meadow-small.jpg").count)

        await bench.pipeline.drain()
        func purge(_ json: String) async -> String {
            var request = ServerRequest(
                method: "POST", target: "/purge",
                fields: [
                    HeaderField("Host", "a"), HeaderField("Authorization", "Bearer 0123456789abcdef0123456789abcdef"),
                ])
            request.body = Array(json.utf8)
            return String(decoding: await bench.site.respond(to: request).body, as: UTF8.self)
        }
        for json in [
            #"{"sources":["photos:%32026/b.jpg"],"mode":"hard"}"#, #"{"prefixes":["photos:2026/"],"mode":"hard"}"#,
            #"{"tags":["\#(SourceTags.own(source))"],"mode":"hard"}"#,
        ] {
            #expect(await bench.ask(target).status == 200)
            await bench.pipeline.drain()
            #expect(await purge(json).contains(#""records":1"#), "\(json)")
            #expect(await purge(json).contains(#""records":0"#), "\(json)")
        }
        await bench.end()
    }

    @Test func `signed paths name files`() async throws {
        let key = try SigningKey(id: "web", hex: String(repeating: "0a", count: 32))
        let bench = try Bench { settings in (settings.allowUnsigned, settings.keys) = (false, [key]) }
        #expect(await bench.ask(key.variantPath(recipe: "thumbnail:20,png", source: "photos:a.jpg")).status == 200)
        #expect(await bench.ask(key.originalPath(source: "photos:2026/b.jpg")).status == 200)
        #expect(await bench.ask(Self.original("photos:a.jpg")).status == 403)
        await bench.end()
    }

    private static func names(_ answer: ServerResponse) throws -> (names: [String], after: String?) {
        guard case .object(let members) = try JSONParser.parse(Array(answer.body)) else { return ([], nil) }
        var (names, after) = ([String](), String?.none)
        for member in members {
            if case ("after", .string(let text)) = (member.name, member.value) { after = text }
            guard case ("entries", .list(let entries)) = (member.name, member.value) else { continue }
            for case .object(let entry) in entries {
                let texts = entry.map { if case .string(let text) = $0.value { text } else { "" } }
                names.append(texts[1] + (entry.contains { $0.value == .bool(true) } ? "/" : ""))
            }
        }
        return (names, after)
    }

    @Test func `operators see the names in a folder, without hidden ones and links`() async throws {
        let bench = try Bench()
        let listing = "/page/folder.json?folder=photos:"
        let top = await bench.ask(listing)
        #expect(top.status == 200 && top["cache-control"] == "no-store")
        #expect(
            try Self.names(top).names == [
                "photos:100%25%20a%3F%23%C3%B6.jpg", "photos:2026/", "photos:a.jpg", "photos:notes.txt",
                "photos:x%252Fy.jpg",
            ])
        #expect(try Self.names(await bench.ask(listing + "2026")).names == ["photos:2026/b.jpg"])
        for path in ["..", "none", ".hidden", "up", "year", "a.jpg", "2026%2F..", "2026/"] {
            #expect(await bench.ask(listing + path).status == 404, "\(path)")
        }
        for target in ["/page/folder.json", "/page/folder.json?folder=other:", "/page/folder.json?folder=%2Fetc"] {
            #expect(await bench.ask(target).status == 404, "\(target)")
        }
        let catalog = await bench.ask("/page/catalogue.json")
        #expect(String(decoding: catalog.body, as: UTF8.self).contains(#""folders":["photos"]"#))
        for (client, host) in [("192.0.2.1", "127.0.0.1"), ("127.0.0.1", "rebound.test"), (nil, "127.0.0.1")] {
            let answer = await bench.ask(listing, client: client, host: host)
            #expect(answer.status == 403 && !String(decoding: answer.body, as: UTF8.self).contains("a.jpg"))
            let catalog = await bench.ask("/page/catalogue.json", client: client, host: host)
            #expect(!String(decoding: catalog.body, as: UTF8.self).contains("photos"))
        }
        await bench.end()
    }

    @Test func `names stand in the order that people expect`() async throws {
        let bench = try Bench()
        let names = [
            "a2.jpg", "a10.jpg", "a010.jpg", "B1.jpg", "b.jpg", "c", "C1", "10.jpg", "9.jpg", "a2b.jpg", "é.jpg",
        ]
        for name in names { bench.scratch.write([], to: "photos/order/" + name) }
        let listed = try Self.names(await bench.ask("/page/folder.json?folder=photos:order"))
        #expect(
            listed.names.map { $0.dropFirst(13) } == [
                "9.jpg", "10.jpg", "a2.jpg", "a2b.jpg", "a010.jpg", "a10.jpg", "b.jpg", "B1.jpg", "c", "C1",
                "%C3%A9.jpg",
            ])
        await bench.end()
    }

    @Test func `a file has no time to live, and clients are told what is configured`() async throws {
        let bench = try Bench { settings in settings.freshness = ClientFreshness(maxAge: .seconds(600)) }
        let paths = [Self.variant("photos:a.jpg"), Self.original("photos:a.jpg"), "/info/unsigned/photos:a.jpg"]
        for target in paths + paths {
            let answer = await bench.ask(target)
            let status = try #require(answer["cache-status"])
            #expect(answer.status == 200 && status.hasPrefix("pipeline; ") && !status.contains("ttl"), "\(status)")
        }
        let first = await bench.ask(paths[0])
        #expect(first["cache-control"] == "max-age=600" && first["cache-status"] == "pipeline; hit; detail=memory")
        let same = await bench.ask(paths[0], [HeaderField("If-None-Match", try #require(first["etag"]))])
        #expect(same.status == 304 && same["cache-control"] == "max-age=600")
        #expect(await bench.ask(paths[1])["cache-control"] == "no-cache, max-age=0")
        await bench.end()
    }

    @Test func `a large folder comes in pages, each name once and in order`() async throws {
        let bench = try Bench()
        let names = (0..<1_000).map { "\($0 * 7_919 % 1_000) ä.jpg" }
        for name in names { bench.scratch.write([], to: "photos/many/" + name) }
        var (found, after, pages) = ([String](), "", 0)
        repeat {
            let answer = await bench.ask("/page/folder.json?folder=photos:many&after=" + PercentText.segment(after))
            let page = try Self.names(answer)
            #expect(page.names.count == 200)
            found += page.names
            (after, pages) = (page.after ?? "", pages + 1)
        } while !after.isEmpty && pages < 10
        let expected = (0..<1_000).map { "\($0) ä.jpg" }
        #expect(found == expected.map { "photos:many/" + $0.replacing(" ä", with: "%20%C3%A4") } && pages == 5)
        await bench.end()
    }
}
