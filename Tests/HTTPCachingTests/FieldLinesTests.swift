@testable import HTTPCaching
import Testing

struct FieldLinesTests {
    /// RFC 9110 §5.6.1, `FieldLines.members`: Lists are split at commas outside quoted strings; empty members are
    /// skipped.
    @Test(arguments: [
        ("a, b", ["a", "b"]), ("a,b", ["a", "b"]), (" a ,\tb ", ["a", "b"]), (",, a,,", ["a"]), ("", []),
        ("x=\"a, b\", c", ["x=\"a, b\"", "c"]), ("\"a\\\", b\", c", ["\"a\\\", b\"", "c"]),
    ])
    func `lists split at commas outside quotes, empty members do not count (RFC 9110 §5.6.1)`(
        value: String, expected: [String]
    ) {
        #expect(FieldLines.members(of: value) == expected)
    }

    /// RFC 9110 §5.6.4, `FieldLines.members`: Choice: an unclosed quote is an ordinary character.
    @Test func `a quote that is never closed hides nothing (RFC 9110 §5.6.4)`() {
        #expect(FieldLines.members(of: "x=\"a, no-store") == ["x=\"a", "no-store"])
        #expect(FieldLines.members(of: "x=\"a\", y=\"b, \"c\\\", d") == ["x=\"a\"", "y=\"b, \"c\\\"", "d"])
        #expect(FieldLines.members(of: "x=\"a\\\", b\", c") == ["x=\"a\\\", b\"", "c"])
    }

    /// RFC 9110 §5.1, `FieldLines.isSameName`: Names are compared without regard to ASCII case.
    @Test func `names compare without regard to ASCII case and no other (RFC 9110 §5.1)`() {
        #expect([HeaderField("cAchE-control", "x")].first("Cache-Control") == "x")
        #expect([HeaderField("\u{212A}eep-Alive", "x")].first("keep-alive") == nil)
        #expect(FieldLines.lowercased("X-\u{212A}É") == "x-\u{212A}É")
    }

    /// RFC 9110 §5.3, `FieldLines.members`: Lines with the same name form one list, in order.
    @Test func `lines of one name combine in order (RFC 9110 §5.3)`() {
        let fields = [HeaderField("A", "1"), HeaderField("B", "2"), HeaderField("a", "3")]
        #expect(fields.combined("a") == "1, 3" && fields.combined("c") == nil)
    }

    /// RFC 9110 §7.6.1, RFC 9111 §3.1, `FieldLines.hopByHop`: `Connection`, the fields that it names, and other
    /// hop-by-hop fields are neither forwarded nor stored.
    @Test func `hop-by-hop fields and what Connection names are dropped (RFC 9110 §7.6.1, RFC 9111 §3.1)`() {
        let names = [
            "Connection", "Keep-Alive", "Proxy-Connection", "TE", "Trailer", "Transfer-Encoding", "Upgrade",
            "Proxy-Authenticate", "Proxy-Authentication-Info", "Proxy-Authorization", "X-Hop", "x-HOP2",
        ]
        let fields = names.map { HeaderField($0, $0 == "Connection" ? "close, x-hop, X-Hop2" : "v") }
        #expect((fields + [HeaderField("ETag", "\"a\"")]).endToEnd() == [HeaderField("ETag", "\"a\"")])
    }

    /// RFC 9110 §7.6.1, `FieldLines.governsCaching`: Fields that govern caching are kept even if `Connection` names
    /// them.
    @Test func `Connection cannot name what governs caching (RFC 9110 §7.6.1)`() {
        let kept = ["Cache-Control", "Vary", "Expires", "Pragma", "Age", "Date"].map { HeaderField($0, "v") }
        let named = HeaderField("Connection", "cache-control, Vary, expires, pragma, age, date")
        #expect(([named] + kept).endToEnd() == kept)
    }
}
