import TestSupport
import Testing

@testable import pipectl

extension CommandTests {
    /// A server without a tracer.
    @Suite struct ServeTracing {
        @Test func `a client's trace context goes unchanged to the origins that ask for it, and to no other`()
            async throws
        {
            let folder = Samples.folder + "/originals"
            let (asking, other) = try (FolderOrigin(folder: folder, maxAge: 0), FolderOrigin(folder: folder, maxAge: 0))
            defer {
                asking.stop()
                other.stop()
            }
            let host = String(asking.url("/").dropLast())
            let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
            try await RunningServer.with([#"hosts={"\#(host)":{"trace":true}}"#]) { server in
                let sets: [(fields: KeyValuePairs<String, String>, sent: String?)] = [
                    (["traceparent": parent, "tracestate": "a=1"], parent), (["traceparent": "00-x"], nil), ([:], nil),
                ]
                for (fields, sent) in sets {
                    for origin in [asking, other] {
                        let path = RunningServer.variant("thumbnail:20,png", origin.url("/night-tiny.jpg"))
                        let answer = try await server.ask(path, fields)
                        #expect(answer.status == 200 && answer["traceparent"] == nil)
                        let asked = origin.requests.last
                        #expect(asked?["traceparent"] == (origin === asking ? sent : nil))
                        #expect(asked?["tracestate"] == (origin === asking && sent != nil ? "a=1" : nil))
                    }
                }
            }
        }
    }
}
