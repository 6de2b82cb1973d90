@testable import HTTPCaching
@testable import PipelineFetching
import Synchronization
import TestSupport
import Testing

@testable import Pipeline

/// The requirements of a cache that passes responses on to its transport.
struct PassingThroughTests {
    @Test func `redirects come back as they are when they are not to be followed`() async throws {
        try await withOrigin { _ in
            .response(301, ["Location": "/elsewhere"], body: Array("moved".utf8))
        } _: { origin, transport in
            var request = FetchRequest(url: try SourceURL(origin.url("/")))
            request.followsRedirects = false
            let response = try await transport.fetch(request)
            #expect(response.status == 301 && response.body == Array("moved".utf8))
            #expect(origin.requests.count == 1)
        }
    }

    @Test func `interim responses are reported before the final one`() async throws {
        try await withOrigin { _ in
            .raw(
                "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\n"
                    + "Link: </a>\r\nConnection: X-Hop\r\nX-Hop: 1\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        } _: { origin, transport in
            let seen = Mutex<[String]>([])
            var request = FetchRequest(url: try SourceURL(origin.url("/")))
            request.onInterim = InterimObserver { status, fields in
                seen.withLock { $0.append("\(status) \(fields.map { "\($0.name)=\($0.value)" })") }
            }
            let response = try await transport.fetch(request)
            #expect(response.status == 200 && response.fields.first("link") == nil)
            #expect(seen.withLock { $0 } == ["102 []", "103 [\"Link=</a>\"]"])
        }
    }

    @Test func `bytes beyond ASCII in fields survive in both directions`() async throws {
        let bytes: [UInt8] = Array("HTTP/1.1 200 OK\r\nETag: \"".utf8) + [0xFC, 0xC3, 0xA9]
        try await withOrigin { _ in
            .raw("", then: [.bytes(bytes + Array("\"\r\nContent-Length: 0\r\n\r\n".utf8))], keepsAlive: true)
        } _: { origin, transport in
            let url = try SourceURL(origin.url("/"))
            let tag = try #require(try await transport.fetch(FetchRequest(url: url)).fields.first("etag"))
            #expect(tag.unicodeScalars.map(\.value) == [0x22, 0xFC, 0xC3, 0xA9, 0x22])
            #expect(FieldSyntax.bytes(tag) == [0x22, 0xFC, 0xC3, 0xA9, 0x22])
            _ = try await transport.fetch(FetchRequest(url: url, fields: [HeaderField("If-None-Match", tag)]))
            #expect(origin.requests.last?["if-none-match"].map { Array($0.utf8) } == Array("\"\u{FFFD}é\"".utf8))
        }
    }

    @Test(arguments: [299, 303, 404, 501, 599, 999])
    func `odd statuses come with their bodies`(status: Int) async throws {
        try await withOrigin { _ in
            .response(status, body: Array("text".utf8))
        } _: { origin, transport in
            let response = try await transport.fetch(FetchRequest(url: SourceURL(origin.url("/"))))
            #expect(response.status == status && response.body == Array("text".utf8))
        }
    }

    @Test func `304 and 204 have no body, whatever their length says`() async throws {
        try await withOrigin { request in
            .raw("HTTP/1.1 \(request.path.dropFirst()) x\r\nContent-Length: 10\r\n\r\n", keepsAlive: true)
        } _: { origin, transport in
            for status in [304, 204, 304] {
                let response = try await transport.fetch(FetchRequest(url: SourceURL(origin.url("/\(status)"))))
                #expect(response.status == status && response.body.isEmpty)
            }
        }
    }

    @Test func `without retries no request is sent twice, not even over a kept connection that ended`() async throws {
        for retries in [0, 1] {
            let count = Mutex(0)
            try await withOrigin {
                $0.maxRetries = retries
            } handler: { _ in
                count.withLock { $0 += 1 }
                return count.withLock { $0 } == 2 ? .close : .response(200)
            } _: { origin, transport in
                let request = FetchRequest(url: try SourceURL(origin.url("/")))
                _ = try await transport.fetch(request)
                // The connection is kept; the origin takes the next request on it and closes without a word.
                let second = try? await transport.fetch(request)
                #expect((second == nil) == (retries == 0))
                #expect(origin.requests.count == (retries == 0 ? 2 : 3))
            }
        }
    }

    @Test func `a caller's part is passed on`() async throws {
        try await withOrigin { _ in
            .response(206, ["Content-Range": "bytes 0-1/4"], body: Array("ab".utf8))
        } _: { origin, transport in
            let response = try await transport.fetch(
                FetchRequest(url: SourceURL(origin.url("/")), fields: [HeaderField("Range", "bytes=0-1")]))
            #expect(response.status == 206 && response.fields.first("content-range") == "bytes 0-1/4")
        }
    }
}
