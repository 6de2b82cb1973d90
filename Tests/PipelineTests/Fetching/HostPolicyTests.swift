@testable import HTTPCaching
@testable import PipelineFetching
import TestSupport
import Testing

@testable import Pipeline

struct HostPolicyTests {
    private static func admits(_ policy: HostPolicy, _ url: String) throws -> Bool {
        policy.refusal(of: try SourceURL(url)) == nil
    }

    @Test(arguments: [
        ("example.org", "http://example.org/a", true), ("example.org", "https://EXAMPLE.ORG:8443/", true),
        ("example.org", "http://example.org./", true), ("Example.ORG.", "http://example.org/", true),
        ("example.org", "http://a.example.org/", false), ("example.org", "http://example.org.evil.net/", false),
        ("example.org", "http://example.org@evil.net/", false), ("example.org", "http://evil.net/example.org", false),
        ("example.org", "http://evilexample.org/", false), ("example.org", "http://example.orgx/", false),
        ("*.example.org", "http://a.example.org/", true), ("*.example.org", "http://a.b.example.org./", true),
        ("*.example.org", "http://example.org/", false), ("*.example.org", "http://evilexample.org/", false),
        (".example.org", "http://example.org/", true), (".example.org", "http://a.example.org/", true),
        (".example.org", "http://evilexample.org/", false), ("*", "http://anything/", true),
        ("https://*", "http://anything/", false), ("https://example.org", "https://example.org/", true),
        ("https://example.org", "http://example.org/", false), ("example.org:8080", "http://example.org:8080/", true),
        ("example.org:80", "http://example.org/", true), ("example.org:8080", "http://example.org/", false),
        ("*:8080", "http://example.org:8080/", true), ("xn--mnchen-3ya.de", "http://XN--MNCHEN-3ya.de/", true),
        ("example.org/img", "http://example.org/img", true), ("example.org/img", "http://example.org/img/a.jpg", true),
        ("example.org/img", "http://example.org/img?x=1", true),
        ("example.org/img", "http://example.org/images/a.jpg", false),
        ("example.org/img/", "http://example.org/img/a.jpg", true),
        ("example.org/img/", "http://example.org/img/../secret", false),
        ("example.org/img/", "http://example.org/img/%2e%2e/secret", false),
        ("example.org/img/", "http://example.org/img/..%2Fsecret", false),
        ("example.org/img/", "http://example.org/img/..%5Csecret", false),
        ("example.org/img/", "http://example.org/img/%252e%252e/secret", false),
        ("example.org/img/", "http://example.org/img/..;a/secret", false),
        ("example.org/img/", "http://example.org/img/a%20b/%C3%A9.jpg", true),
        ("example.org/%7Eme", "http://example.org/~me/a", true),
        ("127.0.0.1", "http://0x7f.1/", true), ("127.0.0.1", "http://2130706433/", true),
        ("0177.1", "http://127.0.0.1/", true), ("127.0.0.1", "http://[::ffff:127.0.0.1]/", true),
        ("[::1]", "http://[0:0::1]:99/", true), ("[::1]:99", "http://[::1]:98/", false),
        ("[2001:DB8::1]:99/a", "http://[2001:db8::1]:99/a/b", true),
    ])
    func `an allow list holds what it says and nothing that only looks like it`(
        pattern: String, url: String, expected: Bool
    ) throws {
        #expect(try Self.admits(HostPolicy(allow: [pattern]), url) == expected)
    }

    @Test(arguments: [
        ("example.org", "http://example.org./"), ("example.org", "http://user@EXAMPLE.org:8080/x"),
        (".example.org", "https://a.b.example.org/"), ("example.org/private", "http://example.org/%70rivate/a"),
        ("example.org/private", "http://example.org/a/../private"),
        ("example.org/private", "http://example.org//private/a"),
        ("example.org/private", "http://example.org/a%2F..%2Fprivate/a"),
        ("example.org/private", "http://example.org/%2570rivate"),
        ("example.org/private", "http://example.org/private;v=1/a"), ("127.0.0.1", "http://017700000001/"),
        ("127.0.0.1", "http://[::ffff:7f00:1]/"),
    ])
    func `a deny list is not got around, and wins`(pattern: String, url: String) throws {
        let policy = try HostPolicy(allow: ["*"], deny: [pattern])
        let isAdmitted = try Self.admits(policy, url)
        #expect(!isAdmitted)
        #expect(try Self.admits(policy, "http://other.example/private"))
    }

    @Test(arguments: [
        "", "ftp://example.org", "user@example.org", "example.org?x", "example.org#x", "exa mple.org", "*.*.org",
        "a*.org",
        "*example.org", "example.org:0", "example.org:99999", "exämple.org", "[::1", "*.127.0.0.1", ".[::1]", "a..b",
        "http://",
        "example.org\\x", "example.org:8o",
    ])
    func `what is no pattern is an error`(text: String) {
        #expect(throws: InvalidSetting.self) { try HostPolicy(allow: [text]) }
    }

    @Test func `an empty policy admits everything`() throws {
        #expect(try Self.admits(HostPolicy(), "http://anything.example/"))
    }

    @Test func `a refused source is never asked for, at first or after a redirect`() async throws {
        let inside = try LoopbackOrigin { _ in .response(200) }
        defer { inside.stop() }
        let target = inside.url("/secret")
        let policy = try HostPolicy(deny: ["127.0.0.1:\(inside.port)"])
        try await withOrigin {
            $0.sources = policy
        } handler: { _ in
            .response(302, ["Location": target])
        } _: { origin, transport in
            for url in [target, origin.url("/")] {
                let error = try await failure(transport, url)
                #expect(error.code == .refusedSource)
                #expect(error.message.contains("sources.deny"))
            }
            #expect(inside.connections == 0 && origin.requests.count == 1)
        }
    }

    @Test func `what was stored before a source was refused is refused too`() async throws {
        let good = sample("originals/night-tiny.jpg")
        let bench = try PipelineBench { _ in
            .response(200, ["Content-Type": "image/jpeg", "Cache-Control": "max-age=600"], body: good)
        }
        defer { bench.origin.stop() }
        let open = try bench.pipeline()
        #expect(try await open.respond(to: bench.request("/a.jpg", nil)).bytes == good)
        await open.shutdown()
        let policy = try HostPolicy(allow: ["example.org"])
        let closed = try bench.pipeline { $0.fetch.sources = policy }
        let error = await refusal(closed, try bench.request("/a.jpg", nil))
        #expect(error?.code == .sourceRefused && error?.message.contains("sources.allow") == true)
        await closed.shutdown()
    }
}

struct HostSettingsTests {
    @Test func `credentials and fields reach their own origin and no other`() async throws {
        let other = try LoopbackOrigin { _ in .response(200) }
        defer { other.stop() }
        let origin = try LoopbackOrigin { request in
            request.path == "/away" ? .response(302, ["Location": other.url("/")]) : .response(200)
        }
        defer { origin.stop() }
        var configuration = FetchConfiguration()
        configuration.allowPrivateAddresses = .all
        var settings = HostSettings()
        settings.authenticate(user: "us", password: "p:w")
        settings.fields = [HeaderField("X-Key", "k")]
        configuration.hosts[try HostOrigin("http://127.0.0.1:\(origin.port)")] = settings
        let transport = CurlTransport(configuration)
        defer { transport.shutdown() }
        _ = try await transport.fetch(FetchRequest(url: SourceURL(origin.url("/away"))))
        #expect(origin.requests.map { $0["authorization"] } == ["Basic dXM6cDp3"])
        #expect(origin.requests.map { $0["x-key"] } == ["k"])
        #expect(other.requests.map { $0["authorization"] } == [nil] && other.requests.map { $0["x-key"] } == [nil])
        // A request's own come first.
        _ = try await transport.fetch(
            FetchRequest(
                url: SourceURL(origin.url("/")),
                fields: [HeaderField("authorization", "Basic own"), HeaderField("x-key", "own")]))
        #expect(origin.requests.last?["authorization"] == "Basic own" && origin.requests.last?["x-key"] == "own")
    }

    @Test func `an entry without scheme is for https only`() async throws {
        let origin = try LoopbackOrigin { _ in .response(200) }
        defer { origin.stop() }
        var configuration = FetchConfiguration()
        configuration.allowPrivateAddresses = .all
        var settings = HostSettings()
        settings.authorization = "Bearer t"
        configuration.hosts[try HostOrigin("127.0.0.1:\(origin.port)")] = settings
        let transport = CurlTransport(configuration)
        defer { transport.shutdown() }
        _ = try await transport.fetch(FetchRequest(url: SourceURL(origin.url("/"))))
        #expect(origin.requests.first?["authorization"] == nil)
        #expect(settings.additions(to: []) == [HeaderField("Authorization", "Bearer t")])
    }

    @Test(arguments: [
        ("example.org", "https://example.org:443"), ("EXAMPLE.org.", "https://example.org:443"),
        ("http://example.org", "http://example.org:80"), ("example.org:8443", "https://example.org:8443"),
        ("[::1]:9", "https://[::1]:9"), ("http://0x7f.1", "http://127.0.0.1:80"),
    ])
    func `an entry names one origin`(text: String, origin: String) throws {
        #expect(try HostOrigin(text).description == origin)
    }

    @Test(arguments: ["", "*", "*.example.org", "example.org/a", "user@example.org", "ftp://a", "example.org?", "a b"])
    func `what names no origin is an error`(text: String) {
        #expect(throws: InvalidSetting.self) { try HostOrigin(text) }
    }

    @Test func `secrets do not show`() throws {
        var settings = HostSettings()
        settings.authenticate(user: "u", password: "geheim")
        var configuration = FetchConfiguration()
        configuration.hosts[try HostOrigin("example.org")] = settings
        var text = ""
        dump(configuration, to: &text)
        #expect(!"\(configuration)\(text)\(settings)".contains("geheim"))
    }
}
