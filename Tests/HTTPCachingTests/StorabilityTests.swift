import HTTPCaching
import Testing

struct StorabilityTests {
    private func refusal(
        _ control: String, status: Int = 200, request: KeyValuePairs<String, String> = [:],
        configuration: CachingConfiguration = caching()
    ) -> Storability.Refusal? {
        Storability.refusal(
            response: stored(["Cache-Control": control], status: status),
            requestFields: request.map { HeaderField($0.key, $0.value) }, configuration: configuration)
    }

    /// RFC 9111 §3, `Storability.refusal`: Every final status with freshness information is storable, except 206, 304,
    /// 412 and 416.
    @Test(arguments: 100...1000)
    func `every final status but 206, 304, 412 and 416 may be stored with a lifetime (RFC 9111 §3)`(status: Int) {
        let expected: Storability.Refusal? =
            switch status {
            case 206, 304, ..<200, 1000...: .status
            case 412, 416: .conditional
            default: nil
            }
        #expect(refusal("max-age=60", status: status) == expected)
    }

    /// RFC 9111 §3, RFC 9110 §15.1, `Storability.refusal`: Without freshness information, only 200, 203, 204, 300, 301,
    /// 308, 404, 405, 410, 414 and 501 are storable.
    @Test(arguments: 200...999)
    func `without a lifetime only statuses with a heuristic one are stored (RFC 9111 §3)`(status: Int) {
        let heuristic = [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501]
        #expect((refusal("", status: status) == nil) == heuristic.contains(status))
    }

    /// RFC 9111 §3, `Storability.refusal`: `public`, `max-age` and, in a shared cache, `s-maxage` make any status
    /// storable, even if the directive's value is invalid.
    @Test(arguments: ["public", "max-age=0", "s-maxage=1", "max-age=x"])
    func `each of these makes any status storable (RFC 9111 §3)`(control: String) {
        #expect(refusal(control, status: 302) == nil)
        #expect(refusal("x-unknown", status: 302) == .noLifetime)
    }

    /// RFC 9111 §3, `Storability.refusal`: `Expires` makes any status storable, even if it is in the past.
    @Test func `Expires makes any status storable, even one in the past (RFC 9111 §3)`() {
        let response = stored(["Expires": "0"], status: 302)
        #expect(Storability.refusal(response: response, requestFields: []) == nil)
    }

    /// RFC 9111 §5.2.2.5, `Storability.refusal`: `no-store` forbids storing.
    @Test(arguments: ["no-store", "No-Store", "max-age=60, no-store", "no-store=x"])
    func `no-store forbids storing (RFC 9111 §5.2.2.5)`(control: String) {
        #expect(refusal(control) == .noStore)
    }

    /// RFC 9111 §5.2.1.5, `Storability.refusal`: `no-store` in the request forbids storing.
    @Test func `no-store in the request forbids storing (RFC 9111 §5.2.1.5)`() {
        #expect(refusal("max-age=60", request: ["Cache-Control": "no-store"]) == .noStore)
        #expect(refusal("max-age=60", request: ["Cache-Control": "no-cache"]) == nil)
    }

    /// RFC 9111 §5.2.2.7, `Storability.refusal`: `private` without field names forbids storing in a shared cache.
    @Test func `private forbids storing in a shared cache only (RFC 9111 §5.2.2.7)`() {
        #expect(refusal("private, max-age=60") == .private)
        #expect(refusal("private, max-age=60", configuration: caching(isPrivate: true)) == nil)
        #expect(refusal("private=\"x\", max-age=60") == nil)
    }

    /// RFC 9111 §3, `Storability.refusal`: `private` makes any status storable in a private cache; `s-maxage` does not.
    @Test func `private makes any status storable in a private cache, s-maxage does not (RFC 9111 §3)`() {
        let own = caching(isPrivate: true)
        #expect(refusal("private", status: 500, configuration: own) == nil)
        #expect(refusal("s-maxage=9", status: 500, configuration: own) == .noLifetime)
    }

    /// RFC 9111 §5.2.2.4, `Storability.refusal`: `no-cache` does not forbid storing.
    @Test func `no-cache does not forbid storing (RFC 9111 §5.2.2.4)`() { #expect(refusal("no-cache") == nil) }

    /// RFC 9111 §5.2.2.3, `Storability.refusal`: `must-understand` overrides `no-store` for RFC 9110's statuses, and
    /// forbids storing others.
    @Test func `must-understand puts no-store aside for statuses known here (RFC 9111 §5.2.2.3)`() {
        #expect(refusal("must-understand, no-store, max-age=60") == nil)
        #expect(refusal("must-understand, no-store", status: 404) == nil)
        #expect(refusal("must-understand, no-store, max-age=60", status: 599) == .status)
        #expect(refusal("must-understand, max-age=60", status: 299) == .status)
    }

    /// RFC 9111 §3.5, `Storability.refusal`: After `Authorization` in the request, a shared cache stores only responses
    /// with `public`, `s-maxage` or `must-revalidate`.
    @Test(arguments: [
        ("", false), ("max-age=60", false), ("public", true), ("s-maxage=60", true), ("must-revalidate", true),
        ("proxy-revalidate", false),
    ])
    func `answers to Authorization need permission in a shared cache (RFC 9111 §3.5)`(control: String, expected: Bool) {
        let request: KeyValuePairs = ["authorization": "Basic eA=="]
        #expect((refusal(control, request: request) == nil) == expected)
        #expect(refusal(control, request: request, configuration: caching(isPrivate: true)) == nil)
    }

    /// RFC 9111 §4.1, `Storability.refusal`: `Vary: *` forbids storing.
    @Test func `Vary with a star forbids storing, since nothing would match (RFC 9111 §4.1)`() {
        let varying = stored(["Vary": "Accept, *"])
        #expect(Storability.refusal(response: varying, requestFields: []) == .varies)
    }

    /// RFC 9111 §7.3, `Storability.storedFields`: Choice: cookies have no effect; origins can send `private`.
    @Test func `cookies do not forbid storing (RFC 9111 §7.3)`() {
        let response = stored(["Cache-Control": "max-age=60", "Set-Cookie": "a=b"])
        #expect(Storability.refusal(response: response, requestFields: [HeaderField("Cookie", "a=b")]) == nil)
        #expect(Storability.storedFields(of: response.fields).first("set-cookie") == "a=b")
    }

    /// Project rule, `StoredResponse.assignedLifetime`: An assigned lifetime (from a hook or for a failure) makes any
    /// status storable unless a directive forbids storing.
    @Test func `an assigned lifetime makes any status storable, but what is forbidden`() {
        var response = stored([:], status: 503)
        #expect(Storability.refusal(response: response, requestFields: []) == .noLifetime)
        response.assignedLifetime = 1
        #expect(Storability.refusal(response: response, requestFields: []) == nil)
        #expect(
            Storability.refusal(response: response.with("Cache-Control", "no-store"), requestFields: []) == .noStore)
    }

    /// RFC 9111 §3.1, `Storability.storedFields`: Only end-to-end fields are stored.
    @Test func `fields of one connection are not stored (RFC 9111 §3.1)`() {
        let fields = [HeaderField("Connection", "a"), HeaderField("a", "1"), HeaderField("B", "2")]
        #expect(Storability.storedFields(of: fields) == [HeaderField("B", "2")])
        #expect(Storability.storedFields(of: fields, configuration: caching(isPrivate: true)) == [fields[2]])
    }

    /// RFC 9111 §5.2.2.7, `Storability.storedFields`: A shared cache does not store the fields that `private` names.
    @Test func `fields that private names are not stored in a shared cache (RFC 9111 §5.2.2.7)`() {
        let control = HeaderField("Cache-Control", "private=\"a, Set-Cookie\", max-age=9")
        let fields = [control, HeaderField("A", "1"), HeaderField("set-cookie", "s"), HeaderField("B", "2")]
        #expect(Storability.storedFields(of: fields) == [control, HeaderField("B", "2")])
        #expect(Storability.storedFields(of: fields, configuration: caching(isPrivate: true)) == fields)
    }

    /// RFC 9110 §5.3, `Storability.storedFields`: The order and repetition of fields are kept.
    @Test func `order and repeats of fields are kept (RFC 9110 §5.3)`() {
        let fields = [HeaderField("B", "1"), HeaderField("A", "2"), HeaderField("b", "1"), HeaderField("B", "3")]
        #expect(Storability.storedFields(of: fields) == fields)
    }
}
