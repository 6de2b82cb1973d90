import HTTPCaching
import PipelineCaching
import PipelineSupport
import Synchronization
import TestSupport
import Testing
import Variants

@testable import Pipeline

struct ContentCodingsTests {
    @Test func `a body that grows too much without its coding is refused by words that say so`() async throws {
        try await withPipeline { _ in
            .response(
                200, ["Content-Type": "image/jpeg", "Content-Encoding": "gzip", "Cache-Control": "max-age=60"],
                body: HostileOrigin.bomb)
        } _: { bench, pipeline in
            for _ in 0..<2 {
                let error = await refusal(pipeline, try bench.request())
                #expect(error?.code == .overLimit, "\(String(describing: error))")
                #expect(error?.message.contains("20 times") == true, "\(String(describing: error))")
            }
        }
    }

    private static let gzip = [HeaderField("Content-Encoding", "gzip")]

    @Test func `a body is undone once for all that want it, beside other work, and its result is kept`() async throws {
        let gate = BlockingGate()
        let decoded = Atomic(0)
        let threads = OwnedThreads(count: 1)
        let codings = ContentDecoder(threads: threads) { (_, sent) throws(RenderError) in
            decoded.add(1, ordering: .relaxed)
            gate.pass()
            return sent + [2]
        }
        try await withThrowingTaskGroup(of: [UInt8].self) { group in
            for _ in 0..<8 { group.addTask { try await codings.picture(.bytes([1]), "digest", Self.gzip) } }
            try await waitWhile { decoded.load(ordering: .relaxed) == 0 }
            // The threads that read files are free.
            let other = await threads.run { 7 }
            let plain = try await codings.picture(.bytes([3]), "other", [])
            #expect(other == 7 && plain == [3])
            gate.open()
            for try await bytes in group { #expect(bytes == [1, 2]) }
        }
        let again = try await codings.picture(.bytes([1]), "digest", Self.gzip)
        #expect(again == [1, 2] && codings.decodedAgain(.bytes([1]), "digest", Self.gzip) == [1, 2])
        #expect(decoded.load(ordering: .relaxed) == 1)
        _ = try await codings.picture(.bytes([1]), "digest", [HeaderField("Content-Encoding", "br")])
        #expect(decoded.load(ordering: .relaxed) == 2)
    }

    @Test func `errors are kept too, and long results are not`() async throws {
        let decoded = Atomic(0)
        let codings = ContentDecoder(threads: OwnedThreads(count: 1)) { (_, sent) throws(RenderError) in
            decoded.add(1, ordering: .relaxed)
            if sent.isEmpty { throw RenderError(.undecodable, "damaged") }
            return [UInt8](repeating: 0, count: 20 << 20)
        }
        for _ in 0..<3 {
            await #expect(throws: RenderError.self) { _ = try await codings.picture(.bytes([]), "empty", Self.gzip) }
        }
        #expect(decoded.load(ordering: .relaxed) == 1)
        // Two of them are more than are kept, so that the older one is undone again.
        for name in ["a", "b", "b", "a"] { _ = try await codings.picture(.bytes([1]), name, Self.gzip) }
        #expect(decoded.load(ordering: .relaxed) == 4)
    }
}
