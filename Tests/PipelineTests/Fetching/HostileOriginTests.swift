@testable import PipelineFetching
@testable import PipelineSupport
import Synchronization
import TestSupport
import Testing

@testable import Pipeline

/// The expected result of a fetch from a misbehaving origin.
private enum Verdict {
    case error([FetchError.Code])
    case status(Int)
    /// A 200 with this body, or any.
    case body([UInt8]?)
}

private typealias Misbehavior = HostileOrigin.Misbehavior

private let good = sample("originals/night-tiny.jpg")

private func verdict(_ misbehavior: Misbehavior) -> Verdict {
    switch misbehavior {
    case .slowHead, .silentAfterConnect, .trickle: .error([.timeout])
    case .slowBody, .endlessChunkExtension: .error([.stalled])
    case .closesAtOnce, .closesInHead, .resetsBeforeHead, .resetsInBody: .error([.transport])
    case .endlessChunks, .endlessBody, .hugeLength: .error([.tooLarge])
    case .lengthTooLong, .chunkCutOff, .changesTags: .error([.truncated])
    case .endlessFields, .endlessTrailers, .twoLengths, .listOfLengths, .negativeLength, .overflowingLength,
        .spacedLength, .lengthAndChunks, .unknownCoding, .badChunk, .overflowingChunk, .chunkWithoutEnd, .noHTTP,
        .oldHTTP, .badStatus, .lineWithoutColon, .longStatus, .hugeField, .manyFields, .zeroInField, .interimFlood,
        .unaskedPart,
        .switchesProtocols:
        .error([.protocolViolation])
    case .redirectLoop, .redirectMaze: .error([.tooManyRedirects])
    case .redirectToFile: .error([.badRedirect])
    case .unaskedNotModified: .status(304)
    case .gzipBomb: .body(HostileOrigin.bomb)
    case .lengthTooShort, .malformedFields, .interims: .body(Array("abc".utf8))
    case .redirectWithEndlessBody, .flapping, .tooManyRequests, .breaksOnce, .changesWhileBroken: .body(good)
    }
}

/// Limits that end each misbehaviour soon, and only the one it is about.
private func configure(_ configuration: inout FetchConfiguration, for misbehavior: Misbehavior?) {
    configuration.allowPrivateAddresses = .all
    configuration.totalTimeout = .seconds(60)
    configuration.headTimeout = .seconds(60)
    configuration.stallTimeout = .seconds(60)
    configuration.connectTimeout = .seconds(60)
    configuration.byteLimit = 300_000
    configuration.breaker = nil
    configuration.maxRetries = 2
    switch misbehavior {
    case .slowHead, .silentAfterConnect: configuration.headTimeout = .seconds(1)
    case .slowBody, .endlessChunkExtension: configuration.stallTimeout = .seconds(0.5)
    case .trickle:
        configuration.totalTimeout = .seconds(1)
        configuration.byteLimit = 50_000_000
    default: break
    }
}

struct HostileOriginTests {
    @Test(arguments: HostileOrigin.Misbehavior.allCases)
    fileprivate func `each misbehaviour has one outcome, and the next good request works`(
        _ misbehavior: Misbehavior
    ) async throws {
        let origin = try HostileOrigin(good: good)
        defer { origin.stop() }
        var configuration = FetchConfiguration()
        configure(&configuration, for: misbehavior)
        let limit = configuration.byteLimit
        let base = CurlTransport(configuration)
        defer { base.shutdown() }
        let transport = RetryingTransport(base, configuration: configuration) { _ in }
        let most = Mutex((last: 0, isMonotonic: true))
        var outcome: Result<FetchedResponse, FetchError>
        do throws(FetchError) {
            let request = FetchRequest(url: try url(origin.url(misbehavior)))
            outcome = .success(
                try await transport.fetch(request) { received, _ in
                    most.withLock { $0 = (received, $0.isMonotonic && received >= $0.last) }
                })
        } catch {
            outcome = .failure(error)
        }
        switch (verdict(misbehavior), outcome) {
        case (.error(let codes), .failure(let error)):
            #expect(codes.contains(error.code), "\(error.code.rawValue): \(error)")
            #expect(error.message.contains("127.0.0.1"))
        case (.status(let status), .success(let response)): #expect(response.status == status)
        case (.body(let body), .success(let response)):
            #expect(response.status == 200)
            #expect(body == nil || response.body == body)
            #expect(response.digest == sha256Hex(response.body))
            #expect(response.fields.allSatisfy { FieldSyntax.isToken($0.name) })
        default: Issue.record("\(misbehavior): \(outcome)")
        }
        #expect(most.withLock { $0.isMonotonic && $0.last <= limit })
        let next = try await transport.fetch(FetchRequest(url: try url(origin.goodURL("next"))))
        #expect(next.status == 200 && next.body == good)
    }

    @Test func `through the pipeline nothing of it is stored, and good pictures still come`() async throws {
        let origin = try HostileOrigin(good: good)
        defer { origin.stop() }
        for misbehavior in Misbehavior.allCases {
            guard case .error = verdict(misbehavior) else { continue }
            let cache = CacheFolder()
            var configuration = PipelineConfiguration()
            configuration.cacheFolder = cache.path
            configure(&configuration.fetch, for: misbehavior)
            configuration.fetch.maxRetries = 0
            let pipeline = try ImagePipeline(configuration)
            let error = await #expect(throws: PipelineError.self) {
                _ = try await pipeline.respond(to: ImageRequest(.url(origin.url(misbehavior))))
            }
            let codes: [PipelineError.Code] = [.fetchFailed, .fetchTimedOut, .overLimit]
            #expect(codes.contains(error?.code ?? .cancelled), "\(misbehavior): \(String(describing: error))")
            await pipeline.drain()
            let disk = await pipeline.diskStatistics()
            #expect(pipeline.memoryStatistics.originals.entries == 0, "\(misbehavior)")
            #expect(disk?.originals.entries == 0 && disk?.records.entries == 0, "\(misbehavior)")
            let next = try await pipeline.respond(to: ImageRequest(.url(origin.goodURL("\(misbehavior)"))))
            #expect(next.bytes == good)
            await pipeline.shutdown()
        }
    }

    @Test func `an origin killed in the middle is an error, and unreachable afterwards`() async throws {
        let origin = try LoopbackOrigin { _ in
            .raw("HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\nabc", then: [.hang])
        }
        defer { origin.stop() }
        var configuration = FetchConfiguration()
        configure(&configuration, for: nil)
        let transport = CurlTransport(configuration)
        defer { transport.shutdown() }
        let request = FetchRequest(url: try url(origin.url("/")))
        let error = await #expect(throws: FetchError.self) {
            // The first bytes have come; the connection ends there. On the transport's own thread, so that nothing has to
            // be waited for.
            _ = try await transport.fetch(request) { _, _ in origin.stop() }
        }
        #expect(error?.code == .truncated)
        let code = try await failure(transport, origin.url("/")).code
        #expect(code == .unreachable)
    }
}

private func url(_ text: String) throws(FetchError) -> SourceURL {
    do throws(SourceError) { return try SourceURL(text) } catch {
        preconditionFailure("a test's URL is malformed: \(error)")
    }
}
