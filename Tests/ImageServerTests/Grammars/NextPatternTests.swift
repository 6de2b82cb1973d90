import PipelineFetching
import PipelineSupport
import Testing

@testable import ImageServer

/// The patterns of a manifest. The expressions are what picomatch makes of the globs in the comments.
@Suite struct NextPatternTests {
    private static func pattern(_ members: [String: String]) -> NextPattern? {
        NextPattern(remote: .object(members.map { .init(name: $0.key, value: .string($0.value)) }))
    }

    private static let anyPath = #"^(?:(?!(?:^|\/)\.{1,2}(?:\/|$))(?:(?:(?!(?:^|\/)\.{1,2}(?:\/|$)).)*?)\/?)$"#
    private static let anyHost = #"^(?:(?!\.)(?:(?:(?!(?:^|\/)\.).)*?)\/?)$"#

    @Test(arguments: [
        // example.org
        (#"^(?:^(?:example\.org)$)$"#, ["example.org"], ["www.example.org", "exampleXorg", "example.org.evil"]),
        // *.example.org
        (
            #"^(?:(?!\.)(?=.)[^/]*?\.example\.org\/?)$"#, ["a.example.org", "a.b.example.org"],
            ["example.org", "a.example.org.evil"]
        ),
        // **.example.org
        (
            #"^(?:(?!\.)(?:(?:(?!(?:^|\/)\.).)*?)\.example\.org\/?)$"#, ["a.b.example.org"],
            ["example.org", "evilexample.org"]
        ),
        // **.s3.*.amazonaws.com
        (
            #"^(?:(?!\.)[^/]*?\.s3\.[^/]*?\.amazonaws\.com)$"#, ["b.s3.eu-west-1.amazonaws.com"],
            ["b.s3.amazonaws.com", "b.s3.eu.amazonaws.com.evil"]
        ),
    ])
    func `hosts match as in Next js`(expression: String, matching: [String], others: [String]) throws {
        let pattern = try #require(Self.pattern(["hostname": expression, "pathname": Self.anyPath]))
        for host in matching { #expect(try pattern.matches(SourceURL("https://\(host)/a/b.jpg")), "\(host)") }
        for host in others { #expect(try !pattern.matches(SourceURL("https://\(host)/a/b.jpg")), "\(host)") }
    }

    @Test(arguments: [
        // /photos/**
        (
            #"^(?:\/photos(?:\/(?!\.{1,2}(?:\/|$))(?:(?:(?!(?:^|\/)\.{1,2}(?:\/|$)).)*?)|$))$"#,
            ["/photos", "/photos/a", "/photos/a/.b.jpg"], ["/photosa", "/a/photos/b", "/"]
        ),
        // /photos/*
        (#"^(?:\/photos\/(?!\.{1,2}(?:\/|$))(?=.)[^/]*?\/?)$"#, ["/photos/a.jpg"], ["/photos/a/b", "/photos/"]),
        // /a/**/b
        (
            #"^(?:\/a(?:\/(?!\.{1,2}(?:\/|$))(?:(?:(?!(?:^|\/)\.{1,2}(?:\/|$)).)*?)\/|\/|$)b)$"#,
            ["/a/b", "/a/x/b", "/a/x/y/b"], ["/a/x", "/a/bc"]
        ),
        // /p?.jpg
        (#"^(?:\/p[^/]\.jpg)$"#, ["/p1.jpg"], ["/p.jpg", "/p12.jpg"]),
        // /{a,b}/**
        (
            #"^(?:\/(a|b)(?:\/(?!\.{1,2}(?:\/|$))(?:(?:(?!(?:^|\/)\.{1,2}(?:\/|$)).)*?)|$))$"#, ["/a/x", "/b/x/y"],
            ["/c/x"]
        ),
        // /a+b/**
        (
            #"^(?:\/a\+b(?:\/(?!\.{1,2}(?:\/|$))(?:(?:(?!(?:^|\/)\.{1,2}(?:\/|$)).)*?)|$))$"#, ["/a+b/c"], ["/aab/c"]
        ),
    ])
    func `paths match as in Next js`(expression: String, matching: [String], others: [String]) throws {
        let pattern = try #require(Self.pattern(["hostname": Self.anyHost, "pathname": expression]))
        for path in matching { #expect(try pattern.matches(SourceURL("http://h" + path)), "\(path)") }
        for path in others { #expect(try !pattern.matches(SourceURL("http://h" + path)), "\(path)") }
    }

    @Test func `scheme, port and query must be equal`() throws {
        let members = ["hostname": Self.anyHost, "protocol": "https", "port": "", "search": "?v=1"]
        let pattern = try #require(Self.pattern(members))
        #expect(try pattern.matches(SourceURL("https://h/a?v=1")))
        for url in ["http://h/a?v=1", "https://h:8443/a?v=1", "https://h/a", "https://h/a?v=2"] {
            #expect(try !pattern.matches(SourceURL(url)), "\(url)")
        }
    }

    @Test func `expressions whose cost is not bounded are refused`() throws {
        for expression in [
            #"^(a+)+$"#, #"^(?:a|aa)*$"#, #"^.*$"#, #"^[a-z]{1,99}$"#, #"^("#,
            #"^(?:x.)*?x.)*?x.)*?x.)*?)$"#, #"^([^/]*?a[^/]*?a[^/]*?a[^/]*?)$"#,
        ] { #expect(Self.pattern(["hostname": expression]) == nil, "\(expression)") }
        #expect(Self.pattern(["pathname": Self.anyPath]) == nil, "a remote pattern without a host")
        #expect(Self.pattern(["hostname": Self.anyHost, "hash": "x"]) == nil, "an unknown member")
        // Three wildcards in one segment are allowed, but only for short texts.
        let costly = try #require(Self.pattern(["hostname": #"^(?:[^/]*?a[^/]*?a[^/]*?b)$"#]))
        #expect(try costly.matches(SourceURL("http://xaxaxb/")))
        #expect(try !costly.matches(SourceURL("http://\(String(repeating: "a", count: 70))b/")))
    }
}
