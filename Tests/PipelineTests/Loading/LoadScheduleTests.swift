@testable import PipelineFetching
import Synchronization
import TestSupport
import Testing
import Variants

@testable import Pipeline

/// Loads of a few pictures that join each other, are cancelled, raised, purged and shut down at random moments.
@Suite(.timeLimit(.minutes(20))) struct LoadScheduleTests {
    private struct Watched {
        let load: LoadTask
        /// Whether something may have cancelled it.
        var mayBeCancelled = false
        var readers: [Task<[Int], Never>] = []
        var waiters: [Task<PipelineError.Code?, Never>] = []
    }

    private static func code(_ load: LoadTask) async -> PipelineError.Code? {
        do throws(PipelineError) {
            _ = try await load.response
            return nil
        } catch { return error.code }
    }

    @Test(arguments: 0..<100)
    func `each caller gets one outcome, no cancelled or failed load fails one that could succeed, nothing is left`(
        seed: Int
    ) async throws {
        let chance = Mutex(FuzzRandom(seed: UInt64(seed)))
        func below(_ limit: Int) -> Int { chance.withLock { $0.below(limit) } }
        let isWell = seed % 2 == 0
        let isShutDown = seed % 5 == 4
        try await withCache {
            $0.cacheFolder = nil
            $0.caching.errorMaxAge = .zero
        } origin: { request throws(FetchError) in
            let (turns, kind) = chance.withLock { ($0.below(20), $0.below(isWell ? 3 : 6)) }
            for _ in 0..<turns { await Task.yield() }
            let isKnown = request.fields.first("if-none-match") != nil
            switch kind {
            case 0 where isKnown: return ScriptedResponse(304, "ETag: \"1\"", "Cache-Control: max-age=1")
            case 0, 1:
                return ScriptedResponse(200, "ETag: \"1\"", "Cache-Control: max-age=1, stale-while-revalidate=60")
                    .picture()
            case 2: return ScriptedResponse(200, "Cache-Control: no-store").picture()
            case 3: return ScriptedResponse(404)
            case 4: return ScriptedResponse(200, "Cache-Control: max-age=1", body: "no picture")
            default: throw FetchError(.unreachable, request.url, "down")
            }
        } _: { bench in
            var watched: [Watched] = []
            for _ in 0..<40 {
                let at = watched.isEmpty ? 0 : below(watched.count)
                switch below(11) {
                case 1 where !watched.isEmpty:
                    watched[at].mayBeCancelled = true
                    watched[at].load.cancel()
                case 2 where !watched.isEmpty: watched[at].load.priority = [.low, .normal, .high][below(3)]
                case 3 where !watched.isEmpty:
                    let load = watched[at].load
                    watched[at].readers.append(Task { await load.events.reduce(into: []) { $0.append($1.place) } })
                case 4 where !watched.isEmpty:
                    let load = watched[at].load
                    watched[at].waiters.append(Task { await Self.code(load) })
                case 5 where !watched.isEmpty:
                    watched[at].mayBeCancelled = true
                    (watched[at].readers.last)?.cancel()
                    (watched[at].waiters.first)?.cancel()
                case 6: _ = try await bench.pipeline.purge(.source(.url("http://origin.test/\(below(3))")))
                case 7: bench.clock.advance(1)
                default:
                    let recipe = [nil, "thumbnail:20", "thumbnail:30"][below(3)]
                    var request = ImageRequest(
                        .url("http://origin.test/\(below(3))"), recipe: try recipe.map { try Recipe($0) })
                    request.finishWhenAbandoned = below(4) == 0
                    watched.append(Watched(load: bench.pipeline.load(request)))
                }
                for _ in 0..<below(30) { await Task.yield() }
            }
            if isShutDown { await bench.pipeline.shutdown() }
            for one in watched {
                let code = await Self.code(one.load)
                let status = one.load.status
                #expect(status.phase == .finished && status.isCancelled == (code == .cancelled))
                #expect(code != .cancelled || one.mayBeCancelled)
                if isWell, !isShutDown { #expect(code == nil || code == .cancelled) }
                for waiter in one.waiters {
                    let got = await waiter.value
                    #expect(got == code || got == .cancelled && one.mayBeCancelled)
                }
                for reader in one.readers {
                    let places = await reader.value
                    #expect(places == places.sorted() && places.count { $0 == 4 } <= 1)
                    #expect(places.last == 4 || one.mayBeCancelled)
                }
                #expect(one.load.waiting == 0)
            }
            await bench.pipeline.drain()
            await waitOrRecord { bench.pipeline.fetches.waiting + bench.pipeline.renders.waiting > 0 }
        }
    }
}
