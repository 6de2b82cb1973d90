import Glibc
import TestSupport
import Testing

@testable import pipectl

extension CommandTests {
    /// A server that may open few files keeps answering correctly when more clients connect than it has descriptors
    /// for.
    @Suite struct ServeDescriptors {
        private static let most: Int = {
            var limit = rlimit()
            getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
            limit.rlim_cur = limit.rlim_max
            setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
            return Int(clamping: limit.rlim_cur)
        }()

        @Test func `with 64 files the server does not start, and says why`() async throws {
            let folder = ScratchFolder()
            let limited = ["-c", "ulimit -n 64 && exec \"$@\"", "sh", ChildProgram.path, "serve"]
            let child = try ChildProgram(
                limited + ["--listen", "127.0.0.1:0", "--cache", folder("cache")], program: "sh", folder: folder.path,
                seconds: 20)
            let ended = await child.end
            #expect(
                ended.exit == 2 && ended.errors.contains("`ulimit -n` allows only 64 open files"), "\(ended.errors)")
        }

        @Test(.enabled(if: most > 4096, "needs more files than the server has"), arguments: [128, 256, 1024])
        func `a crowd of idle clients and slow readers leaves a server with few files at work`(files: Int) async throws
        {
            let folder = ScratchFolder()
            truncate(folder.write("BM", to: "pictures/long.bmp"), 20_000_000)
            folder.write(ScratchFolder.bytes(at: Samples.original("night-tiny.jpg")) ?? [], to: "pictures/a.jpg")
            let server = try await RunningServer.start(
                ["baseURLs={\"pictures\":\"file://\(folder("pictures"))\"}"], folder: folder, files: files)
            var crowd: [RawClient] = []
            for number in 0..<(files + 300) {
                crowd.append(try await RawClient.connect(server.port, from: "127.0.0.\(2 + number % 3)"))
            }
            var readers: [RawClient] = []
            for number in 0..<40 {
                let reader = try await RawClient.connect(
                    server.port, from: "127.0.0.\(2 + number % 3)", reads: false)
                reader.send(RunningServer.head(RunningServer.original("pictures:long.bmp")))
                reader.read()
                readers.append(reader)
            }
            for reader in readers {
                let start = String(decoding: await reader.received { $0.count >= 12 }.prefix(12), as: UTF8.self)
                #expect(["", "HTTP/1.1 200", "HTTP/1.1 503"].contains(start), "\(start)")
            }
            for width in 20..<28 {
                let answer = try await server.ask(RunningServer.variant("thumbnail:\(width),png", "pictures:a.jpg"))
                #expect(answer.status == 200, "\(answer.text)")
            }
            for client in crowd + readers { await client.close() }
            let ended = await server.stop()
            #expect(ended.exit == 0, "\(ended.errors)")
        }
    }
}
