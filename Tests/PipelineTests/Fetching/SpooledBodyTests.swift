@testable import PipelineFetching
@testable import PipelineSupport
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Pipeline

private let long = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 9) }

/// Gives a transport that spools beyond 100 kB into a folder, and the folder.
private func withSpool(
    folder: String? = nil, _ handler: @escaping @Sendable (OriginRequest) -> OriginReply,
    _ body: (LoopbackOrigin, RetryingTransport<CurlTransport>) async throws -> Void
) async throws {
    let cache = CacheFolder()
    let origin = try LoopbackOrigin(handler: handler)
    defer { origin.stop() }
    var configuration = FetchConfiguration()
    configuration.allowPrivateAddresses = .all
    configuration.spoolFolder = folder ?? cache.path
    configuration.maxBytesInMemory = 100_000
    configuration.maxRetries = 2
    mkdir(cache.path, 0o755)
    let base = CurlTransport(configuration)
    defer { base.shutdown() }
    try await body(origin, RetryingTransport(base, configuration: configuration) { _ in })
    if folder == nil {
        let names = ScratchFolder.names(in: cache.path)
        #expect(names.isEmpty, "left behind: \(names)")
    }
}

struct SpooledBodyTests {
    @Test func `a long body comes as a file where that is accepted, else as bytes`() async throws {
        try await withSpool { request in
            .response(200, body: request.path == "/long" ? long : Array(long[..<50_000]))
        } _: { origin, transport in
            var request = FetchRequest(url: try SourceURL(origin.url("/long")))
            let plain = try await transport.fetch(request)
            #expect(plain.body == long && plain.file == nil && plain.digest == sha256Hex(long))
            request.acceptsFile = true
            let spooled = try await transport.fetch(request)
            #expect(spooled.body.isEmpty && spooled.file?.count == long.count && spooled.file?.bytes() == long)
            #expect(spooled.digest == sha256Hex(long))
            request.url = try SourceURL(origin.url("/short"))
            let short = try await transport.fetch(request)
            #expect(short.file == nil && short.body == Array(long[..<50_000]))
        }
    }

    @Test func `a broken download goes on in its file`() async throws {
        try await withSpool { request in
            guard request["range"] == "bytes=2000000-" else {
                return .raw(
                    "HTTP/1.1 200 OK\r\nETag: \"a\"\r\nContent-Length: \(long.count)\r\n\r\n",
                    then: [.bytes(Array(long[..<2_000_000]))])
            }
            return .response(
                206, ["ETag": "\"a\"", "Content-Range": "bytes 2000000-2999999/3000000"],
                body: Array(long[2_000_000...]))
        } _: { origin, transport in
            var request = FetchRequest(url: try SourceURL(origin.url("/")))
            request.acceptsFile = true
            let response = try await transport.fetch(request)
            #expect(response.file?.bytes() == long && response.digest == sha256Hex(long))
            #expect(origin.requests.count == 2)
        }
    }

    @Test(arguments: [false, true])
    func `a body that waits for the disk holds up no other fetch, and loses no time`(http2: Bool) async throws {
        let cache = ScratchFolder()
        let authority = try TestAuthority()
        authority.files.write(long, to: "long")
        let secure = try TLSOrigin(try authority.issue("good"), folder: authority.folder, http2: true)
        let plain = try LoopbackOrigin { .response(200, body: $0.path == "/long" ? long : [65]) }
        defer { plain.stop() }
        var configuration = FetchConfiguration()
        configuration.allowPrivateAddresses = .all
        configuration.authoritiesFile = authority.certificate
        configuration.spoolFolder = cache.path
        configuration.maxBytesInMemory = 100_000
        configuration.stallTimeout = .seconds(1)
        configuration.totalTimeout = .seconds(120)
        let disk = BlockingGate()
        let isWriting = Atomic(false)
        let received = Atomic(0)
        defer { disk.open() }
        var hooks = TransportHooks()
        hooks.beforeSpooling = {
            isWriting.store(true, ordering: .releasing)
            disk.pass()
        }
        let transport = CurlTransport(configuration, hooks: hooks)
        defer {
            disk.open()
            transport.shutdown()
        }
        var request = FetchRequest(url: try SourceURL(http2 ? secure.url("long") : plain.url("/long")))
        request.acceptsFile = true
        let waiting = Task { [request] in
            try await transport.fetch(request) { count, _ in received.store(count, ordering: .releasing) }
        }
        try await waitWhile { !isWriting.load(ordering: .acquiring) }
        let short = FetchRequest(url: try SourceURL(plain.url("/short")))
        let rounds = Atomic(0)
        let began = ContinuousClock.now
        let others = Task {
            // Longer than a body may stall.
            while began.duration(to: .now) < .seconds(3) {
                _ = try await transport.fetch(short)
                rounds.add(1, ordering: .relaxed)
            }
        }
        // Without the mend no other fetch ends before the disk has taken the body.
        try await waitWhile {
            rounds.load(ordering: .relaxed) < 100 && began.duration(to: .now) < .seconds(20)
        }
        #expect(rounds.load(ordering: .relaxed) >= 100)
        if rounds.load(ordering: .relaxed) == 0 { disk.open() }
        try await others.value
        #expect(received.load(ordering: .acquiring) < 1_000_000)
        disk.open()
        let response = try await waiting.value
        #expect(response.file?.bytes() == long && response.digest == sha256Hex(long))
    }

    @Test(arguments: ["/absent/folder", "/dev/full"])
    func `without a usable folder everything stays in memory`(folder: String) async throws {
        try await withSpool(folder: folder) { _ in
            .response(200, body: long)
        } _: { origin, transport in
            var request = FetchRequest(url: try SourceURL(origin.url("/")))
            request.acceptsFile = true
            let response = try await transport.fetch(request)
            #expect(response.file == nil && response.body == long)
        }
    }

    @Test func `a file that takes no more gives back what it has`() throws {
        let cache = ScratchFolder()
        let collector = BodyCollector(folder: cache.path, spoolBytes: 1000)
        let first = long[..<300_000].withUnsafeBytes { collector.append($0) }
        let file = try #require(collector.file)
        // A descriptor that is open for reading only stands in for a full disk.
        let path = "/proc/self/fd/\(file.descriptor)"
        let reading = open(path, O_RDONLY | O_CLOEXEC)
        try #require(reading >= 0)
        dup2(reading, file.descriptor)
        close(reading)
        let second = long[300_000..<900_000].withUnsafeBytes { collector.append($0) }
        let third = long[900_000...].withUnsafeBytes { collector.append($0) }
        #expect(first && second && third && collector.file == nil)
        #expect(collector.bytes == long && collector.count == long.count && collector.digest == sha256Hex(long))
    }

    @Test func `a file that is gone is an error, not a shorter body`() throws {
        let cache = ScratchFolder()
        let collector = BodyCollector(folder: cache.path, spoolBytes: 1000)
        #expect(long[..<300_000].withUnsafeBytes { collector.append($0) })
        let file = try #require(collector.file)
        #expect(ftruncate(file.descriptor, 1000) == 0)
        #expect(!collector.load())
        #expect(file.bytes() == nil)
    }
}
