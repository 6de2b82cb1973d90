import Glibc
import HTTPCaching
import HTTPTypes
import Pipeline
import PipelineSupport
import Testing
import Variants

@testable import ImageServer

/// The checks that `Site.init` makes of a configuration's strings and numbers.
@Suite struct SiteRulesTests {
    private static func rules(_ change: (inout ServerConfiguration) -> Void) throws -> SiteRules {
        var settings = ServerConfiguration()
        change(&settings)
        return try SiteRules(settings, presets: .none)
    }

    private static let faults: [(String, @Sendable (inout ServerConfiguration) -> Void)] = [
        ("`baseURLs`: `a` must be an http", { $0.baseURLs = ["a": "ftp://a.test"] }),
        ("`baseURLs`: `a`: /nowhere: No such file", { $0.baseURLs = ["a": "file:///nowhere"] }),
        ("`baseURLs`: no base URL has the name `b`", { $0.defaultBase = "b" }),
        ("`adminToken`: must have at least 16", { $0.adminToken = "tooshort" }),
        ("`referrers`: `a.test/x` contains a path", { $0.referrers = ["a.test/x"] }),
        ("`referrers`: ", { $0.referrers = ["a b"] }),
        ("`crossOrigin`: `a` is neither an origin", { $0.crossOrigin = ["a"] }),
        ("`fields`: `Vary` cannot be added, because the server sets this field itself", { $0.fields = ["Vary": "*"] }),
        ("`fields`: `a b` is not a valid name of a header field", { $0.fields = ["a b": "c"] }),
        (
            "`fields`: the value of `A` must be visible ASCII, without spaces at the ends",
            { $0.fields = ["A": "b\r\nc"] }
        ),
        ("`fallback`: ", { $0.fallback = [1, 2, 3] }),
        ("`mountPoint`: must be a path", { $0.mountPoint = "images/" }),
        ("`recipes.sizes`: a size must be between 1 and 8192 pixels", { $0.recipes.sizes = [20, 8193] }),
    ]

    @Test(arguments: faults)
    func `a setting that cannot be followed is refused by its name`(
        _ message: String, _ change: @Sendable (inout ServerConfiguration) -> Void
    ) {
        let error = #expect(throws: InvalidSetting.self) { try Self.rules(change) }
        #expect(error?.message.hasPrefix(message) == true && error?.message.contains("tooshort") == false)
    }

    @Test(arguments: [nil, 200, 404, 599, 199, 304, 600])
    func `a fallback picture has a status that caches and browsers take for a picture or an error`(_ status: Int?) {
        let bytes = HitTests.Bench.sample("night-tiny.jpg")
        func rules() throws -> SiteRules {
            try Self.rules { settings in (settings.fallback, settings.fallbackStatus) = (bytes, status) }
        }
        if let status, [199, 304, 600].contains(status) {
            let error = #expect(throws: InvalidSetting.self) { try rules() }
            #expect(error?.message == "`fallback`: the status must be 200, or between 400 and 599")
        } else {
            #expect(throws: Never.self) { try rules() }
        }
    }

    @Test func `without a list every page is admitted, by an empty list the site's own pages alone`() throws {
        let host = HeaderField("Host", "own.test")
        func admits(_ referrers: [String]?, _ page: String) throws -> Bool {
            try Self.rules { $0.referrers = referrers }.referrers.admits([host, HeaderField("Referer", page)])
        }
        #expect(try admits(nil, "https://a.test/"))
        #expect(try !admits([], "https://a.test/") && admits([], "https://own.test/x") && admits([], ""))
        #expect(try admits(["a.test"], "https://a.test/") && !admits(["b.test"], "https://a.test/"))
    }

    @Test(arguments: [1_900_000_000.9, -5, 1e300, .infinity, .nan])
    func `an expiry is written as whole seconds of at most eleven digits`(_ expiry: Double) throws {
        let path = try SignatureTests.key().originalPath(source: "a", expiry: expiry)
        let seconds = [1_900_000_000.9: "1900000000", -5: "0"][expiry] ?? (expiry.isNaN ? "0" : "99999999999")
        #expect(path.hasSuffix("/a?exp=" + seconds))
    }

    @Test func `a body in a file is the same in pieces and by its descriptor, and one in memory has no file`()
        async throws
    {
        let bench = try FolderTests.Bench()
        let picture = HitTests.Bench.sample("night-tiny.jpg")
        func body(_ path: String, _ method: HTTPRequest.Method = .get, range: String? = nil) async -> AnswerBody {
            var request = HTTPRequest(method: method, scheme: nil, authority: "127.0.0.1", path: path)
            if let range { request.headerFields[.range] = range }
            return await bench.site.respond(to: request, client: "127.0.0.1").1
        }
        for (range, expected) in [(nil, picture[...]), ("bytes=10-19", picture[10..<20])] {
            let body = await body("/original/unsigned/photos:a.jpg", range: range)
            var pieces: [UInt8] = []
            for try await piece in body { pieces += piece }
            let read = body.withFile { descriptor, range in
                var bytes = [UInt8](repeating: 0, count: range.count)
                return pread(descriptor, &bytes, range.count, range.lowerBound) == range.count ? bytes : []
            }
            #expect(pieces[...] == expected && read.map { $0[...] } == expected && body.bytes.isEmpty)
            #expect(body.count == expected.count)
        }
        let head = await body("/original/unsigned/photos:a.jpg", .head)
        #expect(head.count == 0 && head.withFile { _, _ in true } == nil)
        let inMemory = await body("/variant/unsigned/thumbnail:20,png/photos:a.jpg")
        #expect(!inMemory.bytes.isEmpty && inMemory.withFile { _, _ in true } == nil)
        await bench.end()
    }
}
