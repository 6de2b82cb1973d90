@testable import PipelineCaching
@testable import PipelineSupport
import Glibc
import TestSupport
import Testing
import Variants

@testable import Pipeline

/// A picture of some 700 kB, most of it behind its end, where decoders do not look.
private let long = sample("originals/night-tiny.jpg") + bytes(700_000, seed: 7)
private let kept: KeyValuePairs = ["Content-Type": "image/jpeg", "Cache-Control": "max-age=600"]

/// The regular files below a folder with a part in their path.
private func files(below folder: String, _ part: String) -> [String] {
    guard let directory = opendir(folder) else { return [] }
    defer { closedir(directory) }
    var found: [String] = []
    while let entry = readdir(directory) {
        let name = withUnsafePointer(to: &entry.pointee.d_name) {
            String(cString: UnsafeRawPointer($0).assumingMemoryBound(to: CChar.self))
        }
        let path = folder + "/" + name
        var info = stat()
        guard name != ".", name != "..", lstat(path, &info) == 0 else { continue }
        if info.st_mode & S_IFMT == S_IFDIR { found += files(below: path, part) }
        if info.st_mode & S_IFMT == S_IFREG, path.contains(part) { found.append(path) }
    }
    return found
}

struct LongOriginalsTests {
    private static func spooling(_ configuration: inout PipelineConfiguration) {
        configuration.fetch.maxBytesInMemory = 100_000
    }

    @Test func `a long original goes to disk without passing through memory, and is rendered from there`()
        async throws
    {
        try await withPipeline(Self.spooling) { _ in
            .response(200, kept, body: long)
        } _: { bench, pipeline in
            let first = try await pipeline.respond(to: bench.request())
            #expect(first.outcome == .rendered && first.record.digest == sha256Hex(long))
            #expect(first.record.length == long.count && first.record.header?.format == .jpeg)
            await pipeline.drain()
            #expect(pipeline.memoryStatistics.originals.bytes < 100_000)
            let disk = try #require(pipeline.tiers.folder?.store)
            #expect(try disk.originalBody(digest: sha256Hex(long)) == long)
            let report = try disk.verify()
            #expect(report.faults.isEmpty)
            #expect(files(below: bench.cache.path, "/temporary/").isEmpty)

            let second = try await pipeline.respond(to: bench.request("/a.jpg", "thumbnail:30"))
            #expect(second.outcome == .rendered && second.width <= 30)
            let whole = try await pipeline.respond(to: bench.request("/a.jpg", nil))
            #expect(whole.bytes == long && whole.format == .jpeg)
            #expect(bench.origin.requests.count == 1)
            #expect(pipeline.memoryStatistics.originals.bytes < 100_000)
        }
    }

    @Test func `a long body is handed out as a file where that is asked for, else as bytes`() async throws {
        try await withPipeline(Self.spooling) { _ in
            .response(200, kept, body: long)
        } _: { bench, pipeline in
            var request = OriginalRequest(url: bench.origin.url("/a.jpg"))
            let bytes = try await pipeline.original(for: request)
            #expect(bytes.body == long && bytes.file == nil)
            await pipeline.drain()
            request.acceptsFile = true
            let stored = try await pipeline.original(for: request)
            #expect(stored.body.isEmpty && stored.file?.bytes() == long && stored.handling.isHit)
            #expect(stored.file?.bytes(10..<20) == Array(long[10..<20]))
            #expect(stored.file?.bytes(0..<(long.count + 1)) == nil)
            // A holder of the body keeps it whole, even if the entry is removed.
            _ = try await pipeline.purge(.source(.url(request.url)))
            #expect(files(below: bench.cache.path, "/bodies/").isEmpty)
            #expect(stored.file?.bytes() == long)
            let fetched = try await pipeline.original(for: request)
            #expect(fetched.file?.bytes() == long && !fetched.handling.isHit)
            #expect(bench.origin.requests.count == 2)
        }
    }

    @Test func `until it is on disk a long original is found where it waits`() async throws {
        try await withPipeline(Self.spooling) { _ in
            .response(200, kept, body: long)
        } _: { bench, pipeline in
            let stall = Stall()
            stall.hold(pipeline.tiers)
            // Even after an error: the pipeline's end waits for the writer.
            defer { stall.open() }
            let request = OriginalRequest(url: bench.origin.url("/a.jpg"))
            let first = try await pipeline.original(for: request)
            let second = try await pipeline.original(for: request)
            let rendered = try await pipeline.respond(to: bench.request())
            #expect(first.body == long && second.body == long && second.handling.isHit)
            #expect(rendered.outcome == .rendered && bench.origin.requests.count == 1)
            #expect(files(below: bench.cache.path, "/bodies/").isEmpty)
        }
    }

    @Test func `what may not be stored, or no tier is to keep, leaves no file`() async throws {
        try await withPipeline(Self.spooling) { request in
            request.path == "/no-store"
                ? .response(200, ["Content-Type": "image/jpeg", "Cache-Control": "no-store"], body: long)
                : .response(200, kept, body: long)
        } _: { bench, pipeline in
            var request = OriginalRequest(url: bench.origin.url("/no-store"))
            let unstored = try await pipeline.original(for: request)
            request.url = bench.origin.url("/a.jpg")
            request.storage = []
            let unkept = try await pipeline.original(for: request)
            #expect(unstored.body == long && unkept.body == long)
            await pipeline.drain()
            #expect(files(below: bench.cache.path, "/bodies/").isEmpty)
            #expect(files(below: bench.cache.path, "/temporary/").isEmpty)
        }
    }

    @Test(arguments: [true, false])
    func `what is for memory alone stays in memory, with and without a folder`(hasFolder: Bool) async throws {
        try await withPipeline { configuration in
            Self.spooling(&configuration)
            if !hasFolder { configuration.cacheFolder = nil }
        } handler: { _ in
            .response(200, kept, body: long)
        } _: { bench, pipeline in
            var request = OriginalRequest(url: bench.origin.url("/a.jpg"))
            request.storage = [.originalsInMemory]
            request.acceptsFile = true
            let first = try await pipeline.original(for: request)
            let second = try await pipeline.original(for: request)
            #expect(first.body == long && second.body == long && second.handling.detail == "memory")
            #expect(bench.origin.requests.count == 1)
        }
    }

    @Test func `a long stored body that was damaged is fetched again`() async throws {
        try await withPipeline(Self.spooling) { _ in
            .response(200, kept, body: long)
        } _: { bench, pipeline in
            let request = OriginalRequest(url: bench.origin.url("/a.jpg"))
            _ = try await pipeline.original(for: request)
            await pipeline.drain()
            let hash = sha256Hex(long)
            bench.cache.overwrite("bodies/\(hash.prefix(2))/\(hash)", at: 400_000, with: [1, 2, 3])
            let again = try await pipeline.original(for: request)
            #expect(again.body == long && !again.handling.isHit && bench.origin.requests.count == 2)
        }
    }

    @Test func `a long body that is no image says so, fetched or stored`() async throws {
        let text = Array("no image at all. ".utf8) + bytes(300_000, seed: 3)
        try await withPipeline(Self.spooling) { _ in
            .response(200, kept, body: text)
        } _: { bench, pipeline in
            let first = await refusal(pipeline, try bench.request())
            await pipeline.drain()
            let second = await refusal(pipeline, try bench.request())
            #expect(first?.code == .notAnImage && second?.code == .notAnImage && first?.message == second?.message)
            #expect(bench.origin.requests.count == 1)
        }
    }

    @Test func `a file without a name is taken over, one that cannot be linked is copied`() throws {
        let folder = CacheFolder()
        let store = try DiskStore(folder: folder.path)
        defer { store.close() }
        let one = bytes(300_000, seed: 1)
        let spooled = try #require(SpooledBody(folder: folder.path))
        #expect(spooled.append(one))
        #expect(try store.storeOriginal(record("http://a/1", one), content: .file(spooled), generation: 1))
        var (ours, stored) = (stat(), stat())
        let path = "\(folder.path)/bodies/\(digest(one).prefix(2))/\(digest(one))"
        #expect(fstat(spooled.descriptor, &ours) == 0 && lstat(path, &stored) == 0)
        #expect(ours.st_ino == stored.st_ino && stored.st_mode & 0o777 == 0o600)

        let two = bytes(300_000, seed: 2)
        let name = folder.path + "/gone"
        let descriptor = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        unlink(name)
        let nameless = SpooledBody(descriptor: descriptor, count: 0)
        #expect(nameless.append(two))
        #expect(try store.storeOriginal(record("http://a/2", two), content: .file(nameless), generation: 1))
        #expect(try store.originalBody(digest: digest(one)) == one)
        #expect(try store.originalBody(digest: digest(two)) == two)
        #expect(try store.verify()[.damagedBodies] == 0 && files(below: folder.path, "/temporary/").isEmpty)
    }

    @Test func `a file that was cut before it is stored stores nothing`() throws {
        let folder = CacheFolder()
        let store = try DiskStore(folder: folder.path)
        defer { store.close() }
        let body = bytes(300_000, seed: 1)
        let spooled = try #require(SpooledBody(folder: folder.path))
        #expect(spooled.append(body) && ftruncate(spooled.descriptor, 1000) == 0)
        #expect(throws: StoreError.self) {
            try store.storeOriginal(record("http://a/1", body), content: .file(spooled), generation: 1)
        }
        #expect(try store.originalBody(digest: digest(body)) == nil)
        #expect(try store.verify()[.orphanFiles] == 0 && files(below: folder.path, "/temporary/").isEmpty)
    }
}
