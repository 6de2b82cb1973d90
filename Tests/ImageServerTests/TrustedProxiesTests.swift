import HTTPCaching
import Testing

@testable import ImageServer

@Suite struct TrustedProxiesTests {
    private func client(
        _ fields: (String, String)..., trusted: [String] = ["10.0.0.0/8", "fd00::/8"], peer: String? = "10.0.0.1"
    ) throws -> String? {
        try TrustedProxies(trusted).client(peer: peer, fields: fields.map { HeaderField($0.0, $0.1) })
    }

    @Test func `the last address that is not a trusted proxy's is the client's`() throws {
        #expect(try client(("X-Forwarded-For", "192.0.2.1")) == "192.0.2.1")
        #expect(try client(("x-forwarded-for", "1.1.1.1, 192.0.2.1, 10.9.9.9")) == "192.0.2.1")
        #expect(try client(("X-Forwarded-For", "1.1.1.1"), ("X-Forwarded-For", "192.0.2.1:4711")) == "192.0.2.1")
        #expect(try client(("X-Forwarded-For", "10.3.3.3, 10.2.2.2")) == "10.3.3.3")
        #expect(
            try client(("Forwarded", "for=1.1.1.1;proto=http, by=10.0.0.1; For=\"[2001:DB8::1]:80\"")) == "2001:db8::1")
        #expect(try client(("X-Forwarded-For", "192.0.2.1"), peer: "::ffff:10.0.0.1") == "192.0.2.1")
    }

    @Test(arguments: [
        ([("X-Forwarded-Proto", "https")], "10.0.0.1", true),
        ([("X-Forwarded-Proto", "https, http")], "10.0.0.1", false),
        ([("X-Forwarded-Proto", "http, HTTPS")], "10.0.0.1", true),
        ([("X-Forwarded-Proto", "https")], "192.0.2.9", false),
        ([("Forwarded", "for=192.0.2.1;proto=https")], "10.0.0.1", true), ([], "10.0.0.1", false),
        ([("Forwarded", "for=192.0.2.1;proto=http"), ("X-Forwarded-Proto", "https")], "10.0.0.1", false),
        ([("Forwarded", "for=192.0.2.1"), ("X-Forwarded-Proto", "https")], "10.0.0.1", true),
        ([("Forwarded", "for=\"x;proto=https")], "10.0.0.1", false), ([("X-Forwarded-Proto", "")], "10.0.0.1", false),
    ])
    func `a trusted proxy says whether its client used https`(fields: [(String, String)], peer: String, isSecure: Bool)
        throws
    {
        let proxies = try TrustedProxies(["10.0.0.0/8"])
        #expect(proxies.isSecure(peer: peer, fields: fields.map { HeaderField($0.0, $0.1) }) == isSecure)
        #expect(!TrustedProxies.none.isSecure(peer: peer, fields: fields.map { HeaderField($0.0, $0.1) }))
    }

    @Test func `fields of a peer that is not trusted do not count`() throws {
        #expect(try client(("X-Forwarded-For", "1.1.1.1"), peer: "192.0.2.9") == "192.0.2.9")
        #expect(try client(("Forwarded", "for=1.1.1.1"), trusted: []) == "10.0.0.1")
        #expect(TrustedProxies.none.client(peer: nil, fields: [HeaderField("Forwarded", "for=1.1.1.1")]) == nil)
        #expect(try client(("X-Forwarded-For", "1.1.1.1"), peer: nil) == nil)
        #expect(try client(("X-Forwarded-For", "1.1.1.1"), trusted: ["unix"], peer: nil) == "1.1.1.1")
    }

    @Test(arguments: [
        ("X-Forwarded-For", "1.1.1.1, unknown"), ("X-Forwarded-For", ""), ("X-Forwarded-For", "1.1.1.1, x\u{0}y"),
        ("Forwarded", "for=1.1.1.1, for=_hidden"), ("Forwarded", "for=1.1.1.1, by=10.0.0.2"),
        // The proxy appended the last part; the client left a quotation mark open.
        ("Forwarded", "for=1.1.1.1;x=\", for=192.0.2.1"), ("Forwarded", "for=\"1.1.1.1, for=192.0.2.1"),
    ])
    func `an address that is hidden or malformed leaves the proxy's`(_ name: String, _ value: String) throws {
        #expect(try client((name, value)) == "10.0.0.1")
    }

    @Test func `two fields that disagree do not count, since a client may have written one`() throws {
        #expect(try client(("Forwarded", "for=1.1.1.1"), ("X-Forwarded-For", "192.0.2.1")) == "10.0.0.1")
        #expect(try client(("Forwarded", "for=192.0.2.1"), ("X-Forwarded-For", "192.0.2.1")) == "192.0.2.1")
    }

    @Test(arguments: ["", "h", "10.0.0.0/33", "10.0.0.1:80"])
    func `what is no address or block is refused`(_ text: String) {
        #expect(throws: TrustedProxies.Malformed.self) { try TrustedProxies([text]) }
    }
}
