import HTTPCaching
import PipelineSupport
import Testing

@testable import ImageServer

@Suite struct CrossOriginRuleTests {
    private static let answer = ServerResponse(
        status: 200,
        fields: [HeaderField("Vary", "Accept"), HeaderField("access-control-allow-origin", "https://origin")])

    private func fields(_ texts: [String], _ origin: String?) throws -> [HeaderField] {
        try CrossOriginRule(texts).applied(to: Self.answer, origin: origin).fields
    }

    @Test func `without the setting an answer stays as it is`() throws {
        #expect(try fields([], "https://a") == Self.answer.fields)
    }

    @Test func `every page may read what is for all, and nothing varies`() throws {
        let fields = try fields(["*"], nil)
        #expect(fields.values(of: "access-control-allow-origin") == ["*"] && fields.values(of: "vary") == ["Accept"])
    }

    @Test func `pages of the list may read, and every answer varies by origin`() throws {
        let rule = ["https://a", "http://B:8080"]
        #expect(try fields(rule, "https://a").first("access-control-allow-origin") == "https://a")
        #expect(try fields(rule, "http://b:8080").first("access-control-allow-origin") == "http://b:8080")
        for origin in [nil, "https://ab", "http://a", "null", "https://a, https://b", "https://a\r\nX: y", ""] {
            let fields = try fields(rule, origin)
            #expect(
                fields.first("access-control-allow-origin") == nil && fields.values(of: "vary") == ["Accept", "Origin"])
        }
        let once = try CrossOriginRule(rule).applied(to: Self.answer, origin: "https://a")
        #expect(try CrossOriginRule(rule).applied(to: once, origin: "https://a") == once)
    }

    @Test func `a preflight is answered, other requests with OPTIONS are not`() throws {
        let rule = try CrossOriginRule(["https://a"])
        var request = ServerRequest(
            method: "OPTIONS", target: "/variant/x",
            fields: [HeaderField("Origin", "https://a"), HeaderField("Access-Control-Request-Method", "GET")])
        let answer = try #require(rule.preflight(request, now: 0))
        #expect(answer.status == 204 && answer["access-control-allow-methods"] == "GET, HEAD")
        request.fields[0].value = "https://b"
        #expect(rule.preflight(request, now: 0)?["access-control-allow-methods"] == nil)
        #expect(CrossOriginRule.none.preflight(request, now: 0) == nil)
        request.fields.removeLast()
        #expect(rule.preflight(request, now: 0) == nil)
    }

    @Test(arguments: [
        "a", "https://", "https://a/b", "https://a b", "://a", "https://*.a", "1://a", "https://a,https://b",
    ])
    func `what is no origin is refused`(_ text: String) {
        #expect(throws: InvalidSetting.self) { try CrossOriginRule([text]) }
    }
}
