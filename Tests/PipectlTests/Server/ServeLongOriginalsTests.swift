import Glibc
import Pipeline
import TestSupport
import Testing

@testable import pipectl

extension CommandTests {
    /// Originals of 20 MB through `pipectl serve`.
    @Suite struct LongOriginals {
        private static let megabytes = 20
        private static let patient = [
            "fetch.totalSeconds=600", "fetch.stallSeconds=600", "fetch.headerSeconds=600", "server.idleSeconds=600",
        ]

        /// Differs from path to path.
        private static func body(_ path: String) -> [UInt8] {
            let seed = Array(path.utf8)
            let block = (0..<100_000).map { seed[$0 % seed.count] &+ UInt8(truncatingIfNeeded: $0 / 251) }
            var body: [UInt8] = []
            for _ in 0..<(megabytes * 10) { body += block }
            return body
        }

        private static func origin() throws -> LoopbackOrigin {
            try LoopbackOrigin { request in
                .response(
                    200, ["Content-Type": "image/x", "Cache-Control": "max-age=3600", "ETag": "\"a\""],
                    body: body(request.path))
            }
        }

        /// The entries of every cache folder beside its database.
        private static let parts: Set<String> = [
            "bodies", "temporary", "rebuild.lock", "generation", "reserve", "uses",
        ]

        /// Names of what lies in the cache folder beside the index.
        private static func bodies(_ folder: ScratchFolder) -> [String] {
            folder.names("cache").filter { !$0.hasPrefix("cache.") && !Self.parts.contains($0) }
                + folder.names("cache/temporary")
                + folder.names("cache/bodies").flatMap { folder.names("cache/bodies/" + $0) }
        }

        @Test func `eight long originals at once, fetched and stored, stay out of memory`() async throws {
            let origin = try Self.origin()
            defer { origin.stop() }
            let folder = ScratchFolder()
            try await RunningServer.with(Self.patient, folder: folder, isProgram: true) { server in
                #expect(try await server.ask("/health").status == 200)
                let before = try #require(server.child.peakMemory)
                // Fetched in the first round, stored in the second.
                for round in ["fwd=uri-miss", "hit"] {
                    try await withThrowingTaskGroup(of: Void.self) { group in
                        for path in (0..<8).map({ "/\($0)" }) {
                            group.addTask {
                                let got = try await server.ask(RunningServer.original(origin.url(path)))
                                #expect(got.status == 200 && got["cache-status"]?.contains(round) == true)
                                #expect(sha256Hex(got.body) == sha256Hex(Self.body(path)))
                            }
                        }
                        try await group.waitForAll()
                    }
                }
                let peak = try #require(server.child.peakMemory)
                #expect(peak - before < 60_000_000, "\(peak - before) bytes for \(8 * Self.megabytes) MB")
                #expect(origin.requests.count == 8)

                let target = RunningServer.original(origin.url("/3"))
                let head = try await server.ask(target, method: "HEAD")
                #expect(head["content-length"] == "\(Self.megabytes * 1_000_000)" && head.body.isEmpty)
            }
            #expect(Self.bodies(folder).count == 8)
            let verified = try await ChildProgram.run(
                ["cache", "verify", "--json", "--cache", folder("cache")], folder: folder.path)
            #expect(verified.exit == 0, "\(verified.text)")
        }

        @Test func `a range of a long original is cut from its file`() async throws {
            let origin = try Self.origin()
            defer { origin.stop() }
            try await RunningServer.with(Self.patient + ["forwardFields=[\"Range\"]"]) { server in
                let target = RunningServer.original(origin.url("/a"))
                #expect(try await server.ask(target).body.count == Self.megabytes * 1_000_000)
                let part = try await server.ask(target, ["Range": "bytes=1000007-1999999"])
                #expect(part.status == 206 && part["content-range"] == "bytes 1000007-1999999/20000000")
                #expect(sha256Hex(part.body) == sha256Hex(Array(Self.body("/a")[1_000_007..<2_000_000])))
                #expect(origin.requests.count == 1)
            }
        }

        @Test func `a server killed half-way through a long original leaves nothing of it`() async throws {
            let half = Array(Self.body("/a").prefix(10_000_000))
            let origin = try LoopbackOrigin { _ in
                .raw(
                    "HTTP/1.1 200 OK\r\nContent-Type: image/x\r\nCache-Control: max-age=60\r\n"
                        + "Content-Length: 20000000\r\n\r\n", then: [.bytes(half), .hang])
            }
            defer { origin.stop() }
            let folder = ScratchFolder()
            let server = try await RunningServer.start(Self.patient, folder: folder, isProgram: true)
            let client = try await RawClient.connect(server.port)
            client.send(RunningServer.head(RunningServer.original(origin.url("/a"))))
            // The file without a name is among what the server has open once it has grown beyond what memory takes.
            try await waitWhile { !server.child.holdsUnnamedFile(below: folder("cache")) }
            #expect(Self.bodies(folder).isEmpty)
            server.child.signal(SIGKILL)
            #expect(await server.child.end.exit == 137)
            #expect(Self.bodies(folder).isEmpty)
            await client.close()
        }

        @Test func `an original that would leave less than disk.freeSpace is kept in memory`() async throws {
            let origin = try LoopbackOrigin { request in
                .response(200, ["Content-Type": "image/x", "Cache-Control": "no-store"], body: Self.body(request.path))
            }
            defer { origin.stop() }
            for (floor, isInFile) in [("0", true), ("100000000GB", false)] {
                let folder = ScratchFolder()
                try await RunningServer.with(
                    Self.patient + ["disk.freeSpace=\(floor)"], folder: folder, isProgram: true
                ) { server in
                    let client = try await RawClient.connect(server.port, reads: false)
                    client.send(RunningServer.head(RunningServer.original(origin.url("/a"))))
                    // It has read a head, so the body has arrived.
                    client.sip()
                    _ = await client.received { !$0.isEmpty }
                    #expect(server.child.holdsUnnamedFile(below: folder("cache")) == isInFile)
                    await client.close()
                }
            }
        }

        @Test(.enabled(if: SmallDisk.isPermitted, "needs leave to mount a tmpfs"))
        func `a disk too small for a long original costs the store, not the answer`() async throws {
            let origin = try Self.origin()
            defer { origin.stop() }
            let folder = ScratchFolder()
            let disk = try #require(SmallDisk(at: folder("cache"), kilobytes: 8192))
            defer { disk.unmount() }
            // Without a floor of free space, which would keep the disk from being filled.
            try await RunningServer.with(Self.patient + ["disk.freeSpace=0"], folder: folder) { server in
                for _ in 0..<2 {
                    let got = try await server.ask(RunningServer.original(origin.url("/a")))
                    #expect(got.status == 200 && sha256Hex(got.body) == sha256Hex(Self.body("/a")))
                }
            }
            #expect(Self.bodies(folder).isEmpty)
        }
    }
}

extension ChildProgram {
    /// Whether it has a file open that lies on the file system of a folder and has no name; true once it has ended.
    fileprivate func holdsUnnamedFile(below folder: String) -> Bool {
        openFiles?.contains { $0.hasPrefix(folder + "/") && $0.hasSuffix(" (deleted)") } ?? true
    }
}
