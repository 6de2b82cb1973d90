import Pipeline
@testable import PipelineFetching
import Synchronization
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
        configuration.retries = retries
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
}
