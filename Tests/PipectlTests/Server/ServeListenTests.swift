import Glibc
import Synchronization
import TestSupport
import Testing

@testable import pipectl

extension CommandTests {
    /// Where the server listens.
    @Suite struct ServeListen {
        /// The actions of several clients until then.
        private final class End: Sendable {
            let isReached = Atomic(false)
            let answers = Atomic(0)
            let lost = Atomic(0)
        }

        /// The answer of `curl`, after its arguments.
        private static func curl(_ arguments: [String]) async throws -> String {
            let curl = try HelperProgram(["curl", "-sS", "--max-time", "60"] + arguments)
            #expect(await curl.end() == 0, "\(curl.text)")
            return curl.text
        }

        @Test func `a Unix socket is listened on, made again after a crash, and removed at the end`() async throws {
            let folder = ScratchFolder()
            let path = folder("s.sock")
            let arguments = [
                "serve", "--listen", "unix:" + path, "--set", "allowUnsigned=true", "--cache", folder("cache"),
            ]
            let ask = ["--unix-socket", path, "http://anything/health"]
            var child = try ChildProgram(arguments, folder: folder.path)
            #expect(await child.waitForOutput("listening on unix:\(path)").contains("listening on unix:\(path)"))
            #expect(try await Self.curl(ask) == "ok\n")
            for arguments in [["unix:" + path], ["--set", "listen=unix:" + path], ["unix:" + path, "--ready"]] {
                let health = try await ChildProgram.run(["health"] + arguments, folder: folder.path)
                #expect(health.exit == 0 && health.errors.contains("unix:\(path) answered 200"), "\(health.errors)")
            }

            let second = try await ChildProgram.run(arguments, folder: folder.path)
            #expect(
                second.exit == 2 && second.errors.contains("another server is already listening on this socket"),
                "\(second.errors)")
            #expect(try await Self.curl(ask) == "ok\n")

            child.signal(SIGKILL)
            _ = await child.end
            #expect(access(path, F_OK) == 0)
            child = try ChildProgram(arguments, folder: folder.path)
            _ = await child.waitForOutput("listening on")
            #expect(try await Self.curl(ask) == "ok\n")
            child.signal(SIGTERM)
            #expect(await child.end.exit == 0)
            #expect(access(path, F_OK) != 0)
        }

        @Test(arguments: ["*:0", "[::]:0"])
        func `every address of both families is listened on, and this machine's are operators'`(
            _ address: String
        ) async throws {
            let folder = ScratchFolder()
            let child = try ChildProgram(
                ["serve", "--listen", address, "--set", "allowUnsigned=true", "--cache", folder("cache")],
                folder: folder.path)
            let mark = "listening on http://\(address.dropLast())"
            let told = await child.waitForOutput(mark)
            let port = told.split(separator: mark, maxSplits: 1).last?.prefix { $0.isNumber } ?? ""
            for host in ["127.0.0.1", "[::1]"] {
                let metrics = try await Self.curl(["http://\(host):\(port)/metrics"])
                #expect(metrics.contains("image_pipeline"), "\(host): \(metrics.prefix(200))")
            }
            child.signal(SIGTERM)
            #expect(await child.end.exit == 0)
        }

        @Test func `a file that is no socket is left alone`() async throws {
            let folder = ScratchFolder()
            let path = folder("kept")
            _ = folder.write("x", to: "kept")
            let ended = try await ChildProgram.run(
                ["serve", "--listen", "unix:" + path, "--set", "allowUnsigned=true", "--cache", folder("cache")],
                folder: folder.path)
            #expect(ended.exit == 2 && ended.errors.contains("not a socket"), "\(ended.errors)")
            #expect(ScratchFolder.bytes(at: path) == Array("x".utf8))
        }

        /// A listening socket of this process, as a service manager holds one.
        private static func listener() throws -> (descriptor: Int32, port: Int) {
            let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
            var length = socklen_t(MemoryLayout<sockaddr_in>.size)
            let status = withUnsafeMutablePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    bind(descriptor, $0, length) == 0 && listen(descriptor, 64) == 0
                        && getsockname(descriptor, $0, &length) == 0
                }
            }
            try #require(status)
            return (descriptor, Int(UInt16(bigEndian: address.sin_port)))
        }

        @Test func `a passed socket is used, and keeps the clients that come while no server runs`() async throws {
            let (descriptor, port) = try Self.listener()
            defer { close(descriptor) }
            for arguments in [[], ["--listen", "fd:3"]] {
                let folder = ScratchFolder()
                // Nothing accepts it yet.
                let early = try await RawClient.connect(port)
                early.send(RunningServer.head("/health", closes: true))
                let child = try ChildProgram(
                    ["serve", "--set", "allowUnsigned=true", "--cache", folder("cache")] + arguments,
                    folder: folder.path, passing: descriptor)
                #expect(await child.waitForOutput("listening on").contains("listening on http://127.0.0.1:\(port)"))
                #expect(RawResponse.all(in: await early.receivedToEnd()).map(\.text) == ["ok\n"])
                child.signal(SIGTERM)
                #expect(await child.end.exit == 0)
            }
        }

        @Test func `clients of a passed socket lose no request when the server is started again`() async throws {
            let (descriptor, port) = try Self.listener()
            defer { close(descriptor) }
            let origin = try FolderOrigin(folder: Samples.folder + "/originals", maxAge: 3600)
            defer { origin.stop() }
            let target = RunningServer.variant("thumbnail:20,png", origin.url("/night-tiny.jpg"))
            let folder = ScratchFolder()
            func started() async throws -> ChildProgram {
                let child = try ChildProgram(
                    [
                        "serve", "--set", "allowUnsigned=true", "--set", "allowPrivateAddresses=true", "--cache",
                        folder("cache"),
                    ], folder: folder.path, passing: descriptor)
                _ = await child.waitForOutput("listening on")
                return child
            }
            let end = End()
            var child = try await started()
            let clients = (0..<8).map { number in
                Task {
                    while !end.isReached.load(ordering: .relaxed) {
                        let client = try await RawClient.connect(port)
                        // Like proxies: one request a connection, or as many as the server takes.
                        var asked = 0
                        while asked < 100, !end.isReached.load(ordering: .relaxed) {
                            client.send(RunningServer.head(target))
                            asked += 1
                            let all = await client.responses(asked)
                            guard all.count == asked, let last = all.last, last.status == 200 else {
                                end.lost.add(1, ordering: .relaxed)
                                break
                            }
                            end.answers.add(1, ordering: .relaxed)
                            if number % 2 == 0 || last["connection"] == "close" { break }
                        }
                        await client.close()
                    }
                }
            }
            for _ in 0..<4 {
                let before = end.answers.load(ordering: .relaxed)
                while end.answers.load(ordering: .relaxed) < before + 40 { await Task.yield() }
                child.signal(SIGTERM)
                #expect(await child.end.exit == 0)
                child = try await started()
            }
            end.isReached.store(true, ordering: .relaxed)
            for client in clients {
                try await client.value
            }
            #expect(end.lost.load(ordering: .relaxed) == 0, "of \(end.answers.load(ordering: .relaxed))")
            child.signal(SIGTERM)
            #expect(await child.end.exit == 0)
        }

        @Test func `what is no listening socket is refused`() async throws {
            let folder = ScratchFolder()
            let ended = try await ChildProgram.run(
                ["serve", "--listen", "fd:9", "--set", "allowUnsigned=true", "--cache", folder("cache")],
                folder: folder.path)
            #expect(ended.exit == 2 && ended.errors.contains("fd:9"), "\(ended.errors)")
        }

        @Test func `sockets that were passed to another process are not used`() {
            let own = ["LISTEN_FDS": "2", "LISTEN_PID": "7"]
            #expect(PassedSockets.descriptors(own, process: 7) == [3, 4])
            #expect(PassedSockets.descriptors(own, process: 8) == [])
            for count in ["", "0", "-1", "x", "1000000"] {
                #expect(PassedSockets.descriptors(["LISTEN_FDS": count, "LISTEN_PID": "7"], process: 7) == [])
            }
        }

        @Test func `the log names the client that a trusted proxy names`() async throws {
            for (trusted, client) in [(true, "192.0.2.1"), (false, "127.0.0.1")] {
                let settings = ["log.level=info"] + (trusted ? ["server.trustedProxies=127.0.0.0/8"] : [])
                let server = try await RunningServer.start(settings)
                _ = try await server.ask("/health", ["X-Forwarded-For": "1.1.1.1, 192.0.2.1"])
                let ended = await server.stop()
                #expect(ended.errors.contains("\(client) GET /health 200 "), "\(ended.errors)")
            }
        }
    }
}
