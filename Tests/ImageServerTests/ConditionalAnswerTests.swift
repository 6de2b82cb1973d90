import HTTPCaching
import Testing

@testable import ImageServer

@Suite struct ConditionalAnswerTests {
    private static let date = "Sun, 06 Nov 1994 08:49:37 GMT"

    private func answer(
        _ fields: [HeaderField], status: Int = 200, isHead: Bool = false, isOrigin: Bool = true
    ) -> ServerResponse {
        let whole = ServerResponse(
            status: status,
            fields: [
                HeaderField("Content-Type", "image/png"), HeaderField("ETag", "\"abc\""),
                HeaderField("Last-Modified", Self.date), HeaderField("Cache-Control", "max-age=5"),
                HeaderField("Vary", "Accept"), HeaderField("Date", "Sun, 06 Nov 1994 09:49:37 GMT"),
            ], body: Array("0123456789".utf8)[...])
        return ConditionalAnswer.response(whole, to: fields, isHead: isHead, isOrigin: isOrigin, now: 784_115_377)
    }

    @Test(arguments: ["\"abc\"", "W/\"abc\"", "\"x\", \"abc\"", "*"])
    func `a client that has it is told so without a body`(_ tags: String) {
        let answer = answer([HeaderField("If-None-Match", tags)])
        #expect(answer.status == 304 && answer.body.isEmpty)
        #expect(answer["etag"] == "\"abc\"" && answer["cache-control"] == "max-age=5" && answer["vary"] == "Accept")
        #expect(answer["content-type"] == nil)
    }

    @Test func `a date counts only where there is no tag, and nothing counts for an error`() {
        #expect(answer([HeaderField("If-Modified-Since", Self.date)]).status == 304)
        #expect(
            answer([HeaderField("If-Modified-Since", Self.date), HeaderField("If-None-Match", "\"x\"")]).status == 200)
        #expect(answer([HeaderField("If-None-Match", "*")], status: 404).status == 404)
    }

    @Test func `preconditions are for the origin to fail`() {
        #expect(answer([HeaderField("If-Match", "\"x\"")]).status == 412)
        #expect(answer([HeaderField("If-Match", "\"x\"")], isOrigin: false).status == 200)
    }

    @Test(arguments: [
        ("bytes=0-1", "01", "bytes 0-1/10"), ("bytes=8-", "89", "bytes 8-9/10"), ("bytes=-1", "9", "bytes 9-9/10"),
    ])
    func `a range gives a part`(_ range: String, _ body: String, _ content: String) {
        let answer = answer([HeaderField("Range", range)])
        #expect(answer.status == 206 && answer.body.elementsEqual(body.utf8))
        #expect(answer["content-range"] == content && answer["content-type"] == "image/png")
        #expect(answer["content-length"] == nil)
    }

    @Test func `a range beyond the body is refused, a HEAD has none`() {
        let refused = answer([HeaderField("Range", "bytes=10-")])
        #expect(refused.status == 416 && refused["content-range"] == "bytes */10" && refused.body.isEmpty)
        #expect(answer([HeaderField("Range", "bytes=0-1")], isHead: true).status == 200)
    }
}
