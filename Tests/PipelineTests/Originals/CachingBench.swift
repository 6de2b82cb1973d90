@testable import HTTPCaching
@testable import PipelineFetching
import Synchronization
import TestSupport
import Testing
import Variants

@testable import Pipeline

/// A clock that only a test moves. Unix seconds.
final class ManualClock: Sendable {
    private let seconds = Mutex(1_800_000_000.0)
    var now: Double { seconds.withLock { $0 } }
    func advance(_ by: Double) { seconds.withLock { $0 += by } }
}

/// A door that many stand at until a test opens it.
final class Door: Sendable {
    private struct State {
        var isOpen = false
        var standing: [CheckedContinuation<Void, Never>] = []
        var arrivals = 0
    }
    private let state = Mutex(State())

    /// Returns once the door is open, also to cancelled tasks.
    func pass() async {
        await withCheckedContinuation { continuation in
            let isOpen = state.withLock { state in
                state.arrivals += 1
                if !state.isOpen { state.standing.append(continuation) }
                return state.isOpen
            }
            if isOpen { continuation.resume() }
        }
    }

    /// Returns when so many have come so far.
    func arrivals(_ count: Int) async {
        await waitOrRecord { state.withLock({ $0.arrivals }) < count }
    }

    func open() {
        let standing = state.withLock { state in
            state.isOpen = true
            defer { state.standing = [] }
            return state.standing
        }
        for continuation in standing { continuation.resume() }
    }
}

/// A scripted origin's answer.
struct ScriptedResponse: Sendable {
    var status = 200
    var fields: [HeaderField] = []
    var body: [UInt8] = []
    var finalURL: String?
    var redirects: [ScriptedResponse] = []

    /// - Parameter lines: fields as `Name: value`; a `Date` of now is added unless there is one.
    init(_ status: Int = 200, _ lines: String..., body: String = "") {
        self.status = status
        self.body = Array(body.utf8)
        fields = lines.map { line in
            let colon = line.firstIndex(of: ":") ?? line.endIndex
            return HeaderField(
                String(line[..<colon]), FieldLines.trimmed(String(line[colon...].dropFirst())))
        }
    }

    func picture(_ name: String = "night-tiny.jpg") -> ScriptedResponse {
        var answer = self
        answer.body = sample("originals/" + name)
        return answer
    }

    /// Reached by redirects.
    func after(_ redirects: ScriptedResponse..., at url: String) -> ScriptedResponse {
        var answer = self
        answer.redirects = redirects
        answer.finalURL = url
        return answer
    }
}

/// A transport that answers as a closure says, at the times of a manual clock, and keeps what it was asked.
final class ScriptedOrigin: Transport {
    typealias Script = @Sendable (FetchRequest) async throws(FetchError) -> ScriptedResponse

    private let clock: ManualClock
    private let script: Mutex<Script>
    private let asked = Mutex<[FetchRequest]>([])

    init(_ clock: ManualClock, _ script: @escaping Script) {
        self.clock = clock
        self.script = Mutex(script)
    }

    var requests: [FetchRequest] { asked.withLock { $0 } }
    func answers(_ new: @escaping Script) { script.withLock { $0 = new } }

    func fetch(
        _ request: FetchRequest, onProgress: (@Sendable (_ received: Int, _ expected: Int?) -> Void)?
    ) async throws(FetchError) -> FetchedResponse {
        asked.withLock { $0.append(request) }
        let requestTime = clock.now
        let answer = try await script.withLock { $0 }(request)
        if !answer.body.isEmpty { onProgress?(answer.body.count, answer.body.count) }
        let finalURL = answer.finalURL.flatMap { try? SourceURL($0) } ?? request.url
        var response = FetchedResponse(
            status: answer.status, fields: dated(answer.fields), body: answer.body, requestTime: requestTime,
            responseTime: clock.now, finalURL: finalURL, milliseconds: 1,
            redirects: answer.redirects.map { _ in request.url })
        response.redirectResponses = answer.redirects.map { redirect in
            StoredResponse(
                status: redirect.status, fields: dated(redirect.fields), requestTime: requestTime,
                responseTime: clock.now)
        }
        return response
    }

    func shutdown() async {}

    private func dated(_ fields: [HeaderField]) -> [HeaderField] {
        if fields.first("date") != nil { return fields }
        return fields + [HeaderField("Date", HTTPDate.text(unixSeconds: Int(clock.now)))]
    }
}

/// A pipeline before a scripted origin under a manual clock.
final class CachingBench: Sendable {
    let clock = ManualClock()
    let origin: ScriptedOrigin
    let folder = CacheFolder()
    let pipeline: ImagePipeline
    let configuration: PipelineConfiguration
    static let url = "http://origin.test/a"

    init(
        _ configure: (inout PipelineConfiguration) -> Void = { _ in }, _ script: @escaping ScriptedOrigin.Script
    ) throws {
        origin = ScriptedOrigin(clock, script)
        var configuration = PipelineConfiguration()
        configuration.transport = origin
        configuration.acceptedTypes = ["*/*"]
        configuration.now = { [clock] in clock.now }
        configure(&configuration)
        self.configuration = configuration
        pipeline = try ImagePipeline(configuration)
    }

    /// How often the origin was asked.
    var count: Int { origin.requests.count }

    /// A field of the last request that the origin got.
    func sent(_ name: String) -> String? { origin.requests.last?.fields.first(name) }

    /// Asks for the response itself.
    ///
    /// - Parameter lines: request fields as `Name: value`.
    func get(
        _ lines: String..., url: String = url, change: (inout OriginalRequest) -> Void = { _ in }
    ) async throws -> OriginalResponse {
        try await pipeline.original(for: request(lines, url: url, change))
    }

    func request(
        _ lines: [String], url: String = url, _ change: (inout OriginalRequest) -> Void = { _ in }
    ) -> OriginalRequest {
        var fields: [HeaderField] = []
        for line in lines {
            let colon = line.firstIndex(of: ":") ?? line.endIndex
            fields.append(
                HeaderField(String(line[..<colon]), FieldLines.trimmed(String(line[colon...].dropFirst()))))
        }
        var request = OriginalRequest(url: url, fields: fields)
        change(&request)
        return request
    }

    /// Asks for a picture.
    func image(
        _ recipe: String? = "thumbnail:40", _ change: (inout ImageRequest) -> Void = { _ in }
    ) async throws -> ImageResponse {
        var request = ImageRequest(.url(Self.url), recipe: try recipe.map { try Recipe($0) })
        change(&request)
        return try await pipeline.respond(to: request)
    }

    /// The error of asking for the response itself.
    func refusal(
        _ lines: String..., change: (inout OriginalRequest) -> Void = { _ in }
    ) async -> PipelineError? {
        await failure { _ = try await pipeline.original(for: request(lines, change)) }
    }

    /// The error of asking for a picture.
    func imageRefusal(_ change: (inout ImageRequest) -> Void = { _ in }) async -> PipelineError? {
        await failure { _ = try await image(nil, change) }
    }

    /// Returns when so many requests wait for fetches.
    func waiting(_ count: Int) async {
        await waitOrRecord { pipeline.fetches.waiting < count }
    }

    private func failure(_ work: () async throws -> Void) async -> PipelineError? {
        do {
            try await work()
            Issue.record("no error")
            return nil
        } catch {
            return error as? PipelineError
        }
    }

    /// Another pipeline on the same folder, origin and clock, as another process would have it.
    func another() async throws -> ImagePipeline {
        await pipeline.drain()
        return try ImagePipeline(configuration)
    }
}

/// Runs `body` with a bench; its pipeline is shut down afterwards.
func withCache(
    _ configure: (inout PipelineConfiguration) -> Void = { _ in }, origin: @escaping ScriptedOrigin.Script,
    _ body: (CachingBench) async throws -> Void
) async throws {
    let bench = try CachingBench(configure, origin)
    do {
        try await body(bench)
    } catch {
        await bench.pipeline.shutdown()
        throw error
    }
    await bench.pipeline.shutdown()
}

extension OriginalResponse {
    var text: String { String(decoding: body, as: UTF8.self) }
    func values(_ name: String) -> [String] { fields.values(of: name) }
}

extension SourceURL {
    /// The last letter of the path, as scripts tell sources apart.
    var name: String { String(normalized.last ?? "?") }
}

/// Lets others go on for as long as `condition` holds, as `waitWhile` does. In vain is an issue, and no reason to stop: others
/// wait for the test to go on.
func waitOrRecord(while condition: () -> Bool) async {
    do { try await waitWhile(condition) } catch { Issue.record(error) }
}
