import PipelineSupport
import TestSupport
import Testing

@testable import pipectl

extension CommandTests {
    /// Bodies that an origin sends in content codings without being asked (RFC 9110 §8.4). `gzip` and `brotli` make
    /// them, `curl` undoes them.
    @Suite struct ServeCodings {
        /// By the last part of the URL: the fields' value and the body.
        private typealias Coded = (coding: String, body: [UInt8])

        /// The output of a program for a file.
        private static func made(_ command: String, _ body: [UInt8], in folder: ScratchFolder) async throws -> [UInt8] {
            _ = folder.write(body, to: "plain")
            let program = try HelperProgram(["sh", "-c", "\(command) <plain >coded"], folder: folder.path)
            try #require(await program.end() == 0, "\(program.text)")
            return try #require(folder.bytes("coded"))
        }

        /// RFC 1950 around the data of a gzip file (RFC 1952) that has no optional fields.
        private static func zlib(_ gzip: [UInt8], of plain: [UInt8]) -> [UInt8] {
            var (a, b): (UInt32, UInt32) = (1, 0)
            for byte in plain {
                a = (a + UInt32(byte)) % 65_521
                b = (b + a) % 65_521
            }
            let sum = b << 16 | a
            let data = gzip[10..<(gzip.count - 8)]
            return [0x78, 0x9C] + data + [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: sum >> $0) }
        }

        private static func coded(_ plain: [UInt8], in folder: ScratchFolder) async throws -> [String: Coded] {
            let gzip = try await made("gzip -nc", plain, in: folder)
            let brotli = try await made("brotli -c", plain, in: folder)
            let half = plain.count / 2
            let members =
                try await made("gzip -nc", Array(plain[..<half]), in: folder)
                + made("gzip -nc", Array(plain[half...]), in: folder)
            return [
                "plain": ("", plain), "identity": ("identity", plain), "gzip": ("gzip", gzip),
                "x-gzip": ("X-GZip", gzip), "members": ("gzip", members),
                "trailer": ("gzip", gzip + Array(repeating: 0, count: 100)),
                "deflate": ("deflate", zlib(gzip, of: plain)),
                "raw": ("deflate", Array(gzip[10..<(gzip.count - 8)])),
                "br": ("br", brotli), "two": ("br, gzip", try await made("gzip -nc", brotli, in: folder)),
                // Named, and not used.
                "untrue": ("gzip", plain),
                "cut": ("gzip", Array(gzip[..<half])), "cut-br": ("br", Array(brotli[..<half])),
                "wrong": ("br", gzip), "unknown": ("zstd", gzip), "three": ("gzip, gzip, gzip", gzip),
            ]
        }

        private static func origin(_ all: [String: Coded]) throws -> LoopbackOrigin {
            try LoopbackOrigin { request in
                guard let one = all[String(request.path.dropFirst())] else { return .response(404) }
                let fields: KeyValuePairs = [
                    "Content-Type": "image/jpeg", "Cache-Control": "max-age=600", "ETag": "\"1\"",
                    one.coding.isEmpty ? "X-None" : "Content-Encoding": one.coding,
                ]
                return .response(200, fields, body: one.body)
            }
        }

        private static let readable = [
            "identity", "gzip", "x-gzip", "members", "trailer", "deflate", "raw", "br", "two", "untrue",
        ]

        /// - Parameter padding: bytes behind the picture's end. Longer bodies than 4 MiB are kept in files.
        @Test(arguments: [0, 5_000_000])
        func `variants are those of the picture, and original passes it on as sent`(padding: Int) async throws {
            let folder = ScratchFolder()
            var random = FuzzRandom(seed: 3)
            let plain =
                try #require(ScratchFolder.bytes(at: Samples.original("night-tiny.jpg")))
                + (0..<padding).map { _ in UInt8.random(in: 0...255, using: &random) }
            let all = try await Self.coded(plain, in: folder)
            let origin = try Self.origin(all)
            defer { origin.stop() }
            try await RunningServer.with(folder: folder) { server in
                let expected = try await server.ask(RunningServer.variant("thumbnail:40,png", origin.url("/plain")))
                #expect(expected.status == 200)
                for name in Self.readable {
                    let url = origin.url("/" + name)
                    for _ in 0..<2 {
                        let variant = try await server.ask(RunningServer.variant("thumbnail:40,png", url))
                        #expect(variant.status == 200 && variant.body == expected.body, "\(name): \(variant.text)")
                    }
                    let sent = try await server.ask(RunningServer.original(url))
                    #expect(sent.status == 200 && sent.body == all[name]?.body, "\(name)")
                    #expect(sent["content-encoding"] == all[name]?.coding)
                    guard !["untrue", "x-gzip", "trailer", "members"].contains(name) else { continue }
                    let curl = try HelperProgram(
                        [
                            "curl", "-sS", "--compressed", "-o", "curled",
                            "http://127.0.0.1:\(server.port)" + RunningServer.original(url),
                        ], folder: folder.path)
                    #expect(await curl.end() == 0, "\(name): \(curl.text)")
                    #expect(folder.bytes("curled") == plain, "\(name)")
                }
                // One request for each, whether variants or the original came first.
                #expect(origin.requests.count == Self.readable.count + 1)
            }
        }

        @Test func `what cannot be undone is refused by name, and a bomb as it grows`() async throws {
            let folder = ScratchFolder()
            let plain = try #require(ScratchFolder.bytes(at: Samples.original("night-tiny.jpg")))
            var all = try await Self.coded(plain, in: folder)
            for (name, command) in [("bomb", "gzip -nc"), ("bomb-br", "brotli -c -q 1")] {
                let zeros = try HelperProgram(
                    ["sh", "-c", "head -c 300000000 /dev/zero | \(command) >bomb"], folder: folder.path)
                try #require(await zeros.end() == 0)
                all[name] = (name == "bomb" ? "gzip" : "br", try #require(folder.bytes("bomb")))
            }
            let origin = try Self.origin(all)
            defer { origin.stop() }
            for (name, exit, words) in [
                ("cut", 6, "it is incomplete"), ("cut-br", 6, "it is incomplete"),
                ("wrong", 6, "not encoded with `br`"),
                ("unknown", 5, "content coding `zstd`"), ("three", 5, "3 content codings"),
                ("bomb", 5, "1000000 bytes (limits.bytes)"),
                ("bomb-br", 5, "1000000 bytes (limits.bytes)"),
            ] {
                let site = CommandSite()
                let ended = try await site.run(
                    ["get", origin.url("/" + name), "-r", "thumbnail:40", "-o", "-", "--set", "limits.bytes=1000000"])
                #expect(ended.exit == exit && ended.errors.contains(words), "\(name): \(ended.exit) \(ended.errors)")
            }
        }

        @Test func `info, explain and get without a recipe see the picture`() async throws {
            let folder = ScratchFolder()
            let plain = try #require(ScratchFolder.bytes(at: Samples.original("night-tiny.jpg")))
            let origin = try Self.origin(try await Self.coded(plain, in: folder))
            defer { origin.stop() }
            let site = CommandSite()
            let url = origin.url("/br")
            let information = try await site.run(["info", url])
            #expect(information.exit == 0 && information.text.contains("97 × 61"), "\(information.errors)")
            let got = try await site.run(["get", url, "-o", "whole.jpg"])
            #expect(got.exit == 0 && site.folder.bytes("whole.jpg") == plain, "\(got.errors)")
            let reported = try await site.run(["get", url, "-o", "whole.jpg", "--json"])
            #expect(SettingValue.parsed(reported.text).at("digest") == .string(sha256Hex(plain)))
            let explained = try await site.run(["explain", url, "-r", "thumbnail:40", "--json"])
            #expect(SettingValue.parsed(explained.text).at("variant", "key") != nil, "\(explained.text)")
            #expect(try await site.run(["cache", "verify"]).exit == 0)
        }
    }
}
