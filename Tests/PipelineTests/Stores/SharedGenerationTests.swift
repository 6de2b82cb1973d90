@testable import PipelineCaching
import Glibc
import TestSupport
import Testing
import Variants

@testable import Pipeline

/// Messages about purges between processes on one folder.
@Suite struct SharedGenerationTests {
    let folder = CacheFolder()

    private func stored(_ store: DiskStore, _ source: String, seed: Int) throws -> OriginalRecord {
        let body = bytes(300, seed: seed)
        let original = record(source, body)
        #expect(try store.storeOriginal(original, body: body, generation: store.generationNow()))
        return original
    }

    @Test func `a purge is seen by every store on the folder, and told by name`() throws {
        let (one, two) = (try DiskStore(folder: folder.path), try DiskStore(folder: folder.path))
        let original = try stored(one, "http://a/", seed: 1)
        let before = try #require(two.generationHint)
        #expect(try two.purges(since: before) == PurgeLog(mark: PurgeMark(before), names: []))
        _ = try one.purge(source: "http://a/")
        #expect(two.generationHint == before + 1)
        #expect(
            try two.purges(since: before)
                == PurgeLog(mark: PurgeMark(before + 1), names: ["http://a/", original.digest]))
        _ = try two.purge(source: "http://b/")
        #expect(try one.purges(since: before + 1) == PurgeLog(mark: PurgeMark(before + 2), names: ["http://b/"]))
        try one.clear()
        #expect(two.generationHint == before + 3)
        #expect(try two.purges(since: before + 2).names == nil)
    }

    @Test func `a purge by prefix is told as one, with the digests that it took, and voids what it covers alone`()
        throws
    {
        let (one, two) = (try DiskStore(folder: folder.path), try DiskStore(folder: folder.path))
        let gone = try stored(one, "http://a/é", seed: 1)
        _ = try stored(one, "http://b/", seed: 2)
        let before = try two.generationNow()
        _ = try one.purge(SourceSelection(prefixes: ["http://a/é"]))
        let log = try two.purges(since: before)
        #expect(log.names == [gone.digest] && log.selections == [SourceSelection(prefixes: ["http://a/é"])])
        // Of two that differ in bytes alone both are kept, and told as a purge of everything.
        _ = try one.purge(SourceSelection(prefixes: ["http://a/e\u{301}", "http://a/é"]))
        #expect(try two.purges(since: before).names == nil)
        func keeps(_ source: String) throws -> Bool {
            try two.storeOriginal(record(source, [7]), body: [7], generation: before)
        }
        #expect(try !keeps("http://a/é/1") && !keeps("http://a/e\u{301}/1"))
        #expect(try keeps("http://a/e") && keeps("http://b/1"))
        // A variant of an unknown source may be one of them.
        let entry = variant("v", of: digest([9]), [1, 2])
        #expect(try !two.storeVariant(entry, body: [1, 2], generation: before))
        #expect(try two.storeVariant(entry, body: [1, 2], generation: before, source: "http://b/"))
    }

    @Test func `a log that does not reach back says so`() throws {
        let store = try DiskStore(folder: folder.path)
        let first = try store.purge(source: "http://a/").mark.rawValue
        try folder.sql("UPDATE purges SET time = 1")
        _ = try store.purge(source: "http://b/")
        #expect(try store.purges(since: 1).names == nil)
        #expect(try store.purges(since: first).names == ["http://b/"])
    }

    @Test func `a purge that was told of and never committed is taken back`() throws {
        let (one, two) = (try DiskStore(folder: folder.path), try DiskStore(folder: folder.path))
        let now = try one.generationNow()
        // The state after a process is killed between the two.
        folder.overwrite("generation", at: 0, with: withUnsafeBytes(of: now + 8) { Array($0) })
        #expect(one.generationHint == now + 8 && two.generationHint == now + 8)
        #expect(try one.purges(since: now) == PurgeLog(mark: PurgeMark(now), names: []))
        #expect(one.generationHint == now && two.generationHint == now)
    }

    @Test(arguments: ["missing", "short", "link"])
    func `a counter that is missing or invalid is created again, and stores find the new one`(how: String) throws {
        let one = try DiskStore(folder: folder.path)
        let purged = try one.purge(source: "http://a/").mark.rawValue
        let path = "\(folder.path)/generation"
        unlink(path)
        if how == "short" { folder.overwrite("generation", at: 0, with: [1, 2, 3]) }
        if how == "link" { symlink("/etc/hostname", path) }
        let two = try DiskStore(folder: folder.path)
        #expect(two.generationHint == purged)
        var info = stat()
        #expect(lstat(path, &info) == 0 && info.st_size == 4096 && info.st_mode & 0o7777 == 0o600)
        // The next write finds the file that took the other's place.
        _ = try stored(one, "http://c/", seed: 3)
        _ = try two.purge(source: "http://b/")
        // That the file was replaced is noticed after some milliseconds.
        while one.generationHint == purged { sched_yield() }
        #expect(one.generationHint == 0)
        #expect(try one.purges(since: purged).names == ["http://b/"])
        #expect(one.generationHint == purged + 1)
    }

    @Test(arguments: [0, 3]) func `a generation file that is truncated while in use is created again`(length: off_t)
        throws
    {
        let (one, two) = (try DiskStore(folder: folder.path), try DiskStore(folder: folder.path))
        let purged = try one.purge(source: "http://a/").mark.rawValue
        #expect(two.generationHint == purged)
        #expect(truncate("\(folder.path)/generation", length) == 0)
        #expect(one.generationHint == 0 && two.generationHint == 0)
        #expect(try two.purges(since: 1).names == ["http://a/"])
        #expect(try one.purge(source: "http://b/").mark.rawValue == purged + 1)
        _ = try two.purges(since: 1)
        #expect(one.generationHint == purged + 1 && two.generationHint == purged + 1)
    }

    @Test func `a purge in a folder that replaced the former one is seen by a pipeline that answers from memory`()
        async throws
    {
        try await withPipeline { _ in
            picture("night-tiny.jpg", ["Content-Type": "image/jpeg", "Cache-Control": "max-age=600"])
        } _: { bench, pipeline in
            let request = try bench.request()
            _ = try await pipeline.respond(to: request)
            await pipeline.drain()
            #expect(try await pipeline.respond(to: request).outcome == .memory)
            #expect(rename(bench.cache.path, bench.cache.path + "-elsewhere") == 0)
            let other = try DiskStore(folder: bench.cache.path)
            guard case .url(let source) = request.source else { throw CancellationError() }
            _ = try other.purge(source: source)
            while bench.origin.requests.count < 2 { _ = try await pipeline.respond(to: request) }
            other.close()
        }
    }

    @Test(arguments: ["(1 << 62) + 5", "0", "-7"])
    func `a generation out of range is damage, and purges are noticed afterwards`(value: String) throws {
        let one = try DiskStore(folder: folder.path)
        let before = try one.generationNow()
        try folder.sql("UPDATE state SET value = \(value) WHERE name = 'generation'")
        let purged = try one.purge(source: "http://a/").mark.rawValue
        #expect(purged > before && one.generationHint == purged && one.rebuilds == 1)
    }

    @Test func `an index that was created again counts as a purge of everything`() throws {
        let store = try DiskStore(folder: folder.path)
        _ = try stored(store, "http://a/", seed: 1)
        let purged = try store.purge(source: "http://b/").mark.rawValue
        store.close()
        folder.overwrite("cache.sqlite", at: 0, with: bytes(8192, seed: 7))
        unlink("\(folder.path)/cache.sqlite-wal")
        let other = try DiskStore(folder: folder.path)
        #expect(other.rebuilds == 1 && other.generationHint == purged + 1)
        #expect(try other.purges(since: purged).names == nil)
    }
}

/// Two pipelines on one folder, as two processes are.
struct SharedPurgeTests {
    @Test func `what another pipeline purged is fetched again, and the rest stays in memory`() async throws {
        let fields: KeyValuePairs<String, String> = ["Content-Type": "image/jpeg", "Cache-Control": "max-age=600"]
        try await withPipeline { request in
            picture(request.path == "/a.jpg" ? "night-tiny.jpg" : "meadow-small.jpg", fields)
        } _: { bench, pipeline in
            let (a, b) = (try bench.request("/a.jpg"), try bench.request("/b.jpg"))
            for request in [a, b] { _ = try await pipeline.respond(to: request) }
            await pipeline.drain()
            #expect(try await pipeline.respond(to: a).outcome == .memory)
            let other = try bench.pipeline()
            #expect(try await other.purge(.source(a.source)).variants == 1)
            #expect(try await pipeline.respond(to: b).outcome == .memory)
            #expect(try await pipeline.respond(to: a).outcome == .rendered)
            #expect(bench.origin.requests.count == 3)
            #expect(try await pipeline.respond(to: a).outcome == .memory)
            await other.shutdown()
        }
    }

    @Test func `emptying the folder empties the memory of others`() async throws {
        try await withPipeline { _ in
            picture("night-tiny.jpg", ["Content-Type": "image/jpeg", "Cache-Control": "max-age=600"])
        } _: { bench, pipeline in
            let request = try bench.request()
            _ = try await pipeline.respond(to: request)
            await pipeline.drain()
            let other = try DiskStore(folder: bench.cache.path)
            try other.clear()
            #expect(try await pipeline.respond(to: request).outcome == .rendered)
            #expect(bench.origin.requests.count == 2)
        }
    }

    @Test func `what another pipeline's purge overtakes is stored nowhere`() async throws {
        let (asked, asks) = AsyncStream<Void>.makeStream()
        let door = Gate()
        let bench = try PipelineBench { _ in .response(500, [:]) }
        let pipeline = try bench.pipeline { $0.transport = GatedTransport(asks: asks, door: door) }
        let other = try bench.pipeline()
        let request = try bench.request()
        let running = Task { try await pipeline.respond(to: request) }
        for await _ in asked { break }
        _ = try await other.purge(.source(request.source))
        door.open()
        #expect(try await running.value.outcome == .rendered)
        await pipeline.drain()
        let disk = await pipeline.diskStatistics()
        #expect(disk?.records.entries == 0 && disk?.originals.entries == 0 && disk?.variants.entries == 0)
        // The next look-up finds nothing in memory either.
        var again = request
        again.policy = .cacheOnly
        #expect(await refusal(pipeline, again)?.code == .notCached)
        #expect(pipeline.memoryStatistics.originals.entries == 0 && pipeline.memoryStatistics.variants.entries == 0)
        bench.origin.stop()
        await other.shutdown()
        await pipeline.shutdown()
    }

    @Test func `a purge of one source leaves work on others in memory, and finds their waiting writes`() async throws {
        let fields: KeyValuePairs<String, String> = ["Content-Type": "image/jpeg", "Cache-Control": "max-age=600"]
        let (asked, asks) = AsyncStream<Void>.makeStream()
        let door = Gate()
        let bench = try PipelineBench { _ in picture("meadow-small.jpg", fields) }
        let pipeline = try bench.pipeline { $0.transport = GatedTransport(asks: asks, door: door) }
        let bare = try bench.pipeline { $0.memory = .init(originals: 0, variants: 0) }
        let other = try bench.pipeline()
        let (a, b) = (try bench.request("/a.jpg"), try bench.request("/b.jpg"))
        let running = Task { try await pipeline.respond(to: b) }
        for await _ in asked { break }
        _ = try await other.purge(.source(a.source))
        _ = try await pipeline.purge(.source(a.source))
        door.open()
        #expect(try await running.value.outcome == .rendered)
        #expect(try await pipeline.respond(to: b).outcome == .memory)
        let statistics = pipeline.memoryStatistics
        #expect(statistics.records.entries == 1 && statistics.originals.entries == 1)

        let c = try bench.request("/c.jpg")
        let stall = Stall()
        stall.hold(bare.tiers)
        #expect(try await bare.respond(to: c).outcome == .rendered)
        let before = bench.origin.requests.count
        _ = try await other.purge(.source(a.source))
        let waiting = try await bare.respond(to: c)
        #expect(waiting.outcome == .memory && bench.origin.requests.count == before)
        _ = try await other.purge(.source(c.source))
        stall.open()
        #expect(try await bare.respond(to: c).outcome == .rendered)
        bench.origin.stop()
        for each in [other, bare, pipeline] { await each.shutdown() }
    }
}
