import HTTPCaching
import Testing

/// The effect of redirects on the response they led to.
struct RedirectsTests {
    private func redirect(_ status: Int, _ control: String = "", vary: String = "") -> StoredResponse {
        stored(["Cache-Control": control, "Vary": vary], status: status)
    }

    private func limit(_ redirects: StoredResponse...) -> Double? {
        Redirects.lifetimeLimit(of: stored(["Age": "5"]), after: redirects)
    }

    /// RFC 9111 §4.2, `Redirects.lifetimeLimit`: Each redirect's lifetime limits the lifetime of the response.
    @Test func `what they led to lives no longer than the shortest-lived redirect (RFC 9111 §4.2)`() {
        #expect(limit(redirect(302, "max-age=60"), redirect(301, "max-age=20")) == 25)
        #expect(limit() == nil)
    }

    /// RFC 9110 §15.4, `Redirects.lifetimeLimit`: A temporary redirect without a lifetime makes the response stale.
    @Test(arguments: [302, 303, 307])
    func `a temporary redirect without lifetime lets nothing live (RFC 9110 §15.4)`(status: Int) {
        #expect(limit(redirect(status)) == 0)
        #expect(limit(redirect(301, "max-age=60"), redirect(status)) == 0)
    }

    /// RFC 9110 §15.4.2, §15.4.9, `Redirects.lifetimeLimit`: A permanent redirect without a lifetime sets no limit,
    /// unless it has `no-cache`.
    @Test(arguments: [301, 308])
    func `a permanent redirect without lifetime sets no limit, but for no-cache (RFC 9110 §15.4.2, §15.4.9)`(
        status: Int
    ) {
        #expect(limit(redirect(status)) == nil)
        #expect(limit(redirect(status, "no-cache")) == 0)
        #expect(limit(redirect(status, "max-age=60, no-cache")) == 0)
    }

    /// RFC 9111 §3, `Redirects.refusal`: A redirect that must not be stored forbids storing the response.
    @Test func `nothing is stored that came by a redirect that may not be (RFC 9111 §3)`() {
        let plain = [redirect(302), redirect(301, "max-age=1")]
        #expect(Redirects.refusal(plain, requestFields: []) == nil)
        #expect(Redirects.refusal(plain + [redirect(302, "no-store")], requestFields: []) == .noStore)
        #expect(Redirects.refusal([redirect(302, "private")], requestFields: []) == .private)
        #expect(Redirects.refusal([redirect(302, vary: "*")], requestFields: []) == .varies)
    }

    /// RFC 9111 §4.1, `Redirects.selectingFields`: The fields in the `Vary` of redirects also select the response.
    @Test func `the fields that redirects vary on select too (RFC 9111 §4.1)`() {
        let request = [HeaderField("A", "1"), HeaderField("B", "2, 3")]
        let fields = stored(["Vary": "A"]).fields
        let selecting = Redirects.selectingFields(
            of: fields, after: [redirect(302, vary: "B")], requestFields: request)
        #expect(selecting == ["a": "1", "b": "2, 3"])
        #expect(
            Redirects.selectingFields(of: fields, after: [redirect(302, vary: "*")], requestFields: request) == nil)
        var response = stored(["Vary": "A"])
        response.selecting = selecting ?? [:]
        #expect(Redirects.selects(response, requestFields: [HeaderField("A", "1"), HeaderField("B", "2,3")]))
        #expect(!Redirects.selects(response, requestFields: [HeaderField("A", "1"), HeaderField("B", "2")]))
        #expect(!Redirects.selects(response, requestFields: [HeaderField("B", "2,3")]))
    }
}
