@testable import PipelineFetching
import Synchronization
import TestSupport
import Testing

@testable import Pipeline

/// A load of a body that comes in parts.
@Suite(.timeLimit(.minutes(10))) struct ResumedLoadTests {
    @Test func `a body that breaks off and goes on is one fetch with one progress`() async throws {
        let body = sample("originals/dusk-2mp.jpg")
        let cut = body.count / 2
        try await withPipeline {
            $0.fetch.maxRetries = 1
        } handler: { request in
            guard request["range"] == nil else {
                return .response(
                    206, ["ETag": "\"a\"", "Content-Range": "bytes \(cut)-\(body.count - 1)/\(body.count)"],
                    body: Array(body[cut...]))
            }
            return .raw(
                "HTTP/1.1 200 OK\r\nETag: \"a\"\r\nCache-Control: max-age=60\r\nContent-Length: \(body.count)\r\n\r\n",
                then: [.bytes(Array(body[..<cut]))])
        } _: { bench, pipeline in
            let load = pipeline.load(try bench.request())
            var (places, received): ([Int], [Int]) = ([], [])
            for await event in load.events {
                if places.last != event.place { places.append(event.place) }
                guard case .progress(let count, let expected) = event else { continue }
                received.append(count)
                #expect(expected == body.count)
            }
            #expect(try await load.response.width == 40)
            #expect(places == [1, 2, 3, 4])
            #expect(received == received.sorted() && received.last == body.count)
            #expect(bench.origin.requests.map { $0["range"] } == [nil, "bytes=\(cut)-"])
        }
    }
}
