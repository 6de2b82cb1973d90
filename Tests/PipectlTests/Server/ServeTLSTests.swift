import Dispatch
import Glibc
import TestSupport
import Testing

@testable import pipectl

#if TLS
    extension CommandTests {
        /// TLS and HTTP/2.
        @Suite struct ServeTLS {
            private static func settings(_ identity: (certificate: String, key: String)) -> [String] {
                [#"server.tls={"certificate":"\#(identity.certificate)","key":"\#(identity.key)"}"#]
            }

            /// What a program prints that asks the server.
            private static func run(_ words: [String]) async throws -> String {
                let program = try HelperProgram(["timeout", "60"] + words)
                #expect(await program.end() == 0, "\(words): \(program.text)")
                return program.text
            }

            private static func curl(_ authority: TestAuthority, _ words: String...) async throws -> String {
                try await run(["curl", "-sS", "--cacert", authority.certificate] + words)
            }

            @Test func `HTTP/2 and HTTP/1.1 are spoken over TLS, as the client offers`() async throws {
                let authority = try TestAuthority()
                let origin = try FolderOrigin(folder: Samples.folder + "/originals", maxAge: 3600)
                defer { origin.stop() }
                try await RunningServer.with(Self.settings(authority.issue("server"))) { server in
                    let base = "https://127.0.0.1:\(server.port)"
                    let mark = "\n%{http_version} %{http_code} %{size_download}"
                    #expect(try await Self.curl(authority, "-w", mark, base + "/health") == "ok\n\n2 200 3")
                    #expect(
                        try await Self.curl(authority, "--http1.1", "-w", mark, base + "/health") == "ok\n\n1.1 200 3")
                    #expect(try await Self.curl(authority, "-w", mark, "-I", base + "/health").hasSuffix("2 200 0"))
                    // A render, a hit, and a hit that is not sent again.
                    let target = base + RunningServer.variant("thumbnail:40,png", origin.url("/grey.jpg"))
                    let first = try await Self.curl(
                        authority, "-o", "/dev/null", "-w",
                        "%{http_version} %{content_type} %{size_download} %header{etag}",
                        target)
                    let parts = first.split(separator: " ").map(String.init)
                    #expect(parts.count == 4 && parts[0] == "2" && parts[1] == "image/png", "\(first)")
                    let second = try await Self.curl(authority, "-o", "/dev/null", "-D", "-", target)
                    #expect(
                        second.contains("cache-status: pipeline; hit") && second.contains("detail=memory"), "\(second)")
                    #expect(second.contains("content-length: \(parts[2])\r\n"), "\(second)")
                    let third = try await Self.curl(authority, "-w", mark, "-H", "If-None-Match: \(parts[3])", target)
                    #expect(third == "\n2 304 0")
                    // In clear text nothing is understood.
                    let clear = try await RawClient.connect(server.port)
                    clear.send(RunningServer.head("/health"))
                    #expect(RawResponse.all(in: await clear.receivedToEnd()).isEmpty)
                }
            }

            @Test func `large bodies from memory and from a file arrive whole, and bodies of requests are read`()
                async throws
            {
                let authority = try TestAuthority()
                let body = (0..<8_000_000).map { UInt8(truncatingIfNeeded: $0 &* 7 >> 5) }
                let origin = try LoopbackOrigin { request in
                    request.method == "POST"
                        ? .response(200, [:], body: request.body)
                        : .response(200, ["Cache-Control": "max-age=100"], body: body)
                }
                defer { origin.stop() }
                let folder = ScratchFolder()
                _ = folder.write(body, to: "whole")
                _ = folder.write(Array(body.prefix(50_000)), to: "part")
                try await RunningServer.with(
                    Self.settings(authority.issue("server")) + [
                        #"acceptedTypes=["*/*"]"#, "forwardMethods=POST", "memory.originals=1MB",
                        "disk.originals=100MB",
                    ]
                ) { server in
                    let target = "https://127.0.0.1:\(server.port)" + RunningServer.original(origin.url("/large"))
                    for version in ["--http2", "--http1.1", "--http2", "--http1.1"] {
                        _ = try await Self.curl(authority, version, "-o", folder("got"), target)
                        #expect(ScratchFolder.bytes(at: folder("got")) == body, "\(version)")
                    }
                    for version in ["--http2", "--http1.1"] {
                        _ = try await Self.curl(
                            authority, version, "--data-binary", "@" + folder("part"), "-o", folder("got"), target)
                        #expect(ScratchFolder.bytes(at: folder("got")) == Array(body.prefix(50_000)), "\(version)")
                        #expect(
                            try await Self.curl(
                                authority, version, "--data-binary", "@" + folder("whole"), "-o", "/dev/null", "-w",
                                "%{http_code}", target) == "413")
                    }
                }
            }

            @Test(.enabled(if: access("/usr/bin/nghttp", X_OK) == 0, "needs Debian's nghttp2-client"))
            func `nghttp gets many streams over one connection`() async throws {
                let authority = try TestAuthority()
                try await RunningServer.with(Self.settings(authority.issue("server"))) { server in
                    let base = "https://127.0.0.1:\(server.port)"
                    let text = try await Self.run(
                        ["nghttp", "-nv", "-m", "80", base + "/health", base + "/nope"])
                    #expect(text.split(separator: "\n").filter { $0.contains(":status: 200") }.count == 80, "\(text)")
                    #expect(text.contains(":status: 404"), "\(text)")
                }
            }

            @Test func `a client that leaves ends its stream's work`() async throws {
                let authority = try TestAuthority()
                let (asked, asks) = AsyncStream<Void>.makeStream()
                let origin = try LoopbackOrigin { request in
                    if request.path == "/hang" {
                        asks.yield()
                        return .hang
                    }
                    return .response(200, ["Content-Type": "text/plain"], body: Array("x".utf8))
                }
                defer { origin.stop() }
                let settings = [
                    "fetch.slots=1", "fetch.perHost=1", "fetch.totalSeconds=1000", "fetch.stallSeconds=1000",
                    "fetch.headerSeconds=1000", #"acceptedTypes=["*/*"]"#,
                ]
                try await RunningServer.with(Self.settings(authority.issue("server")) + settings) { server in
                    let base = "https://127.0.0.1:\(server.port)"
                    let curl = try HelperProgram([
                        "curl", "-sS", "--cacert", authority.certificate,
                        base + RunningServer.original(origin.url("/hang")),
                    ])
                    for await _ in asked { break }
                    curl.stop()
                    // The only slot for transfers is free again.
                    let got = try await Self.curl(authority, base + RunningServer.original(origin.url("/x")))
                    #expect(got == "x")
                }
            }

            @Test func `health is answered over HTTP/2 and HTTP/1.1 when every place is taken`() async throws {
                let authority = try TestAuthority()
                let (asked, asks) = AsyncStream<Void>.makeStream()
                let origin = try LoopbackOrigin { _ in
                    asks.yield()
                    return .hang
                }
                defer { origin.stop() }
                let settings = ["server.connections=1", "fetch.headerSeconds=1000", "fetch.totalSeconds=1000"]
                try await RunningServer.with(Self.settings(authority.issue("server")) + settings) { server in
                    let base = "https://127.0.0.1:\(server.port)"
                    let busy = try HelperProgram([
                        "curl", "-sS", "--cacert", authority.certificate,
                        base + RunningServer.original(origin.url("/hang")),
                    ])
                    for await _ in asked { break }
                    for version in ["--http2", "--http1.1"] {
                        for (path, status) in [("/health", "200"), ("/ready", "200"), ("/metrics", "503")] {
                            let got = try await Self.curl(
                                authority, version, "-o", "/dev/null", "-w", "%{http_code}", base + path)
                            #expect(got == status, "\(version) \(path)")
                        }
                    }
                    busy.stop()
                }
            }

            @Test func `a busy HTTP/2 connection is neither idle nor the one that gives way`() async throws {
                let authority = try TestAuthority()
                let (asked, asks) = AsyncStream<Void>.makeStream()
                let door = DispatchSemaphore(value: 0)
                let origin = try LoopbackOrigin { _ in
                    asks.yield()
                    door.wait()
                    return .response(200, ["Content-Type": "text/plain"], body: Array("at last".utf8))
                }
                defer { origin.stop() }
                let settings = [
                    "server.connections=2", "server.connectionsPerAddress=2", "server.idleSeconds=1",
                    #"acceptedTypes=["*/*"]"#,
                ]
                try await RunningServer.with(Self.settings(authority.issue("server")) + settings) { server in
                    let base = "https://127.0.0.1:\(server.port)"
                    let target = base + RunningServer.original(origin.url("/slow"))
                    async let answer = Self.curl(authority, "--http2", target)
                    for await _ in asked { break }
                    let idle = try await RawClient.connect(server.port, from: "127.0.0.2")
                    let status = try await Self.curl(
                        authority, "--http2", "-o", "/dev/null", "-w", "%{http_code}", base + "/metrics")
                    #expect(status == "200")
                    _ = await idle.receivedToEnd()
                    // Each is disconnected after the idle time: longer than connections without requests are kept.
                    for _ in 0..<5 { _ = await (try RawClient.connect(server.port)).receivedToEnd() }
                    door.signal()
                    #expect(try await answer == "at last")
                }
            }

            @Test func `without HTTP/2 TLS carries HTTP/1.1`() async throws {
                let authority = try TestAuthority()
                try await RunningServer.with(Self.settings(authority.issue("server")) + ["server.http2=false"]) {
                    server in
                    let got = try await Self.curl(
                        authority, "-w", "%{http_version}", "https://127.0.0.1:\(server.port)/health")
                    #expect(got == "ok\n1.1")
                }
            }

            @Test func `a client that does not shake hands, or asks for nothing, is disconnected`() async throws {
                let authority = try TestAuthority()
                try await RunningServer.with(
                    Self.settings(authority.issue("server")) + ["server.idleSeconds=1"]
                ) { server in
                    let silent = try await RawClient.connect(server.port)
                    #expect(await silent.receivedToEnd().isEmpty)
                    for protocols in ["h2", "http/1.1"] {
                        // Ends when the server closes; its input stays open.
                        let words = [
                            "sh", "-c",
                            "mkfifo \"$1\" && exec 3<>\"$1\" && openssl s_client -quiet -alpn \(protocols) -connect 127.0.0.1:\(server.port) <&3 2>&1; true",
                            "sh", server.folder("fifo-\(protocols.prefix(2))"),
                        ]
                        _ = try await Self.run(words)
                    }
                    #expect(try await Self.curl(authority, "https://127.0.0.1:\(server.port)/health") == "ok\n")
                }
            }

            @Test func `a file that is missing or does not fit ends the program before it listens`() async throws {
                let authority = try TestAuthority()
                let (one, other) = (try authority.issue("one"), try authority.issue("other"))
                for (files, expected) in [
                    ((one.certificate, "/nonexistent"), "/nonexistent"), ((one.certificate, other.key), "not the key"),
                    ((one.key, one.key), "no certificate"),
                ] {
                    let folder = ScratchFolder()
                    let ended = try await ChildProgram.run(
                        [
                            "serve", "--listen", "127.0.0.1:0", "--set", "allowUnsigned=true", "--cache",
                            folder("cache"), "--set",
                            Self.settings(files)[0],
                        ], folder: folder.path)
                    #expect(ended.exit == 2 && ended.errors.contains(expected), "\(ended.errors)")
                }
            }
        }
    }
#endif
