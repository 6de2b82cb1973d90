import HTTPCaching
import Testing

struct CacheControlTests {
    private func control(_ lines: String...) -> CacheControl {
        CacheControl(fields: lines.map { HeaderField("cache-CONTROL", $0) })
    }

    /// RFC 9111 §5.2, `CacheControl.directives`: All lines are read. Names are case-insensitive, arguments are tokens
    /// or quoted strings, and unknown directives are ignored.
    @Test func `directives of all lines are read, names in any case (RFC 9111 §5.2)`() {
        let control = control("Max-Age=60, PRIVATE", "no-cache=\"set-cookie, x\", , unknown=\"a\\\"b\"")
        #expect(control.directives.map(\.name) == ["max-age", "private", "no-cache", "unknown"])
        #expect(control.directives.map(\.argument) == ["60", nil, "set-cookie, x", "a\"b"])
        #expect(control.has("private") && !control.has("public"))
    }

    /// RFC 9111 §1.2.2, §4.2.1, `CacheControl.seconds`: Delta-seconds are digits, optionally quoted. Values above 2³¹
    /// become 2³¹, and contradictory repetitions are invalid.
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

    /// RFC 9110 §5.6.4, `CacheControl.directives`: A malformed argument is kept as written.
    @Test func `an argument is a token or a quoted string, malformed ones stay as they are (RFC 9110 §5.6.4)`() {
        #expect(control("a=\"b\\\\c\", d=\"e\"f, g=").directives.map(\.argument) == ["b\\c", "\"e\"f", ""])
    }

    /// RFC 9111 §5.2.2.4, `CacheControl.forbidsReuse`: `no-cache` applies to the fields that it names. Without names,
    /// or if one is malformed or governs caching, it applies to the complete response.
    @Test(arguments: [
        ("no-cache", true, []), ("no-cache=\"a, B\"", false, ["a", "b"]), ("no-cache=a", false, ["a"]),
        ("no-cache=\"a\", no-cache=\"b\"", false, ["a", "b"]), ("no-cache=\"a\", no-cache", true, []),
        ("no-cache=\"\"", true, []), ("no-cache=\"a b\"", true, []), ("no-cache=\"a", true, []),
        ("no-cache=\"vary\"", true, []), ("max-age=1", false, []),
    ])
    func `no-cache with names covers those fields, else the whole (RFC 9111 §5.2.2.4)`(
        line: String, isWhole: Bool, names: [String]
    ) {
        #expect(control(line).forbidsReuse == isWhole)
        #expect(control(line).fieldsToValidate == Set(names))
    }

    /// RFC 9111 §5.2.2.7, `CacheControl.privateFields`: `private` applies to the fields that it names or to the
    /// complete response, like `no-cache`.
    @Test(arguments: [
        ("private", true, []), ("private=\"Set-Cookie\"", false, ["set-cookie"]), ("private=\"\"", true, []),
        ("private=\"cache-control\"", true, []), ("public", false, []),
    ])
    func `private with names covers those fields, else the whole (RFC 9111 §5.2.2.7)`(
        line: String, isWhole: Bool, names: [String]
    ) {
        #expect(control(line).isPrivate == isWhole)
        #expect(control(line).privateFields == Set(names))
    }
}
