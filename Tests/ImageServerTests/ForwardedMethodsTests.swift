import ImageServerNIO
import Testing

@testable import ImageServer

@Suite struct ForwardedMethodsTests {
    private func methods(_ names: [String]?, fields: [String] = []) throws(ForwardedMethods.Refusal) -> ForwardedMethods
    {
        try ForwardedMethods(names, fields: ForwardedFields(fields), isKnown: HTTPServer.reads(method:))
    }

    @Test func `none are passed on unless all fields are, or the setting says so`() throws {
        #expect(try !methods(nil).contains("POST", signature: "unsigned"))
        #expect(try !methods(nil, fields: ["Accept"]).contains("POST", signature: "unsigned"))
        #expect(try methods(nil, fields: ["*"]).contains("POST", signature: "unsigned"))
        #expect(try !methods([], fields: ["*"]).contains("POST", signature: "unsigned"))
        let one = try methods(["GET", "PUT"])
        #expect(one.contains("PUT", signature: "unsigned") && !one.contains("put", signature: "unsigned"))
        #expect(!one.contains("POST", signature: "unsigned"))
        #expect(one.allowed(signature: "unsigned") == ["GET", "HEAD", "PUT"])
        let all = try methods(["*"])
        #expect(all.contains("M-SEARCH", signature: "unsigned") && !all.contains("GET", signature: "unsigned"))
        #expect(!all.contains("TRACE", signature: "unsigned") && !all.contains("CONNECT", signature: "unsigned"))
    }

    @Test func `a signature gives no leave to change anything`() throws {
        let one = try methods(["PUT"])
        #expect(!one.contains("PUT", signature: "k1.abc") && one.allowed(signature: "k1.abc") == ["GET", "HEAD"])
    }

    @Test func `every method is named once`() throws {
        #expect(
            try methods(["PUT", "PUT", "M-SEARCH"]).allowed(signature: "unsigned") == [
                "GET", "HEAD", "PUT", "M-SEARCH",
            ])
    }

    @Test(arguments: ["TRACE", "CONNECT", "two words", "", "A:", "post", "FOO", "true", "MSEARCH"])
    func `what is no method to pass on is refused`(name: String) {
        #expect(throws: ForwardedMethods.Refusal.self) { try methods([name]) }
    }
}
