@testable import HTTPCaching
@testable import PipelineFetching
import PipelineCaching
import TestSupport
import Testing

@testable import Pipeline

/// One name for one picture (`hosts`: ignoreQuery, aliasOf).
@Suite(.timeLimit(.minutes(20))) struct SourceNamesTests {
    private static func hosts(_ ignored: [String], alias: String? = nil) throws -> [HostOrigin: HostSettings] {
        var settings = HostSettings()
        settings.ignoredQuery = ignored
        var hosts = [try HostOrigin("http://origin.test"): settings]
        settings.ignoredQuery = []
        settings.alias = try HostOrigin("http://origin.test")
        for mirror in ["https://origin.test", "mirror.test:8443"] { hosts[try HostOrigin(mirror)] = settings }
        return hosts
    }

    @Test(arguments: [
        ("http://origin.test/a?X-Amz-Date=1&w=2&X-Amz-Signature=3", "http://origin.test/a?w=2"),
        ("http://origin.test/a?X-Amz-Date=1&t", "http://origin.test/a"),
        ("http://origin.test:80/a?tt=1&t=2&&x-amz-date=3", "http://origin.test/a?tt=1&&x-amz-date=3"),
        ("http://origin.test/a?", "http://origin.test/a?"), ("http://origin.test/a", "http://origin.test/a"),
        ("https://mirror.test:8443/b?t=1&w=2", "http://origin.test/b?w=2"),
        ("https://origin.test/b", "http://origin.test/b"),
        ("https://mirror.test/b?t=1", "https://mirror.test/b?t=1"),
        ("http://origin.test:81/a?t", "http://origin.test:81/a?t"),
    ])
    func `fields that do not count and aliases are left out of names`(url: String, name: String) throws {
        let names = SourceNames(try Self.hosts(["X-Amz-*", "t"]))
        let parsed = try SourceURL(url)
        #expect(names.name(of: parsed) == name)
        // A name has itself as its name.
        #expect(names.name(name) == name)
        #expect(SourceNames().name(of: parsed) == parsed.normalized)
        if url.contains("origin.test/") {
            let bare = SourceNames(try Self.hosts(["*"]))
            #expect(bare.name(of: parsed) == String(name.prefix { $0 != "?" }))
        }
    }

    @Test func `pre-signed URLs of one object are one fetch, one record and one variant, and each is sent as it is`()
        async throws
    {
        let hosts = try Self.hosts(["sig"])
        try await withCache {
            $0.fetch.hosts = hosts
        } origin: { _ in
            ScriptedResponse(200, "Cache-Control: max-age=60", "ETag: \"1\"").picture()
        } _: { bench in
            let urls = ["http://origin.test/a?sig=1", "http://origin.test/a?sig=2", "https://mirror.test:8443/a?sig=3"]
            for (index, url) in urls.enumerated() {
                let image = try await bench.image { $0.source = .url(url) }
                #expect(image.outcome == (index == 0 ? .rendered : .memory))
                #expect(image.record.source == "http://origin.test/a")
                let explanation = try await bench.pipeline.explain(ImageRequest(.url(url)))
                #expect(explanation.source == "http://origin.test/a" && explanation.decision == .reuse)
            }
            #expect(bench.count == 1)
            bench.clock.advance(61)
            bench.origin.answers { _ in ScriptedResponse(304, "Cache-Control: max-age=60", "ETag: \"1\"") }
            _ = try await bench.image { $0.source = .url(urls[1]) }
            #expect(bench.origin.requests.map(\.url.normalized) == Array(urls.prefix(2)))
            #expect(bench.sent("if-none-match") == "\"1\"")
            for purged in [urls[0], urls[2]] {
                let removed = try await bench.pipeline.purge(.source(.url(purged)))
                #expect(removed.records == (purged == urls[0] ? 1 : 0))
            }
            bench.origin.answers { _ in ScriptedResponse(200, "Cache-Control: max-age=60").picture() }
            _ = try await bench.image { $0.source = .url(urls[0]) }
            let prefixed = try await bench.pipeline.purge(.prefix("https://mirror.test:8443/"))
            #expect(prefixed.records == 1)
        }
    }

    @Test(arguments: [("", true), (", stale-if-error=600", true), (", must-revalidate", false)])
    func `an expired signature falls back as stale-if-error permits, and says nothing of others`(
        directive: String, isStale: Bool
    ) async throws {
        let hosts = try Self.hosts(["sig"])
        try await withCache {
            $0.fetch.hosts = hosts
        } origin: { request in
            request.url.query == "sig=old"
                ? ScriptedResponse(403, "Cache-Control: max-age=600", body: "expired")
                : ScriptedResponse(200, "Cache-Control: max-age=60\(directive)", "ETag: \"1\"").picture()
        } _: { bench in
            _ = try await bench.image { $0.source = .url("http://origin.test/a?sig=1") }
            bench.clock.advance(61)
            let old = ImageSource.url("http://origin.test/a?sig=old")
            for _ in 0..<2 {
                if isStale {
                    let image = try await bench.image { $0.source = old }
                    #expect(image.isStale && image.forwardStatus == 403)
                } else {
                    let error = await bench.imageRefusal { $0.source = old }
                    #expect(error?.message.contains("403") == true)
                }
            }
            #expect(bench.count == 3)
            let image = try await bench.image { $0.source = .url("http://origin.test/a?sig=2") }
            #expect(!image.isStale && bench.count == 4)
        }
    }

    @Test(arguments: ["http://origin.test/a?sig=old", "http://origin.test/a"])
    func `requests that wait with another signature ask once with that when one has expired`(refused: String)
        async throws
    {
        let hosts = try Self.hosts(["sig"])
        let door = Door()
        try await withCache {
            $0.fetch.hosts = hosts
        } origin: { request in
            guard request.url.normalized == refused else {
                return ScriptedResponse(200, "Cache-Control: max-age=60").picture()
            }
            await door.pass()
            return ScriptedResponse(403, "Cache-Control: max-age=60")
        } _: { bench in
            async let refusal = bench.imageRefusal { $0.source = .url(refused) }
            await door.arrivals(1)
            try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<6 {
                    group.addTask { try await bench.image { $0.source = .url("http://origin.test/a?sig=1") }.width }
                }
                await bench.waiting(7)
                door.open()
                for try await width in group { #expect(width == 40) }
            }
            #expect(await refusal?.message.contains("403") == true)
            #expect(bench.count == 2)
        }
    }

    @Test func `a mirror that fails says nothing of the others`() async throws {
        let hosts = try Self.hosts([])
        try await withCache {
            $0.fetch.hosts = hosts
            $0.caching.errorMaxAge = .seconds(600)
        } origin: { request throws(FetchError) in
            guard request.url.host == "mirror.test" else {
                return ScriptedResponse(200, "Cache-Control: max-age=60").picture()
            }
            throw FetchError(.unreachable, request.url, "nobody there")
        } _: { bench in
            for _ in 0..<2 {
                let error = await bench.imageRefusal { $0.source = .url("https://mirror.test:8443/a") }
                #expect(error?.code == .fetchFailed)
            }
            #expect(bench.count == 1)
            for url in ["https://origin.test/a", "http://origin.test/a"] {
                let image = try await bench.image { $0.source = .url(url) }
                #expect(image.width == 40)
            }
            #expect(bench.count == 2)
        }
    }

    @Test func `purges by prefix remove what begins so, and by host the host's names`() throws {
        let names = SourceNames(try Self.hosts(["sig"]))
        func purged(_ prefix: String) -> [[String]] {
            let purged = names.purged(prefix)
            return [purged.names, purged.prefixes]
        }
        #expect(purged("http://origin.test/a?sig=1") == [["http://origin.test/a"], ["http://origin.test/a?sig=1"]])
        #expect(purged("http://origin.test/a?w=1") == [[], ["http://origin.test/a?w=1"]])
        #expect(
            purged("https://origin.test/a") == [[], ["https://origin.test/a", "http://origin.test/a"]])
        for selection in [SourceSelection(normalizedHost: "mirror.test"), SourceSelection(prefixes: ["file:/a"])] {
            for prefix in selection.prefixes { #expect(purged(prefix) == [[], [prefix]]) }
        }
    }
}
