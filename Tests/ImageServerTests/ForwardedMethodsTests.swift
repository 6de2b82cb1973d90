import ImageServerNIO
import Testing

@testable import ImageServer

@Suite struct ForwardedMethodsTests {
    private func methods(_ names: [String]?, fields: [String] = []) -> ForwardedMethods {
        ForwardedMethods(names, fields: ForwardedFields(fields))
    }

    @Test func `none are passed on unless all fields are, or the setting says so`() {
        #expect(!methods(nil).contains("POST", isSigned: false))
        #expect(!methods(nil, fields: ["Accept"]).contains("POST", isSigned: false))
        #expect(methods(nil, fields: ["*"]).contains("POST", isSigned: false))
        #expect(!methods([], fields: ["*"]).contains("POST", isSigned: false))
        let one = methods(["GET", "PUT"])
        #expect(one.contains("PUT", isSigned: false) && !one.contains("put", isSigned: false))
        #expect(!one.contains("POST", isSigned: false))
        #expect(one.allowed(isSigned: false) == ["GET", "HEAD", "PUT"])
        let all = methods(["*"])
        #expect(all.contains("M-SEARCH", isSigned: false) && !all.contains("GET", isSigned: false))
        #expect(!all.contains("TRACE", isSigned: false) && !all.contains("CONNECT", isSigned: false))
    }

    @Test func `a signature gives no leave to change anything`() {
        let one = methods(["PUT"])
        #expect(!one.contains("PUT", isSigned: true) && one.allowed(isSigned: true) == ["GET", "HEAD"])
    }

    @Test func `every method is named once`() {
        #expect(
            methods(["PUT", "PUT", "M-SEARCH"]).allowed(isSigned: false) == [
                "GET", "HEAD", "PUT", "M-SEARCH",
            ])
    }

    @Test func `methods that the parser knows may be named`() {
        for name in ["*", "GET", "PUT", "M-SEARCH"] {
            #expect(ForwardedMethods.fault(of: name, isKnown: HTTPServer.reads(method:)) == nil)
        }
    }

    @Test(arguments: ["TRACE", "CONNECT", "two words", "", "A:", "post", "FOO", "true", "MSEARCH"])
    func `what is no method to pass on is refused`(name: String) {
        #expect(ForwardedMethods.fault(of: name, isKnown: HTTPServer.reads(method:)) != nil)
    }
}
