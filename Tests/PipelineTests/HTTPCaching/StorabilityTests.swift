import Pipeline
import Testing

struct StorabilityTests {
    @Test(arguments: [
        ("", 200, nil), ("max-age=60", 200, nil), ("no-store", 200, Storability.Refusal.noStore),
        ("no-store, max-age=60", 200, .noStore), ("private", 200, .private), ("private=\"x\"", 200, nil),
        ("no-cache", 200, nil), ("", 206, .status), ("max-age=60", 206, .status), ("", 304, .status),
        ("", 999, .noLifetime),
        ("", 404, nil), ("", 302, .noLifetime), ("max-age=60", 302, nil), ("", 500, .noLifetime),
        ("public", 500, nil), ("s-maxage=1", 500, nil), ("must-understand, no-store", 200, nil),
        ("must-understand, no-store, max-age=60", 418, .status), ("x-unknown=1, max-age=1", 200, nil),
    ])
    func `responses that may be stored in a shared cache (RFC 9111 §3)`(
        control: String, status: Int, expected: Storability.Refusal?
    ) {
        let response = stored(["Cache-Control": control], status: status)
        #expect(Storability.refusal(response: response, requestFields: []) == expected)
        #expect(Storability.mayStore(response: response, requestFields: []) == (expected == nil))
    }

    @Test func `a private cache stores private responses and ignores s-maxage (RFC 9111 §5.2.2.7, §5.2.2.10)`() {
        let own = caching(isPrivate: true)
        let response = stored(["Cache-Control": "private"], status: 500)
        #expect(Storability.mayStore(response: response, requestFields: [], configuration: own))
        let shared = stored(["Cache-Control": "s-maxage=9"], status: 500)
        #expect(!Storability.mayStore(response: shared, requestFields: [], configuration: own))
    }

    @Test(arguments: [
        ("", false), ("max-age=60", false), ("public", true), ("s-maxage=60", true), ("must-revalidate", true),
    ])
    func `answers to Authorization need permission in a shared cache (RFC 9111 §3.5)`(control: String, expected: Bool) {
        let response = stored(["Cache-Control": control])
        let fields = [HeaderField("authorization", "Basic eA==")]
        #expect(Storability.mayStore(response: response, requestFields: fields) == expected)
        let own = caching(isPrivate: true)
        #expect(Storability.mayStore(response: response, requestFields: fields, configuration: own))
    }

    @Test func `no-store in the request forbids it, Vary with a star too (RFC 9111 §5.2.1.5, §4.1)`() {
        let noStore = [HeaderField("Cache-Control", "no-store")]
        #expect(Storability.refusal(response: stored([:]), requestFields: noStore) == .noStore)
        let varying = stored(["Vary": "Accept, *"])
        #expect(Storability.refusal(response: varying, requestFields: []) == .varies)
    }
}
