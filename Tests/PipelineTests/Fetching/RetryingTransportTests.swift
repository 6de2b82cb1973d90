import Pipeline
@testable import PipelineFetching
import Synchronization
import TestSupport
import Testing

/// Answers from a list, one a fetch.
private final class ScriptedTransport: Transport {
    func shutdown() async {}

    private let answers: Mutex<[Result<FetchedResponse, FetchError>]>
    init(_ answers: [Result<FetchedResponse, FetchError>]) { self.answers = Mutex(answers) }

    var left: Int { answers.withLock { $0.count } }

    func fetch(
        _ request: FetchRequest, onProgress: (@Sendable (_ received: Int, _ expected: Int?) -> Void)?
    ) async throws(FetchError) -> FetchedResponse {
        let next: Result<FetchedResponse, FetchError> = answers.withLock { $0.removeFirst() }
        return try next.get()
    }
}

struct RetryingTransportTests {
    private static func response(_ status: Int, _ url: SourceURL, retryAfter: String? = nil) -> FetchedResponse {
        let fields = retryAfter.map { [HeaderField("Retry-After", $0)] } ?? []
        return FetchedResponse(
            status: status, fields: fields, body: [], requestTime: 0, responseTime: 784_111_777, finalURL: url)
    }

    /// Status of the last answer (0 for an error) and the pauses made.
    private func run(
        _ answers: [Result<FetchedResponse, FetchError>], _ url: SourceURL, retries: Int = 1
    ) async -> (status: Int, pauses: [Double]) {
        var configuration = FetchConfiguration()
        configuration.maxRetries = retries
        let pauses = Mutex<[Double]>([])
        let transport = RetryingTransport(ScriptedTransport(answers), configuration: configuration) { seconds in
            pauses.withLock { $0.append(seconds) }
        }
        let status: Int
        do { status = try await transport.fetch(FetchRequest(url: url)).status } catch { status = 0 }
        return (status, pauses.withLock { $0 })
    }

    @Test(arguments: [429, 502, 503, 504])
    func `a passing failure is tried again`(status: Int) async throws {
        let url = try SourceURL("http://example.com/")
        let result = await run([.success(Self.response(status, url)), .success(Self.response(200, url))], url)
        #expect(result.status == 200)
        #expect(result.pauses.allSatisfy { (0.1...0.2).contains($0) } && result.pauses.count == 1)
    }

    @Test(arguments: [200, 304, 404, 500])
    func `other answers are not tried again`(status: Int) async throws {
        let url = try SourceURL("http://example.com/")
        let result = await run([.success(Self.response(status, url))], url)
        #expect(result.status == status && result.pauses.isEmpty)
    }

    @Test func `failed connections are tried again with growing pauses, refusals are not`() async throws {
        let url = try SourceURL("http://example.com/")
        let down = Result<FetchedResponse, FetchError>.failure(FetchError(.unreachable, url, "down"))
        let result = await run([down, down, .success(Self.response(200, url))], url, retries: 2)
        #expect(result.status == 200)
        #expect(result.pauses.count == 2 && result.pauses[1] >= 0.2)
        let refused = await run([.failure(FetchError(.refusedAddress, url, "no"))], url)
        #expect(refused.status == 0 && refused.pauses.isEmpty)
    }

    @Test(arguments: [("3", 3.0), ("Sun, 06 Nov 1994 08:49:40 GMT", 3.0), ("60", nil), ("4294967296", nil)])
    func `Retry-After is waited for within its limit`(text: String, pause: Double?) async throws {
        let url = try SourceURL("http://example.com/")
        let result = await run(
            [.success(Self.response(503, url, retryAfter: text)), .success(Self.response(200, url))], url)
        #expect(result.pauses == (pause.map { [$0] } ?? []))
        #expect(result.status == (pause == nil ? 503 : 200))
    }

    /// The requests of an origin, path by path, while `replies` answers the targets of the redirects.
    private func asked(
        _ replies: [OriginReply]
    ) async throws -> (status: Int, requests: [OriginRequest], redirects: [String]) {
        let left = Mutex(replies)
        let origin = try LoopbackOrigin { request in
            switch request.path {
            case "/a": .response(302, ["Location": "/b"])
            case "/b": .response(302, ["Location": "/c"])
            case "/c": .response(302, ["Location": "/d"])
            default: left.withLock { $0.count > 1 ? $0.removeFirst() : $0[0] }
            }
        }
        defer { origin.stop() }
        var configuration = FetchConfiguration()
        configuration.allowPrivateAddresses = .all
        let base = CurlTransport(configuration)
        defer { base.shutdown() }
        let transport = RetryingTransport(base, configuration: configuration) { _ in }
        let response = try? await transport.fetch(FetchRequest(url: SourceURL(origin.url("/a"))))
        return (response?.status ?? 0, origin.requests, response?.redirects.map(\.path) ?? [])
    }

    @Test(arguments: [OriginReply.response(503), .close])
    func `a retry asks where redirects have led, and does not follow them again`(reply: OriginReply) async throws {
        let (status, requests, redirects) = try await asked([reply, reply, .response(200)])
        #expect(status == 200 && redirects == ["/a", "/b", "/c"])
        #expect(requests.map(\.path) == ["/a", "/b", "/c", "/d", "/d", "/d"])
        let failing = try await asked([.response(503)])
        #expect(failing.status == 503 && failing.requests.count == 6)
    }

    @Test func `a retry at another origin sends no credentials, and follows what it answers`() async throws {
        let answers = Mutex([OriginReply.response(503), .response(302, ["Location": "/f"]), .close, .response(200)])
        let other = try LoopbackOrigin { _ in answers.withLock { $0.removeFirst() } }
        defer { other.stop() }
        var configuration = FetchConfiguration()
        configuration.allowPrivateAddresses = .all
        let target = other.url("/e")
        let origin = try LoopbackOrigin { _ in .response(302, ["Location": target]) }
        defer { origin.stop() }
        let base = CurlTransport(configuration)
        defer { base.shutdown() }
        let transport = RetryingTransport(base, configuration: configuration) { _ in }
        let fields = [HeaderField("Authorization", "Basic eA=="), HeaderField("X-Kept", "1")]
        let response = try await transport.fetch(FetchRequest(url: SourceURL(origin.url("/a")), fields: fields))
        #expect(response.status == 200 && response.redirects.map(\.path) == ["/a", "/e"])
        #expect(response.redirectResponses.map(\.status) == [302, 302])
        #expect(origin.requests.count == 1 && other.requests.map(\.path) == ["/e", "/e", "/f", "/f"])
        #expect(other.requests.allSatisfy { $0["authorization"] == nil && $0["x-kept"] == "1" })
    }
}
