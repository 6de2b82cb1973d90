import PipelineCaching
import TestSupport
import Testing

@testable import ImageServer

@Suite struct RouteTests {
    private func problem(_ target: String) -> Problem? {
        do throws(Problem) {
            _ = try Route(target)
            return nil
        } catch {
            return error
        }
    }

    @Test func `docs server md lists every path, and docs metrics md every name of a route`() throws {
        let root = #filePath.split(separator: "/", omittingEmptySubsequences: false).dropLast(3).joined(separator: "/")
        func text(_ name: String) throws -> String {
            String(decoding: try #require(FuzzPlan.contents("\(root)/docs/\(name).md")), as: UTF8.self)
        }
        let paths = try text("server")
        for route in RouteName.allCases { #expect(paths.contains("`\(route.template)`"), "\(route)") }
        let names = RouteName.allCases.map(\.rawValue).joined(separator: ", ")
        #expect(try text("metrics").contains("`route` is \(names), other, or none"))
    }

    @Test(arguments: [
        ("/", "page"), ("/?a", "page"), ("/page/x", "page"), ("/health", "health"), ("/health?a", "health"),
        ("/variant/a/b/c", "variant"), ("/variants", nil), ("//", nil), ("", nil), ("health", nil), ("*", nil),
    ])
    func `a route has a name by its first segment`(target: String, name: String?) {
        #expect(RouteName(target)?.rawValue == name)
    }

    @Test func `recipe and source are decoded exactly once`() throws {
        let route = try Route(
            "/variant/unsigned/thumbnail%3A300x200%3Afill%2Cwebp/http%3A%2F%2Fh%2Fa%2520b%3Fx%3D1%2B2")
        #expect(
            route
                == .variant(
                    signature: "unsigned", recipe: "thumbnail:300x200:fill,webp", source: "http://h/a%20b?x=1+2"))
        #expect(try Route("/original/k.abc/http:%2F%2Fh%2Fa") == .original(signature: "k.abc", source: "http://h/a"))
        #expect(try Route("/health") == .health)
    }

    @Test func `a plus sign is a plus sign`() throws {
        #expect(
            try Route("/original/unsigned/http:%2F%2Fh%2Fa+b")
                == .original(signature: "unsigned", source: "http://h/a+b"))
        #expect(
            try Route("/variant/unsigned/crop:10x10+5+5,@card/http:%2F%2Fh")
                == .variant(signature: "unsigned", recipe: "crop:10x10+5+5,@card", source: "http://h"))
    }

    @Test(arguments: ["aHR0cDovL2gvYS8_eA", "aHR0cDovL2gvYS8_eA=="])
    func `a source may be base64url`(_ text: String) throws {
        #expect(
            try Route("/original/unsigned/b64:\(text)") == .original(signature: "unsigned", source: "http://h/a/?x"))
    }

    @Test(arguments: [
        ("http://h/a/b.jpg", "http://h/a/b.jpg"), ("photos:2026/a%20b.jpg", "photos:2026/a b.jpg"),
        ("cats/1.jpg", "cats/1.jpg"), ("http://h/a%3Fw=1%25", "http://h/a?w=1%"), ("http://h/", "http://h/"),
        ("a/...jpg", "a/...jpg"), ("http:%2Fh%2Fa", "http:/h/a"),
    ])
    func `the rest of the path is the source, slashes included`(_ written: String, _ source: String) throws {
        for query in ["", "?v=2", "?v=", "?v=a%20b", "?v=1&v=2"] {
            #expect(
                try Route("/variant/k.abc/png/\(written)\(query)")
                    == .variant(signature: "k.abc", recipe: "png", source: source))
            #expect(try Route("/original/k.abc/\(written)\(query)") == .original(signature: "k.abc", source: source))
            #expect(try Route("/info/k.abc/\(written)\(query)") == .info(signature: "k.abc", source: source))
            #expect(try Route("/source/\(written)\(query)") == .source(source, mode: nil))
        }
        #expect(try Route("/source/\(written)?v=1&mode=hard") == .source(source, mode: .hard))
        #expect(try Route("/info/k.abc/\(written)?exp=12&v=2") == .info(signature: "k.abc", source: source))
    }

    @Test(arguments: [
        ("a/../b", "which others resolve"), ("a/./b", "which others resolve"), ("a/%2e%2E/b", "which others resolve"),
        ("photos:a/b%2fc", "both `/` and %2F"), ("http:/h/a", "merge_slashes"), ("https:/h/a", "merge_slashes"),
        ("b64:aHR0cDovL2gv/eA", "base64url"),
    ])
    func `a source that a proxy may read differently is refused`(_ written: String, _ words: String) {
        let problem = problem("/original/unsigned/" + written)
        #expect(problem?.kind == .invalidSource && problem?.detail?.contains(words) == true)
    }

    @Test(arguments: [
        "/original/unsigned/http:%2F%2Fh%2Fa?x=1", "/variant/unsigned/png/http:%2F%2Fh?", "/original/unsigned/a?v",
        "/original/unsigned/http:%2F%2Fh/", "/variant/unsigned/png/http://h/a?v=1&w=2",
        "/info/unsigned/http://h/a?v=1&",
    ])
    func `a raw question mark, or slashes in two spellings, are refused with how to encode them`(_ target: String) {
        #expect(problem(target)?.kind == .invalidSource)
        #expect(problem(target)?.detail?.contains("%2F") == true && problem(target)?.detail?.contains("%3F") == true)
    }

    @Test(arguments: [
        ("/original/unsigned/http%3", Problem.Kind.invalidSource), ("/original/unsigned/%zz", .invalidSource),
        ("/original/unsigned/%ff", .invalidSource), ("/variant/unsigned/%f/x", .invalidRecipe),
        ("/original/unsigned/b64:aHR0cDovL2gvYS8_eB", .invalidSource), ("/original/unsigned/b64:a", .invalidSource),
        ("/original/unsigned/b64:aHR0cDovL2gvYS8/eA", .invalidSource), ("/original/unsigned/", .invalidSource),
        ("/original/unsigned", .invalidSource), ("/variant/unsigned/png", .invalidSource),
        ("/original", .invalidSource),
        ("/page", .unknownPath), ("/page/x", .unknownPath), ("/nope", .unknownPath), ("//health", .unknownPath),
        ("/health/", .unknownPath),
        ("/Original/unsigned/x", .unknownPath),
    ])
    func `what leads nowhere says so`(_ target: String, _ kind: Problem.Kind) {
        #expect(problem(target)?.kind == kind)
    }

    @Test func `an expiry is the only query`() throws {
        #expect(
            try Route("/original/k.abc/http:%2F%2Fh%2Fa?exp=12") == .original(signature: "k.abc", source: "http://h/a"))
        for query in ["exp=", "exp=-1", "exp=1&a=b", "exp=1.5", "Exp=1", "exp=123456789012", "exp=1?exp=1", "x"] {
            #expect(problem("/original/k.abc/http:%2F%2Fh%2Fa?\(query)")?.kind == .invalidSource, "\(query)")
        }
    }

    @Test(arguments: [
        ("/variant/unsigned/thumbnail%3A300/http:%2F%2Fh%2Fa%3Fb", "thumbnail:300", "http://h/a?b"),
        ("/images/original/unsigned/photos:a/b.jpg?v=2", nil, "photos:a/b.jpg"),
        ("/info/web.C1xNNHBxNpKXQ9MRYr4LzjIQDgC5z9x9Pe7amleMKiI/cats%2F1.jpg?exp=9", nil, "cats/1.jpg"),
        // These are from a log.
        ("/variant/thumbnail:300/http://h/a?b", "thumbnail:300", "http://h/a?b"),
        ("/variant/a%2Cb/photos:a/b%20c.jpg", "a,b", "photos:a/b%20c.jpg"), ("/original/cats/1.jpg", nil, "cats/1.jpg"),
        ("/variant/png", nil, nil), ("/health", nil, nil), ("/source/a", nil, nil), ("variant/a/b/c", nil, nil),
        ("http://h/variant/a/b/c", nil, nil), ("/home/a.jpg", nil, nil),
    ])
    func `a path of the server names a source as a browser or a log shows it`(
        _ text: String, _ recipe: String?, _ source: String?
    ) throws {
        let path = try ServedPath(text, mountPoint: "/images")
        #expect(path?.recipe == recipe && path?.source == source)
        for malformed in ["/original/unsigned/%zz", "/variant/unsigned"] {
            #expect(throws: Problem.self) { try ServedPath(malformed, mountPoint: "") }
        }
    }

    @Test(arguments: [("", ""), ("Zg", "f"), ("Zg==", "f"), ("Zm8", "fo"), ("Zm9v", "foo"), ("Zm9vYg", "foob")])
    func `base64url is read as RFC 4648 has it`(_ text: String, _ plain: String) {
        #expect(PercentText.base64URLDecoded(text) == Array(plain.utf8))
    }

    @Test(arguments: ["Z", "Zg=", "Zh", "Zm9=", "Zm 9", "Zm9v=", "Z===", "Zm+v", "Zm/v"])
    func `what is no base64url is refused`(_ text: String) { #expect(PercentText.base64URLDecoded(text) == nil) }
}
