@testable import HTTPCaching
@testable import PipelineFetching
@testable import Pipeline
import Testing

struct SourceURLTests {
    @Test(arguments: [
        ("HTTP://Example.COM", "http://example.com/"),
        ("http://example.com:80/a", "http://example.com/a"),
        ("https://example.com:443/a", "https://example.com/a"),
        ("https://example.com:8443/a", "https://example.com:8443/a"),
        ("http://example.com:/a", "http://example.com/a"),
        ("http://example.com/a/./b/../c", "http://example.com/a/c"),
        ("http://example.com/../../a/..", "http://example.com/"),
        ("http://example.com/a/.", "http://example.com/a/"),
        ("http://example.com/%7euser/%2e%2e/%c3%a9", "http://example.com/%C3%A9"),
        ("http://example.com/a%2fb", "http://example.com/a%2Fb"),
        ("http://example.com/100%", "http://example.com/100%25"),
        ("http://example.com/a b/ä", "http://example.com/a%20b/%C3%A4"),
        ("http://example.com?x=%7e&y=/../z", "http://example.com/?x=%7e&y=/../z"),
        ("http://example.com/a?", "http://example.com/a?"),
        ("http://example.com/a?b#c?d", "http://example.com/a?b"),
        ("http://user:pass@example.com/a", "http://example.com/a"),
        ("http://a@b@example.com/a", "http://example.com/a"),
        ("http://[2001:DB8:0:0::1]:80/", "http://[2001:db8::1]/"),
        ("http://example.com//a//b", "http://example.com//a//b"),
    ])
    func `a URL has one normal form (RFC 3986 §6.2.2, §6.2.3)`(text: String, expected: String) throws {
        let url = try SourceURL(text)
        #expect(url.normalized == expected)
        #expect(try SourceURL(expected).normalized == expected)
    }

    @Test(arguments: [
        ("GET http://h/a?sig=S: 404", "GET http://h/a?sig=…: 404"), ("http://h/a?sig=S&b=1", "http://h/a?sig=…&b=1"),
        (#"{"m":"a?sig=S","n":1}"#, #"{"m":"a?sig=…","n":1}"#), (#"a?token=S\"b"#, #"a?token=…\"b"#),
        ("`http://h/a;sig=S`; why?", "`http://h/a;sig=…`; why?"), ("a?b=sig=c", "a?b=sig=c"),
        ("?u=http%3A%2F%2Fu%3AS%40h%2Fa%40b", "?u=http%3A%2F%2F…%40h%2Fa%40b"),
        ("/http://u:S@h/x http://h/a@b", "/http://…@h/x http://h/a@b"),
        ("?u=h%253Fsig%253DS%2526a%253D1%26b", "?u=h%253Fsig%253D…%2526a%253D1%26b"),
        ("?%252573ig=S", "?%252573ig=…"), ("?sig", "?sig"), ("?sig=", "?sig=…"), ("%", "%"), ("?a%3", "?a%3"),
    ])
    func `secrets are hidden within URLs, and the text around them stays`(text: String, shown: String) {
        #expect(SourceURL.hidingSecrets(text) == shown)
    }

    @Test(arguments: [
        "", "example.com/a", "ftp://example.com/", "file:///etc/passwd", "http:/a", "http:///a", "http://:80/",
        "http://example.com:0/", "http://example.com:65536/", "http://example.com:8x/", "http://exa mple.com/",
        "http://exämple.com/", "http://[::1/", "http://[::zz]/", "http://[::1]x/", "http://[127.0.0.1]/",
        "http://example.com\\@evil/", "http://a%2eb/", "http://a..b/", "http://example.com/a\nb", "data:image/png,x",
    ])
    func `what is no http or https URL is refused`(text: String) {
        #expect(throws: SourceError.self) { try SourceURL(text) }
    }

    @Test func `an over-long URL is refused and not repeated in full`() {
        let error = #expect(throws: SourceError.self) {
            try SourceURL("http://example.com/" + String(repeating: "a", count: 9000))
        }
        #expect((error?.message.utf8.count ?? 0) < 300)
    }

    @Test func `credentials are in no message`() throws {
        let error = #expect(throws: SourceError.self) { try SourceURL("ftp://user:secret@example.com/") }
        #expect(error?.message.contains("secret") == false)
        let url = try SourceURL("http://user:secret@example.com/")
        #expect(!"\(url) \(url.redacted) \(url.normalized)".contains("secret"))
        #expect(url.authorization == HeaderField("Authorization", "Basic dXNlcjpzZWNyZXQ="))
    }

    @Test(arguments: [
        ("g", "http://a/b/c/g"), ("./g", "http://a/b/c/g"), ("g/", "http://a/b/c/g/"), ("/g", "http://a/g"),
        ("//g", "http://g/"), ("?y", "http://a/b/c/d;p?y"), ("g?y", "http://a/b/c/g?y"), ("#s", "http://a/b/c/d;p?q"),
        ("g;x=1/../y", "http://a/b/c/y"), ("", "http://a/b/c/d;p?q"), (".", "http://a/b/c/"), ("..", "http://a/b/"),
        ("../g", "http://a/b/g"), ("../../../g", "http://a/g"), ("https://h/x", "https://h/x"),
        ("http://u:p@h/x", "http://h/x"),
    ])
    func `references resolve as RFC 3986 §5.4 has them`(reference: String, expected: String) throws {
        #expect(try SourceURL("http://a/b/c/d;p?q").resolving(reference).normalized == expected)
    }
}
