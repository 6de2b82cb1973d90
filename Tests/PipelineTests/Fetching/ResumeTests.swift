@testable import HTTPCaching
@testable import PipelineFetching
@testable import PipelineSupport
import Synchronization
import TestSupport
import Testing

@testable import Pipeline

private let body = (0..<200_000).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 >> 8) }

/// A 200 that breaks off after `sent` bytes.
private func broken(
    _ sent: Int, _ fields: String = "ETag: \"a\"\r\n", then parts: [OriginReply.Part] = []
) -> OriginReply {
    .raw(
        "HTTP/1.1 200 OK\r\n\(fields)Content-Length: \(body.count)\r\nX-Kept: 1\r\n\r\n",
        then: [.bytes(Array(body[..<sent]))] + parts)
}

private func part(_ first: Int, _ range: String? = nil, tag: String = "\"a\"", to end: Int = body.count) -> OriginReply
{
    .response(
        206,
        ["ETag": tag, "X-New": "2", "Content-Range": range ?? "bytes \(first)-\(body.count - 1)/\(body.count)"],
        body: Array(body[first..<end]))
}

struct ResumeTests {
    /// Answers from a list, one a request; then closes.
    private func fetch(
        _ replies: [OriginReply], retries: Int = 2, fields: [HeaderField] = []
    ) async throws -> (Result<FetchedResponse, FetchError>, [OriginRequest], progress: [Int]) {
        let left = Mutex(replies)
        let origin = try LoopbackOrigin { _ in left.withLock { $0.isEmpty ? .close : $0.removeFirst() } }
        defer { origin.stop() }
        var configuration = FetchConfiguration()
        configuration.allowPrivateAddresses = .all
        configuration.maxRetries = retries
        let base = CurlTransport(configuration)
        defer { base.shutdown() }
        let transport = RetryingTransport(base, configuration: configuration) { _ in }
        let progress = Mutex<[Int]>([])
        let request = FetchRequest(url: try SourceURL(origin.url("/a")), fields: fields)
        let result: Result<FetchedResponse, FetchError>
        do throws(FetchError) {
            result = .success(
                try await transport.fetch(request) { received, _ in progress.withLock { $0.append(received) } })
        } catch {
            result = .failure(error)
        }
        return (result, origin.requests, progress.withLock { $0 })
    }

    @Test func `a broken download goes on where it broke, as often as retries allow`() async throws {
        let (result, requests, progress) = try await fetch([
            broken(50_000), part(50_000, to: 120_000), part(120_000),
        ])
        // The second reply announces less than the part's range: a part with another length is no part.
        let response = try? result.get()
        #expect(response == nil && requests.count == 3)
        #expect(progress == progress.sorted())

        let (whole, asked, counts) = try await fetch([
            broken(50_000),
            .raw(
                "HTTP/1.1 206 Part\r\nETag: \"a\"\r\nX-New: 2\r\nContent-Range: bytes 50000-199999/200000\r\n"
                    + "Content-Length: 150000\r\n\r\n", then: [.bytes(Array(body[50_000..<120_000]))]),
            part(120_000),
        ])
        let done = try whole.get()
        #expect(done.status == 200 && done.body == body && done.digest == sha256Hex(body))
        #expect(asked.map { $0["range"] } == [nil, "bytes=50000-", "bytes=120000-"])
        #expect(asked.map { $0["if-range"] } == [nil, "\"a\"", "\"a\""])
        #expect(done.fields.first("content-length") == "200000" && done.fields.first("content-range") == nil)
        #expect(done.fields.first("x-kept") == "1" && done.fields.values(of: "x-new") == ["2"])
        #expect(counts == counts.sorted() && Set(counts).count == counts.count && counts.last == body.count)
    }

    @Test func `a 200 starts again`() async throws {
        let (result, requests, progress) = try await fetch([
            broken(150_000), .response(200, ["ETag": "\"b\""], body: Array(body.reversed())),
        ])
        let response = try result.get()
        #expect(response.body == body.reversed() && response.digest == sha256Hex(response.body))
        #expect(response.fields.values(of: "etag") == ["\"b\""] && response.fields.first("x-kept") == nil)
        #expect(requests.count == 2 && progress == progress.sorted())
    }

    @Test(arguments: [
        part(50_000, "bytes 49999-199999/200000"), part(50_000, "bytes 50000-199998/200000"),
        part(50_000, "bytes 50000-199999/200001"), part(50_000, "bytes 50000-199999/*"), part(50_000, "bytes */200000"),
        part(50_000, "items 50000-199999/200000"), part(50_000, "nonsense"), part(50_000, tag: "\"b\""),
        part(50_000, tag: "W/\"a\""), .response(416, ["Content-Range": "bytes */200000"]),
        .response(206, ["Content-Type": "multipart/byteranges; boundary=x"], body: Array("--x".utf8)),
    ])
    func `what does not fit is thrown away with what it should complete`(reply: OriginReply) async throws {
        let (result, requests, _) = try await fetch([broken(50_000), reply, .response(200, body: body)])
        let response = try result.get()
        #expect(response.body == body)
        #expect(requests.map { $0["range"] } == [nil, "bytes=50000-", nil])
        let (last, _, _) = try await fetch([broken(50_000), reply], retries: 1)
        #expect(throws: FetchError.self) { try last.get() }
        if case .failure(let error) = last { #expect(error.code == .partMismatch && error.partial == nil) }
    }

    @Test(arguments: [
        "", "ETag: W/\"a\"\r\n", "ETag: \"a\"\r\nETag: \"b\"\r\n", "ETag: a\r\n",
        "ETag: \"a\"\r\nAccept-Ranges: none\r\n",
    ])
    func `without a strong validator, or against the origin's word, everything is requested again`(
        fields: String
    ) async throws {
        let (result, requests, _) = try await fetch([broken(50_000, fields), .response(200, body: body)])
        #expect(try result.get().body == body)
        #expect(requests.map { $0["range"] } == [nil, nil])
    }

    @Test func `an attempt that receives nothing does not lose the data received before`() async throws {
        let (result, requests, _) = try await fetch([broken(50_000), .close, .response(503), part(50_000)], retries: 3)
        #expect(try result.get().body == body)
        #expect(requests.map { $0["range"] } == [nil] + [String?](repeating: "bytes=50000-", count: 3))
    }

    @Test func `a part the caller asked for is not completed`() async throws {
        let (result, requests, _) = try await fetch(
            [
                .raw("HTTP/1.1 206 Part\r\nETag: \"a\"\r\nContent-Range: bytes 0-9/20\r\nContent-Length: 10\r\n\r\nab"),
                .response(206, ["Content-Range": "bytes 0-9/20"], body: Array(0..<10)),
            ], fields: [HeaderField("Range", "bytes=0-9")])
        let response = try result.get()
        #expect(response.status == 206 && response.body == Array(0..<10))
        #expect(requests.map { $0["range"] } == ["bytes=0-9", "bytes=0-9"])
    }

    @Test func `without retries nothing is resumed`() async throws {
        let (result, requests, _) = try await fetch([broken(50_000), part(50_000)], retries: 0)
        #expect(requests.count == 1)
        if case .failure(let error) = result { #expect(error.code == .truncated) } else { Issue.record("\(result)") }
    }

    /// The rest of the body from `first`, which breaks off at `end`.
    private static func cutPart(_ first: Int, to end: Int) -> OriginReply {
        .raw(
            "HTTP/1.1 206 Part\r\nETag: \"a\"\r\nContent-Range: bytes \(first)-\(body.count - 1)/\(body.count)\r\n"
                + "Content-Length: \(body.count - first)\r\n\r\n", then: [.bytes(Array(body[first..<end]))])
    }

    @Test func `tries that bring something new are one try, however many they are`() async throws {
        let places = Array(stride(from: 20_000, to: body.count, by: 10_000))
        let replies = [broken(20_000)] + places.dropLast().map { Self.cutPart($0, to: $0 + 10_000) } + [part(190_000)]
        let (result, requests, _) = try await fetch(replies, retries: 1)
        #expect(try result.get().body == body)
        #expect(requests.map { $0["range"] } == [nil] + places.map { "bytes=\($0)-" })
    }

    @Test func `tries that bring next to nothing count, and so do parts that are given up again and again`()
        async throws
    {
        let drops = [broken(20_000)] + (0..<30).map { Self.cutPart(20_000 + $0 * 100, to: 20_100 + $0 * 100) }
        let (result, requests, _) = try await fetch(drops, retries: 2)
        #expect(requests.count == 3 && (try? result.get()) == nil)
        let mismatches = (0..<10).flatMap { _ in [broken(50_000), .response(416)] }
        let (last, asked, _) = try await fetch(mismatches, retries: 2)
        #expect(asked.count == 3 && (try? last.get()) == nil)
    }

    @Test func `a body that passes the total limit while it arrives is resumed by the next request for it`()
        async throws
    {
        let origin = try LoopbackOrigin { request in
            guard let range = request["range"] else { return broken(50_000, then: [.hang]) }
            return range == "bytes=50000-" && request["if-range"] == "\"a\"" ? part(50_000) : .response(500)
        }
        defer { origin.stop() }
        var configuration = FetchConfiguration()
        configuration.allowPrivateAddresses = .all
        (configuration.totalTimeout, configuration.stallTimeout) = (.seconds(0.5), .seconds(60))
        let base = CurlTransport(configuration)
        defer { base.shutdown() }
        let transport = RetryingTransport(base, configuration: configuration) { _ in }
        let error = try await failure(transport, origin.url("/a"))
        #expect(error.code == .timeout && error.message.contains("fetch.totalSeconds") && error.partial == nil)
        // A request with other fields may be for another representation.
        let other = FetchRequest(url: try SourceURL(origin.url("/a")), fields: [HeaderField("Accept", "image/webp")])
        await #expect(throws: FetchError.self) { try await transport.fetch(other) }
        #expect(try await transport.fetch(FetchRequest(url: try SourceURL(origin.url("/a")))).body == body)
        #expect(origin.requests.map { $0["range"] } == [nil, nil, "bytes=50000-"])
    }

    @Test func `parts are kept for a minute, eight at most, and each for one request`() throws {
        func part(_ until: Double) throws -> InterruptedParts.Part {
            let collected = BodyCollector(folder: nil, spoolBytes: 1 << 20, floor: 0)
            _ = [UInt8](repeating: 1, count: 10).withUnsafeBytes { collected.append($0) }
            let response = PartialResponse(
                url: try SourceURL("http://a.test/"), fields: [HeaderField("ETag", "\"a\"")], total: 20, body: collected
            )
            return (try #require(response), nil, until)
        }
        func key(_ number: Int) throws -> FetchRequest {
            FetchRequest(url: try SourceURL("http://a.test/\(number)"))
        }
        var parts = InterruptedParts()
        func taken(_ number: Int, _ now: Double) throws -> Int? {
            parts.take(try key(number), now: now)?.response.body.count
        }
        for number in 0..<10 { parts.keep(try part(100 + Double(number)), for: try key(number)) }
        #expect(parts.count == 8 && InterruptedParts.seconds == 60)
        #expect(try taken(1, 50) == nil)
        #expect(try taken(9, 50) == 10)
        #expect(try taken(9, 50) == nil)
        #expect(try taken(2, 102) == nil && parts.count == 6)
    }

    @Test(arguments: [
        ("bytes 0-9/10", true), ("BYTES 3-4/10", true), ("bytes 0-10/10", false), ("bytes 5-4/10", false),
        ("bytes -1-4/10", false), ("bytes 0-9", false), ("bytes 0-9/10/2", false), ("bytes +0-9/10", false),
        ("bytes 0-99999999999999999999/10", false), ("bytes  0-9/10", false), ("", false),
    ])
    func `a content range is strict`(text: String, isValid: Bool) { #expect((ContentRange(text) != nil) == isValid) }
}
