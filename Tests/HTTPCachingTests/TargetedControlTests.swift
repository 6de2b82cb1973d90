import HTTPCaching
import Testing

struct TargetedControlTests {
    private func governing(
        _ fields: KeyValuePairs<String, String>, _ configuration: CachingConfiguration = caching()
    ) -> GoverningDirectives {
        GoverningDirectives(fields: stored(fields).fields, configuration: configuration)
    }

    /// RFC 9213 §2.2, `GoverningDirectives.control`: A targeted field replaces `Cache-Control`.
    @Test func `a targeted field governs in place of Cache-Control (RFC 9213 §2.2)`() {
        let both = governing(["Cache-Control": "no-store", "cdn-cache-CONTROL": "max-age=60, must-revalidate"])
        #expect(both.isTargeted && both.fieldName == "cdn-cache-control")
        #expect(both.control.seconds("max-age") == .value(60) && both.control.has("must-revalidate"))
        #expect(!both.control.has("no-store"))
        #expect(!governing(["Cache-Control": "no-store"]).isTargeted)
    }

    /// RFC 9213 §2.2, `GoverningDirectives.isTargeted`: A targeted field replaces `Expires`.
    @Test func `a targeted field puts Expires aside too (RFC 9213 §2.2)`() {
        let later = HTTPDate.text(unixSeconds: Int(epoch) + 30)
        let response = stored(["CDN-Cache-Control": "must-revalidate", "Expires": later])
        #expect(Freshness.lifetime(of: response) == FreshnessLifetime(seconds: 0, basis: .none))
        let long = stored(["CDN-Cache-Control": "max-age=60", "Expires": "0", "Cache-Control": "max-age=1"])
        #expect(Freshness.lifetime(of: long) == FreshnessLifetime(seconds: 60, basis: .maxAge))
        let unknown = stored(["CDN-Cache-Control": "none", "Expires": later], status: 302)
        #expect(Storability.refusal(response: unknown, requestFields: []) == .noLifetime)
    }

    /// RFC 9213 §2.2, `Storability.refusal`: A targeted field determines whether a response is stored.
    @Test(arguments: [("no-store", Storability.Refusal.noStore), ("private", .private), ("max-age=9", nil)])
    func `a targeted field decides on storing (RFC 9213 §2.2)`(value: String, expected: Storability.Refusal?) {
        let response = stored(["CDN-Cache-Control": value, "Cache-Control": "max-age=10000"])
        #expect(Storability.refusal(response: response, requestFields: []) == expected)
        let opposite = stored(["CDN-Cache-Control": "max-age=60", "Cache-Control": value])
        #expect(Storability.refusal(response: opposite, requestFields: []) == nil)
    }

    /// RFC 9213 §2.2, `Reuse.decision`: A targeted field determines reuse and staleness.
    @Test func `a targeted field decides on reuse and on staleness (RFC 9213 §2.2)`() {
        let validated = stored(["CDN-Cache-Control": "no-cache", "Cache-Control": "max-age=60", "ETag": "\"a\""])
        #expect(Reuse.decision(stored: validated, now: epoch, policy: .protocol) == .mustValidate)
        let strict = stored(["CDN-Cache-Control": "max-age=1, must-revalidate"])
        #expect(!Reuse.mayServeStale(strict, after: .noResponse, now: epoch + 9))
        let lax = stored(["CDN-Cache-Control": "max-age=1", "Cache-Control": "must-revalidate"])
        #expect(Reuse.mayServeStale(lax, after: .noResponse, now: epoch + 9))
        let partly = stored(["CDN-Cache-Control": "max-age=1, no-cache=\"a\"", "A": "1"])
        #expect(Reuse.fields(of: partly, wasValidated: false).first("a") == nil)
    }

    /// RFC 9213 §2.1, `GoverningDirectives.fieldName`: A targeted field that is empty or not a dictionary is ignored.
    @Test(arguments: [
        "", "max-age=10000, &&&&&", "max-age =100", "max-age= 100", "Max-Age=100", "max-age=100,", "max-age=\"1",
        "a=?2",
        String(repeating: "a=1,", count: 512) + "b",
        "a=(1", "a=1.2345", "a=:x", "max-age=1;;", "a=1 b", "a=1234567890123456", "a=\"\u{e9}\"", "a=", "1=2",
    ])
    func `an invalid or empty targeted field counts as absent (RFC 9213 §2.1)`(value: String) {
        let found = governing(["CDN-Cache-Control": value, "Cache-Control": "max-age=1"])
        #expect(!found.isTargeted && found.control.seconds("max-age") == .value(1))
    }

    /// RFC 8941 §3.2, §3.3, `GoverningDirectives.control`: Members of every type are read; all parameters, and members
    /// with the value `?0`, are ignored.
    @Test func `members of every type are read (RFC 8941 §3.2, §3.3)`() {
        let value =
            "a;p=1, b=5, c=tok/en:, d=\"x \\\"y\\\"\", e=(1 \"2\" z;q), f=:YQ==:, g=?0, h=?1, *i.j-k_l=1.5 ,\tb=6"
        let control = governing(["CDN-Cache-Control": value]).control
        let found = control.directives.map { "\($0.name)=\($0.argument ?? "-")" }
        #expect(found == ["a=-", "b=6", "c=tok/en:", "d=x \"y\"", "e=()", "f=()", "h=-", "*i.j-k_l=()"])
        #expect(governing(["CDN-Cache-Control": "x=() , y=( 1 )"]).isTargeted)
    }

    /// RFC 9213 §2.1, `GoverningDirectives.control`: A number of seconds that is not an integer means stale.
    @Test(arguments: ["\"10000\"", "1.0", "-5", "?1", "tok", "(1)"])
    func `seconds of another type than integer mean stale (RFC 9213 §2.1)`(value: String) {
        let response = stored(["CDN-Cache-Control": "max-age=\(value)"])
        #expect(Freshness.lifetime(of: response).seconds == 0)
    }

    /// RFC 8941 §4.2, `GoverningDirectives.control`: Several lines form one dictionary; a later member replaces an
    /// earlier one.
    @Test func `several lines of a targeted field are one dictionary, a later member replaces (RFC 8941 §4.2)`() {
        let found = governing(["CDN-Cache-Control": "max-age=1, no-store", "cdn-cache-control": "max-age=2"])
        #expect(found.control.seconds("max-age") == .value(2) && found.control.has("no-store"))
    }

    /// RFC 9213 §2.2, `CachingConfiguration.targetedFields`: The first valid field of the target list is used.
    @Test func `the first valid field of the target list governs (RFC 9213 §2.2)`() {
        var configuration = caching()
        configuration.targetedFields = ["Own-Cache-Control", "CDN-Cache-Control"]
        let fields: KeyValuePairs = ["CDN-Cache-Control": "max-age=1", "Own-Cache-Control": "max-age=2"]
        #expect(governing(fields, configuration).fieldName == "own-cache-control")
        let broken: KeyValuePairs = ["CDN-Cache-Control": "max-age=1", "Own-Cache-Control": "&"]
        #expect(governing(broken, configuration).fieldName == "cdn-cache-control")
        configuration.targetedFields = []
        #expect(!governing(fields, configuration).isTargeted)
    }

    /// RFC 9213 §3.1, `GoverningDirectives.isTargeted`: A private cache ignores targeted fields.
    @Test func `a private cache has no targeted fields (RFC 9213 §3.1)`() {
        let found = governing(["CDN-Cache-Control": "max-age=1"], caching(isPrivate: true))
        #expect(!found.isTargeted)
    }
}
