import PipelineCaching
import PipelineSupport
import TestSupport
import Testing

@testable import ImageServer

/// A target, read without a check of its signature.
enum Read: Hashable {
    case picture(String, recipe: String, source: String)
    case operation(Operation)

    init(_ text: String) throws(Problem) {
        let target = RequestTarget(text)
        switch ServerConfiguration().route(of: target) {
        case .picture(let grammar):
            let path = try OwnPath(target, hasRecipe: grammar.name == "variant")
            self = .picture(grammar.name, recipe: path.recipe, source: path.source)
        case .operation(let name): self = .operation(try Operation(name, target))
        case nil: throw Operation.nothing
        }
    }
}

@Suite struct RouteTests {
    private func problem(_ target: String) -> Problem? {
        do throws(Problem) {
            _ = try Read(target)
            return nil
        } catch {
            return error
        }
    }

    @Test func `docs server md lists every path, and docs metrics md every name of a route`() throws {
        func text(_ name: String) throws -> String {
            String(decoding: try #require(FuzzPlan.contents("\(FuzzPlan.root)/docs/\(name).md")), as: UTF8.self)
        }
        let paths = try text("server")
        let routes = Grammars.own.map(Route.picture) + Operation.Name.allCases.map(Route.operation)
        for route in routes { #expect(paths.contains("`\(route.template)`"), "\(route)") }
        let names = routes.map(\.name).joined(separator: ", ")
        #expect(try text("metrics").contains("`route` is \(names), other, or none"))
    }

    @Test(arguments: [
        ("/", "page"), ("/?a", "page"), ("/page/x", "page"), ("/health", "health"), ("/health?a", "health"),
        ("/variant/a/b/c", "variant"), ("/variants", nil), ("//", nil), ("", nil), ("health", nil), ("*", nil),
    ])
    func `a route has a name by its first segment`(target: String, name: String?) {
        #expect(ServerConfiguration().route(of: RequestTarget(target))?.name == name)
    }

    @Test func `recipe and source are decoded exactly once`() throws {
        let route = try Read(
            "/variant/unsigned/thumbnail%3A300x200%3Afill%2Cwebp/http%3A%2F%2Fh%2Fa%2520b%3Fx%3D1%2B2")
        #expect(
            route
                == .picture("variant", recipe: "thumbnail:300x200:fill,webp", source: "http://h/a%20b?x=1+2"))
        #expect(try Read("/original/k.abc/http:%2F%2Fh%2Fa") == .picture("original", recipe: "", source: "http://h/a"))
        #expect(try Read("/health") == .operation(.health))
    }

    @Test func `a plus sign is a plus sign`() throws {
        #expect(
            try Read("/original/unsigned/http:%2F%2Fh%2Fa+b")
                == .picture("original", recipe: "", source: "http://h/a+b"))
        #expect(
            try Read("/variant/unsigned/crop:10x10+5+5,@card/http:%2F%2Fh")
                == .picture("variant", recipe: "crop:10x10+5+5,@card", source: "http://h"))
    }

    @Test(arguments: ["aHR0cDovL2gvYS8_eA", "aHR0cDovL2gvYS8_eA=="])
    func `a source may be base64url`(_ text: String) throws {
        #expect(
            try Read("/original/unsigned/b64:\(text)") == .picture("original", recipe: "", source: "http://h/a/?x"))
    }

    @Test(arguments: [
        ("http://h/a/b.jpg", "http://h/a/b.jpg"), ("photos:2026/a%20b.jpg", "photos:2026/a b.jpg"),
        ("cats/1.jpg", "cats/1.jpg"), ("http://h/a%3Fw=1%25", "http://h/a?w=1%"), ("http://h/", "http://h/"),
        ("a/...jpg", "a/...jpg"), ("http:%2Fh%2Fa", "http:/h/a"),
    ])
    func `the rest of the path is the source, slashes included`(_ written: String, _ source: String) throws {
        for query in ["", "?v=2", "?v=", "?v=a%20b", "?v=1&v=2"] {
            #expect(
                try Read("/variant/k.abc/png/\(written)\(query)")
                    == .picture("variant", recipe: "png", source: source))
            #expect(try Read("/original/k.abc/\(written)\(query)") == .picture("original", recipe: "", source: source))
            #expect(try Read("/info/k.abc/\(written)\(query)") == .picture("info", recipe: "", source: source))
            #expect(try Read("/source/\(written)\(query)") == .operation(.source(source, mode: nil)))
        }
        #expect(try Read("/source/\(written)?v=1&mode=hard") == .operation(.source(source, mode: .hard)))
        #expect(try Read("/info/k.abc/\(written)?exp=12&v=2") == .picture("info", recipe: "", source: source))
    }

    @Test(arguments: [
        ("a/../b", "which clients and proxies would resolve"), ("a/./b", "which clients and proxies would resolve"),
        ("a/%2e%2E/b", "which clients and proxies would resolve"),
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
            try Read("/original/k.abc/http:%2F%2Fh%2Fa?exp=12")
                == .picture("original", recipe: "", source: "http://h/a"))
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
        #expect(Base64.urlDecoded(text) == Array(plain.utf8))
    }

    @Test(arguments: ["Z", "Zg=", "Zh", "Zm9=", "Zm 9", "Zm9v=", "Z===", "Zm+v", "Zm/v"])
    func `what is no base64url is refused`(_ text: String) { #expect(Base64.urlDecoded(text) == nil) }
}
