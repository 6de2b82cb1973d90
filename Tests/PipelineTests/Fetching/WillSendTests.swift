import Pipeline
import Synchronization
import TestSupport
import Testing

/// The hook before each request to an origin.
struct WillSendTests {
    private struct NoToken: Error, Hashable {}

    /// Adds another token to each request, and keeps the paths of the requests.
    private final class Tokens: Sendable {
        private let paths = Mutex<[String]>([])
        var calls: [String] { paths.withLock { $0 } }

        func add(to request: inout FetchRequest) {
            let path = request.url.path
            let number = paths.withLock { paths in
                paths.append(path)
                return paths.count
            }
            request.fields.append(HeaderField("X-Token", String(number)))
        }
    }

    private static func tokens(of origin: LoopbackOrigin) -> [String?] { origin.requests.map { $0["x-token"] } }

    @Test func `each request has another token, each retry and each redirect too`() async throws {
        let tokens = Tokens()
        try await withPipeline {
            $0.fetch.maxRetries = 1
            $0.fetch.retryDelay = .seconds(0.001)
            $0.willSend = { tokens.add(to: &$0) }
        } handler: { request in
            if request.path == "/a.jpg" {
                return .response(302, ["Location": "/b.jpg", "Cache-Control": "max-age=60"])
            }
            return request["x-token"] == "2"
                ? .response(503) : picture("night-tiny.jpg", ["Cache-Control": "max-age=60"])
        } _: { bench, pipeline in
            let request = try bench.request()
            #expect(try await pipeline.respond(to: request).outcome == .rendered)
            #expect(tokens.calls == ["/a.jpg", "/b.jpg", "/b.jpg"])
            #expect(Self.tokens(of: bench.origin) == ["1", "2", "3"])
            // A hit asks no origin.
            #expect(try await pipeline.respond(to: request).outcome == .memory)
            #expect(tokens.calls.count == 3)
        }
    }

    @Test func `what it sets stays with the origin of the source, as credentials do`() async throws {
        let tokens = Tokens()
        let other = try LoopbackOrigin(host: "127.0.0.2") { _ in
            picture("night-tiny.jpg", ["Cache-Control": "max-age=60"])
        }
        defer { other.stop() }
        try await withPipeline {
            $0.willSend = { tokens.add(to: &$0) }
        } handler: { _ in
            .response(302, ["Location": other.url("/b.jpg")])
        } _: { bench, pipeline in
            var request = try bench.request()
            request.fields = [HeaderField("Authorization", "Basic eDp5")]
            _ = try await pipeline.respond(to: request)
            #expect(tokens.calls == ["/a.jpg"] && Self.tokens(of: bench.origin) == ["1"])
            #expect(Self.tokens(of: other) == [nil] && other.requests.first?["authorization"] == nil)
        }
    }

    @Test func `a validation has a token, and the hook can change neither its condition nor what is asked for`()
        async throws
    {
        try await withPipeline {
            $0.willSend = { request in
                let isConditional = request.fields.contains { $0.name == "If-None-Match" }
                request.fields = [
                    HeaderField("X-Token", isConditional ? "again" : "first"), HeaderField("Range", "bytes=0-1"),
                    HeaderField("Host", "elsewhere.example"),
                ]
                request.method = "DELETE"
                request.url = try SourceURL("http://127.0.0.9/")
            }
        } handler: { request in
            request["if-none-match"] == "\"1\"" ? .response(304) : picture("night-tiny.jpg", ["ETag": "\"1\""])
        } _: { bench, pipeline in
            let request = try bench.request()
            #expect(try await pipeline.respond(to: request).originalOutcome == .network)
            #expect(try await pipeline.respond(to: request).originalOutcome == .revalidated)
            #expect(Self.tokens(of: bench.origin) == ["first", "again"])
            for request in bench.origin.requests {
                #expect(request.method == "GET" && request["range"] == nil)
                #expect(request["host"] == "127.0.0.1:\(bench.origin.port)")
            }
        }
    }

    @Test func `a request that changes something carries its client's credentials alone`() async throws {
        let tokens = Tokens()
        try await withPipeline {
            $0.willSend = { tokens.add(to: &$0) }
        } handler: { _ in
            .response(204)
        } _: { bench, pipeline in
            var request = OriginalRequest(
                url: bench.origin.url("/a.jpg"), fields: [HeaderField("Authorization", "mine")])
            request.method = "DELETE"
            let answer = try await pipeline.original(for: request)
            #expect(answer.status == 204)
            #expect(tokens.calls.isEmpty && bench.origin.requests.map { $0["authorization"] } == ["mine"])
        }
    }

    @Test func `an error is the cause of the failure, and is neither tried again nor remembered`() async throws {
        let fails = Mutex(true)
        try await withPipeline {
            $0.caching.errorMaxAge = .seconds(3600)
            $0.fetch.maxRetries = 2
            $0.fetch.breaker?.failures = 1
            $0.willSend = { _ in if fails.withLock({ $0 }) { throw NoToken() } }
        } handler: { _ in
            picture("night-tiny.jpg", [:])
        } _: { bench, pipeline in
            let request = try bench.request()
            let error = await refusal(pipeline, request)
            #expect(error?.code == .fetchFailed && error?.cause as? NoToken == NoToken())
            #expect(error?.message.contains("`willSend` failed") == true && bench.origin.requests.isEmpty)
            fails.withLock { $0 = false }
            #expect(try await pipeline.respond(to: request).outcome == .rendered)
        }
    }

    @Test func `if it fails, a stale picture answers where that is allowed`() async throws {
        let fails = Mutex(false)
        try await withPipeline {
            $0.willSend = { _ in if fails.withLock({ $0 }) { throw NoToken() } }
        } handler: { _ in
            picture("night-tiny.jpg", ["Cache-Control": "max-age=0, stale-if-error=60"])
        } _: { bench, pipeline in
            let request = try bench.request()
            _ = try await pipeline.respond(to: request)
            fails.withLock { $0 = true }
            #expect(try await pipeline.respond(to: request).isStale)
        }
    }

    @Test func `it may take as long as the fetch, and is cancelled with it`() async throws {
        let door = Door()
        let ended = Mutex(0)
        try await withPipeline {
            $0.willSend = { request in
                if request.url.path == "/late.jpg" { return await door.pass() }
                do { try await Task.sleep(for: .seconds(600)) } catch {
                    ended.withLock { $0 += 1 }
                    throw error
                }
            }
            $0.fetch.totalTimeout = .milliseconds(50)
        } handler: { _ in
            picture("night-tiny.jpg", [:])
        } _: { bench, pipeline in
            // One that does not heed its cancellation is not waited for.
            for (path, count) in [("/a.jpg", 1), ("/late.jpg", 1)] {
                let late = await refusal(pipeline, try bench.request(path))
                #expect(late?.code == .fetchTimedOut && late?.message.contains("`willSend`") == true)
                await waitOrRecord { ended.withLock { $0 } < count }
            }
            door.open()
        }
        try await withPipeline {
            $0.willSend = { _ in
                do { try await Task.sleep(for: .seconds(600)) } catch {
                    ended.withLock { $0 += 1 }
                    throw error
                }
            }
        } handler: { _ in
            picture("night-tiny.jpg", [:])
        } _: { bench, pipeline in
            var request = try bench.request()
            request.timeout = .milliseconds(20)
            #expect(await refusal(pipeline, request)?.code == .fetchTimedOut)
            await waitOrRecord { ended.withLock { $0 } < 2 }
            let load = pipeline.load(try bench.request())
            load.cancel()
            await #expect(throws: PipelineError.self) { _ = try await load.response }
            #expect(bench.origin.requests.isEmpty)
        }
    }

    @Test func `files, providers and transports of the program are asked without it`() async throws {
        struct Pictures: OriginalProvider {
            func original(_ path: String, unless version: String?) async throws -> ProvidedOriginal {
                .bytes(sample("originals/night-tiny.jpg"))
            }
        }
        let tokens = Tokens()
        try await withPipeline {
            $0.willSend = { tokens.add(to: &$0) }
            $0.providers["pictures"] = Pictures()
        } handler: { _ in
            .response(500)
        } _: { bench, pipeline in
            let file = #filePath.split(separator: "/").dropLast(4).joined(separator: "/")
            _ = try await pipeline.image(for: "/\(file)/samples/originals/night-tiny.jpg", recipe: "thumbnail:20")
            _ = try await pipeline.image(for: "pictures:1", recipe: "thumbnail:20")
            #expect(tokens.calls.isEmpty)
        }
    }
}
