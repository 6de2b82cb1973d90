import HTTPCaching
import Testing

@testable import ImageServer

@Suite struct ForwardedFieldsTests {
    private let client = [
        HeaderField("Host", "h"), HeaderField("Connection", "x-hop, keep-alive"), HeaderField("X-Hop", "1"),
        HeaderField("TE", "trailers"), HeaderField("Test-ID", "7"), HeaderField("Cookie", "a=b"),
        HeaderField("If-None-Match", "\"1\""), HeaderField("Range", "bytes=0-1"), HeaderField("Content-Length", "0"),
        HeaderField("test-id", "8"), HeaderField("Accept", "image/webp"),
        HeaderField("Accept-Encoding", "gzip"),
    ]

    @Test func `nothing is forwarded unless configured`() {
        #expect(ForwardedFields([]).upstream(client, isOriginal: true).isEmpty)
    }

    @Test func `a star forwards all but the connection's own and Host`() {
        let sent = ForwardedFields(["*"]).upstream(client, isOriginal: true)
        #expect(
            sent.map(\.name) == [
                "Test-ID", "Cookie", "If-None-Match", "Range", "test-id", "Accept", "Accept-Encoding", "Via",
            ])
        let plain = ForwardedFields(["*"]).upstream(client, isOriginal: false)
        #expect(plain.map(\.name) == ["Test-ID", "Cookie", "test-id", "Accept", "Via"])
    }

    @Test func `names forward themselves in any case`() {
        let sent = ForwardedFields(["TEST-id", "host"]).upstream(client, isOriginal: true)
        #expect(sent == [HeaderField("Test-ID", "7"), HeaderField("test-id", "8"), HeaderField("Via", "1.1 pipeline")])
    }

    @Test(arguments: [[], ["*"], ["Test-ID"], ["CDN-Loop"]])
    func `CDN-Loop is always sent on, once`(_ names: [String]) {
        let loop = HeaderField("CDN-Loop", "other")
        let sent = ForwardedFields(names).upstream(client + [loop], isOriginal: false)
        #expect(sent.filter { $0.name == "CDN-Loop" } == [loop])
    }
}
