import Glibc
import Synchronization
import TestSupport
import Testing

@testable import pipectl

extension CommandTests {
    /// Batches of a bucket with a store that returns false listings.
    @Suite struct HostileListings {
        private static let picture = ScratchFolder.bytes(at: Samples.folder + "/originals/night-tiny.jpg") ?? []

        private static func page(_ keys: [String], next: String? = nil) -> OriginReply {
            let contents = keys.map { "<Contents><Key>\($0)</Key><Size>9</Size></Contents>" }.joined()
            let token = next.map { "<NextContinuationToken>\($0)</NextContinuationToken>" } ?? ""
            return .response(
                200, ["Content-Type": "application/xml"],
                body: Array(
                    ("<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>\(next != nil)</IsTruncated>"
                        + contents + token + "</ListBucketResult>").utf8))
        }

        private static func batch(_ store: LoopbackOrigin, _ folder: ScratchFolder, _ more: [String] = [])
            throws -> ChildProgram
        {
            let settings = [
                "s3={\"endpoint\":\"\(store.url(""))\",\"accessKey\":\"K\",\"secretKey\":\"S\"}",
                "allowPrivateAddresses=true",
            ]
            return try ChildProgram(
                [
                    "batch", "s3://photos/in/", "-r", "thumbnail:20", "-o", folder("out"), "--cache", folder("cache"),
                    "--report", folder("report.jsonl"),
                ] + settings.flatMap { ["--set", $0] } + more, folder: folder.path)
        }

        private static func lines(_ folder: ScratchFolder) -> [ItemJSON] {
            String(decoding: folder.bytes("report.jsonl") ?? [], as: UTF8.self).split(separator: "\n")
                .compactMap { ItemJSON(line: $0) }
        }

        @Test(arguments: [[], ["--hidden"]])
        func `keys that were not asked for, and names that no output should have, are refused`(_ more: [String])
            async throws
        {
            let bad = [
                "other/b.jpg", "inn/b.jpg", "b.jpg", "", "in/a%01b.jpg", "in/a%0Ab.jpg", "in/%7F.jpg", "in/c%1B/d.jpg",
                "in/../../d.jpg", "in/x/%2E%2E/../d.jpg",
            ]
            let store = try LoopbackOrigin { request in
                request.target.contains("list-type=2")
                    ? Self.page(["in/a.jpg"] + bad + ["in/.ssh/c.jpg", "in/z.jpg"])
                    : .response(200, ["Content-Type": "image/jpeg"], body: Self.picture)
            }
            defer { store.stop() }
            let folder = ScratchFolder()
            let ended = try await Self.batch(store, folder, more).end
            #expect(ended.exit == 1, "\(ended.errors)")
            let written = Set(Self.lines(folder).filter { $0.written == true }.compactMap(\.output))
            let expected = ["a.jpg", "z.jpg"] + (more.isEmpty ? [] : [".ssh/c.jpg"])
            #expect(written == Set(expected.map { folder("out") + "/" + $0 }), "\(written)")
            #expect(Self.lines(folder).count { $0.error?.code == .badSource } == bad.count, "\(Self.lines(folder))")
        }

        @Test func `pages without keys end, and so does a list with a key that no store has`() async throws {
            let pages = Mutex(0)
            let store = try LoopbackOrigin { request in
                guard request.target.contains("list-type=2") else {
                    return .response(200, ["Content-Type": "image/jpeg"], body: Self.picture)
                }
                let count = pages.withLock { pages in
                    pages += 1
                    return pages
                }
                return count < 500 ? Self.page(count == 1 ? ["in/a.jpg"] : [], next: "t\(count)") : Self.page([])
            }
            defer { store.stop() }
            let folder = ScratchFolder()
            let ended = try await Self.batch(store, folder).end
            #expect(ended.exit == 1 && pages.withLock { $0 } < 200, "\(ended.errors)")
            #expect(ended.errors.contains("consecutive pages without an object"), "\(ended.errors)")

            let long = try LoopbackOrigin { request in
                request.target.contains("list-type=2")
                    ? Self.page(["in/a.jpg", "in/" + String(repeating: "b/", count: 520), "in/z.jpg"], next: "t")
                    : .response(200, ["Content-Type": "image/jpeg"], body: Self.picture)
            }
            defer { long.stop() }
            let other = ScratchFolder()
            let cut = try await Self.batch(long, other).end
            #expect(cut.exit == 1 && cut.errors.contains("the maximum is 1,024"), "\(cut.errors)")
            #expect(Self.lines(other).filter { $0.written == true }.count == 1)
        }

        @Test func `SIGINT ends a batch while its store lists nothing`() async throws {
            let store = try LoopbackOrigin { _ in .hang }
            defer { store.stop() }
            let folder = ScratchFolder()
            let batch = try Self.batch(store, folder, ["--set", "fetch.headerSeconds=60"])
            try await eventually { !store.requests.isEmpty }
            let began = ContinuousClock.now
            batch.signal(SIGINT)
            let ended = await batch.end
            // Without it, the wait lasts a minute, and several times.
            #expect(ended.exit == 130 && began.duration(to: .now) < .seconds(20), "\(ended.errors)")
        }
    }
}
