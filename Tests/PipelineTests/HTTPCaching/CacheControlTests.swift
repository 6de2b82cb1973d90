@testable import Pipeline
import Testing

struct CacheControlTests {
    private func control(_ lines: String...) -> CacheControl {
        CacheControl(fields: lines.map { HeaderField("cache-CONTROL", $0) })
    }

    @Test func `directives of all lines are read, names in any case (RFC 9111 §5.2)`() {
        let control = control("Max-Age=60, PRIVATE", "no-cache=\"set-cookie, x\", , unknown=\"a\\\"b\"")
        #expect(control.directives.map(\.name) == ["max-age", "private", "no-cache", "unknown"])
        #expect(control.directives.map(\.argument) == ["60", nil, "set-cookie, x", "a\"b"])
        #expect(control.has("private") && !control.has("public"))
    }

    @Test(arguments: [
        ("max-age=0", CacheControl.Seconds.value(0)), ("max-age=\"60\"", .value(60)), ("max-age=0060", .value(60)),
        ("max-age=2147483648", .value(1 << 31)), ("max-age=99999999999999999999999", .value(1 << 31)),
        ("max-age=60, max-age=60", .value(60)), ("max-age=60, max-age=0", .invalid), ("max-age", .invalid),
        ("max-age=", .invalid), ("max-age=-1", .invalid), ("max-age=1.5", .invalid), ("max-age=60s", .invalid),
        ("max-age =60", .invalid), ("max-age= 60", .invalid), ("max-age='60'", .invalid), ("x-max-age=60", .absent),
        ("x=\"max-age=60\"", .absent),
    ])
    func `seconds are digits alone, at most 2³¹ (RFC 9111 §1.2.2, §4.2.1)`(
        line: String, expected: CacheControl.Seconds
    ) {
        #expect(control(line).seconds("max-age") == expected)
    }

    @Test func `hop-by-hop fields and what Connection names are dropped (RFC 9110 §7.6.1, RFC 9111 §3.1)`() {
        let names = ["Connection", "Keep-Alive", "TE", "Transfer-Encoding", "Upgrade", "Proxy-Authenticate", "X-Hop"]
        let fields = names.map { HeaderField($0, $0 == "Connection" ? "close, x-hop" : "v") }
        #expect((fields + [HeaderField("ETag", "\"a\"")]).endToEnd() == [HeaderField("ETag", "\"a\"")])
    }
}
