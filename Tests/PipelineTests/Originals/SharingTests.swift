@testable import HTTPCaching
@testable import PipelineCaching
import TestSupport
import Testing
import Variants

@testable import Pipeline

/// This number of concurrent requests. The last one waits before the door opens.
private func together(
    _ count: Int, _ bench: CachingBench, _ door: Door, fetches: Int = 1, fields: @escaping @Sendable (Int) -> [String]
) async throws -> [OriginalResponse] {
    try await withThrowingTaskGroup(of: OriginalResponse.self) { group in
        for number in 0..<count {
            let request = bench.request(fields(number))
            group.addTask { try await bench.pipeline.original(for: request) }
        }
        await bench.waiting(count)
        await door.arrivals(fetches)
        door.open()
        return try await group.reduce(into: []) { $0.append($1) }
    }
}

@Suite(.timeLimit(.minutes(20))) struct SharingTests {
    @Test func `fields unique to each client do not keep them apart`() async throws {
        let door = Door()
        try await withCache { _ in
            await door.pass()
            return ScriptedResponse(200, "Cache-Control: max-age=10", body: "b")
        } _: { bench in
            let responses = try await together(20, bench, door) { ["X-Request-Id: \($0)"] }
            #expect(bench.count == 1)
            #expect(responses.count { $0.handling.isCollapsed } == 19)
            #expect(responses.allSatisfy { $0.text == "b" && $0.age == nil && $0.handling.forward == .uriMiss })
        }
    }

    @Test func `what the answer varies on does`() async throws {
        let door = Door()
        try await withCache { request in
            await door.pass()
            return ScriptedResponse(
                200, "Cache-Control: max-age=10", "Vary: Accept", body: request.fields.first("accept") ?? "")
        } _: { bench in
            let responses = try await together(20, bench, door) { ["X-Id: \($0)", "Accept: \($0 % 2)"] }
            #expect(bench.count == 2)
            for text in ["0", "1"] { #expect(responses.count { $0.text == text } == 10) }
        }
    }

    @Test(arguments: ["no-store", "private", "no-store, max-age=10"])
    func `what may not be stored goes to one request only`(control: String) async throws {
        let door = Door()
        try await withCache { request in
            await door.pass()
            return ScriptedResponse(200, "Cache-Control: \(control)", body: request.fields.first("x-id") ?? "")
        } _: { bench in
            let responses = try await together(8, bench, door) { ["X-Id: \($0)"] }
            #expect(bench.count == 8 && Set(responses.map(\.text)).count == 8)
            #expect(responses.allSatisfy { !$0.handling.isCollapsed })
        }
    }

    @Test func `credentials keep requests apart`() async throws {
        let door = Door()
        try await withCache { request in
            await door.pass()
            return ScriptedResponse(
                200, "Cache-Control: max-age=10", body: request.fields.first("authorization") ?? "none")
        } _: { bench in
            let responses = try await together(6, bench, door, fetches: 3) { number in
                number % 3 == 0 ? [] : ["Authorization: \(number % 3)"]
            }
            // One for the two without credentials, which may be stored; one for each with them, which may not.
            #expect(bench.count == 5)
            for text in ["none", "1", "2"] { #expect(responses.count { $0.text == text } == 2) }
        }
    }

    @Test func `so do credentials in the URL, in sharing, in selecting and in failing`() async throws {
        let door = Door()
        let (mine, nobodys) = ("http://me:x@origin.test/a", "http://origin.test/a")
        try await withCache {
            $0.caching.errorMaxAge = .seconds(60)
        } origin: { request in
            await door.pass()
            let credentials = request.fields.first("authorization")
            return credentials == nil
                ? ScriptedResponse(401, "X: 0")
                : ScriptedResponse(200, "Cache-Control: public, max-age=10", "Vary: Authorization").picture()
        } _: { bench in
            async let refused = bench.imageRefusal { $0.source = .url(nobodys) }
            async let answered = bench.image(nil) { $0.source = .url(mine) }
            await door.arrivals(2)
            door.open()
            let answers = (await refused, try await answered)
            #expect(answers.0?.code == .fetchFailed && answers.1.record.response.status == 200)
            #expect(await bench.imageRefusal { $0.source = .url(nobodys) }?.code == .fetchFailed)
            let again = try await bench.image(nil) { $0.source = .url(mine) }
            #expect(again.originalOutcome == .memory)
            #expect(bench.count == 2)
        }
    }

    @Test func `a picture and the response itself share one fetch`() async throws {
        let door = Door()
        try await withCache { _ in
            await door.pass()
            return ScriptedResponse(200, "Cache-Control: max-age=10").picture()
        } _: { bench in
            async let whole = bench.pipeline.original(for: bench.request([]))
            async let picture = bench.image()
            await bench.waiting(2)
            door.open()
            let answers = (try await whole, try await picture)
            #expect(answers.0.body == sample("originals/night-tiny.jpg") && answers.1.outcome == .rendered)
            #expect(bench.count == 1)
        }
    }

    @Test(arguments: [("X: 0", 1), ("Cache-Control: no-store", 10), ("Cache-Control: private", 10)])
    func `an error is everybody's who waits for a picture, unless the origin says it is one's own`(
        control: String, fetches: Int
    ) async throws {
        let door = Door()
        try await withCache { _ in
            await door.pass()
            return ScriptedResponse(500, control)
        } _: { bench in
            let codes = await withTaskGroup(of: PipelineError.Code?.self) { group in
                for _ in 0..<10 { group.addTask { await bench.imageRefusal()?.code } }
                await bench.waiting(10)
                door.open()
                return await group.reduce(into: []) { $0.append($1) }
            }
            #expect(bench.count == fetches && codes == Array(repeating: .fetchFailed, count: 10))
        }
    }

    @Test(arguments: [(401, 3), (403, 3), (429, 3), (404, 1), (503, 1)])
    func `a refusal that may depend on who asks is not for those who ask otherwise`(
        status: Int, fetches: Int
    ) async throws {
        let door = Door()
        try await withCache { _ in
            await door.pass()
            return ScriptedResponse(status)
        } _: { bench in
            await withTaskGroup(of: PipelineError?.self) { group in
                for cookie in ["a", "b"] {
                    for _ in 0..<2 {
                        group.addTask { await bench.imageRefusal { $0.fields = [HeaderField("Cookie", cookie)] } }
                    }
                }
                await bench.waiting(4)
                door.open()
                for await error in group { #expect(error != nil) }
            }
            #expect(bench.count == fetches, "\(status)")
        }
    }

    @Test(arguments: [
        ("no-cache", 2), ("max-age=0", 2), ("max-age=1, must-revalidate", 1), ("max-age=60", 1),
        ("max-age=60, no-cache=\"set-cookie\"", 1),
    ])
    func `an answer that may not be reused is not for a client that asked with other fields`(
        control: String, fetches: Int
    ) async throws {
        let door = Door()
        try await withCache { request in
            await door.pass()
            let cookie = request.fields.first("cookie") ?? ""
            return ScriptedResponse(
                200, "Cache-Control: \(control)", "ETag: \"a\"", "Set-Cookie: sid=\(cookie)", body: cookie)
        } _: { bench in
            let answers = await withTaskGroup(of: OriginalResponse?.self) { group in
                for cookie in ["a", "b"] { group.addTask { try? await bench.get("Cookie: \(cookie)") } }
                await bench.waiting(2)
                door.open()
                return await group.reduce(into: []) { $0.append($1) }
            }
            #expect(bench.count == fetches)
            #expect(Set(answers.map { $0?.text }).count == fetches)
            let cookies = answers.compactMap { $0?.values("set-cookie").first }
            #expect(cookies.count == (control.contains("set-cookie") ? 1 : 2) && !answers.contains { $0 == nil })
        }
    }

    @Test func `those who ask alike share what may not be reused later`() async throws {
        let door = Door()
        try await withCache { _ in
            await door.pass()
            return ScriptedResponse(200, "Cache-Control: no-cache", "ETag: \"a\"", body: "x")
        } _: { bench in
            await withTaskGroup(of: String?.self) { group in
                for _ in 0..<5 { group.addTask { try? await bench.get("Cookie: a").text } }
                await bench.waiting(5)
                door.open()
                for await text in group { #expect(text == "x") }
            }
            #expect(bench.count == 1)
        }
    }

    @Test func `validations are shared as well`() async throws {
        let door = Door()
        try await withCache { _ in
            ScriptedResponse(200, "Cache-Control: no-cache", "ETag: \"a\"", "Vary: Accept", body: "b")
        } _: { bench in
            _ = try await bench.get()
            bench.origin.answers { _ in
                await door.pass()
                return ScriptedResponse(304, "ETag: \"a\"")
            }
            let responses = try await together(10, bench, door) { ["X-Id: \($0)"] }
            #expect(bench.count == 2 && responses.allSatisfy { $0.text == "b" })
            #expect(responses.allSatisfy { $0.handling.forwardStatus == 304 })
        }
    }

    @Test func `a hundred requests for one variant are one fetch and one render`() async throws {
        let door = Door()
        let renderer = CountingRenderer()
        try await withCache {
            $0.rendering.renderer = renderer
        } origin: { _ in
            await door.pass()
            return ScriptedResponse(200, "Cache-Control: max-age=10").picture()
        } _: { bench in
            let responses = try await withThrowingTaskGroup(of: ImageResponse.self) { group in
                for _ in 0..<100 { group.addTask { try await bench.image() } }
                await bench.waiting(100)
                door.open()
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(bench.count == 1 && renderer.renders == 1)
            #expect(Set(responses.map(\.digest)).count == 1)
            // The request that fetched need not be the one that rendered.
            #expect(responses.count { !$0.isCollapsed } <= 1)
        }
    }
}

@Suite(.timeLimit(.minutes(20))) struct LeavingTests {
    @Test func `one of two waiters leaves and the other is answered by the same fetch`() async throws {
        let door = Door()
        try await withCache { _ in
            await door.pass()
            return ScriptedResponse(200, "Cache-Control: max-age=10").picture()
        } _: { bench in
            let first = Task { try await bench.image() }
            await bench.waiting(1)
            let second = Task { try await bench.image() }
            await bench.waiting(2)
            first.cancel()
            let error = await #expect(throws: PipelineError.self) { try await first.value }
            #expect(error?.code == .cancelled)
            door.open()
            let answer = try await second.value
            #expect(answer.outcome == .rendered)
            #expect(bench.count == 1)
        }
    }

    @Test func `the last waiter leaving ends the fetch, and the next request begins another`() async throws {
        let door = Door()
        try await withCache { _ in
            await door.pass()
            return ScriptedResponse(200, "Cache-Control: max-age=10").picture()
        } _: { bench in
            let only = Task { try await bench.image() }
            await door.arrivals(1)
            only.cancel()
            await #expect(throws: PipelineError.self) { try await only.value }
            let next = Task { try await bench.image() }
            await door.arrivals(2)
            door.open()
            let answer = try await next.value
            #expect(answer.outcome == .rendered)
        }
    }

    @Test func `a request that finishes when abandoned fills every cache, variant included`() async throws {
        let door = Door()
        let folder = CacheFolder()
        try await withCache {
            $0.cacheFolder = folder.path
        } origin: { _ in
            await door.pass()
            return ScriptedResponse(200, "Cache-Control: max-age=10").picture()
        } _: { bench in
            let only = Task { try await bench.image { $0.finishWhenAbandoned = true } }
            await door.arrivals(1)
            only.cancel()
            let error = await #expect(throws: PipelineError.self) { try await only.value }
            #expect(error?.code == .cancelled)
            door.open()
            await bench.pipeline.drain()
            #expect(await bench.pipeline.diskStatistics()?.variants.entries == 1)
            let stored = try await bench.image { $0.policy = .cacheOnly }
            #expect(stored.outcome == .memory && bench.count == 1)
        }
    }

    @Test func `shutting down waits for what is to finish and for what is to be stored`() async throws {
        let door = Door()
        let folder = CacheFolder()
        let bench = try CachingBench({ $0.cacheFolder = folder.path }) { _ in
            await door.pass()
            return ScriptedResponse(200, "Cache-Control: max-age=10").picture()
        }
        let only = Task { try await bench.image { $0.finishWhenAbandoned = true } }
        await door.arrivals(1)
        only.cancel()
        await #expect(throws: PipelineError.self) { try await only.value }
        let down = Task { await bench.pipeline.shutdown() }
        door.open()
        await down.value
        let store = try DiskStore(folder: folder.path)
        let statistics = try store.statistics()
        #expect(statistics.variants.entries == 1 && statistics.records.entries == 1)
        store.close()
    }
}
