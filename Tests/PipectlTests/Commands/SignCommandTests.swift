import Glibc
import ImageServer
import TestSupport
import Testing

@testable import pipectl

extension CommandTests {
    @Suite struct Sign {
        private let site = CommandSite()

        private struct Vector {
            var id: String
            var key: String
            var expiry: String
            /// Route and segments.
            var words: [String]
            var path: String
        }

        /// The lines of `samples/signers/vectors.tsv`.
        private static func vectors() throws -> [Vector] {
            let bytes = try #require(ScratchFolder.bytes(at: Samples.folder + "/signers/vectors.tsv"))
            return String(decoding: bytes, as: UTF8.self).split(separator: "\n").filter { !$0.hasPrefix("#") }.map {
                line in
                let columns = line.split(separator: "\t").map(String.init)
                return Vector(
                    id: columns[0], key: columns[1], expiry: columns[2], words: Array(columns[3..<(columns.count - 1)]),
                    path: columns[columns.count - 1])
            }
        }

        @Test func `paths are those of the test vectors, with the key from a file or the environment`() async throws {
            for vector in try Self.vectors() {
                let file = site.folder.write(
                    "other: \(String(repeating: "0", count: 32))\n\(vector.id): \(vector.key)\n", to: "k")
                let options = ["--key", vector.id] + (vector.expiry == "-" ? [] : ["--expires", vector.expiry])
                let words = ["sign"] + vector.words + options
                let ended = try await site.plain(words + ["--set", "keysFile=\(file)"])
                #expect(ended.exit == 0 && ended.text == vector.path + "\n", "\(ended.text) \(ended.errors)")
                let child = try ChildProgram(
                    words, folder: site.folder.path, environment: [#"PIPECTL_KEYS={"\#(vector.id)":"\#(vector.key)"}"#])
                #expect(await child.end.text == vector.path + "\n")
            }
        }

        @Test func `a key is chosen by name, and needs no name where it is the only one`() async throws {
            let one = site.folder.write("web: 00112233445566778899aabbccddeeff\n", to: "one")
            let two = site.folder.write(
                "a: 00112233445566778899aabbccddeeff\nb: 00112233445566778899aabbccddeeff\n", to: "two")
            let words = ["sign", "original", "https://a.test/b.jpg", "--set"]
            #expect(try await site.plain(words + ["keysFile=\(one)"]).text.hasPrefix("/original/web."))
            for (more, message) in [
                (["keysFile=\(two)"], "several keys are configured; choose one of `a`, `b` with --key"),
                (["keysFile=\(two)", "--key", "c"], "the key `c` is not configured; choose one of"),
                (["quiet=1"], "unknown setting"),
                (["retries=0"], "no signing key is configured"),
                (["keysFile=\(one)", "--expires", "1x"], "90s, 15m, 1h or 7d"),
                (["keysFile=\(one)", "--expires", "3600"], "3600s"),
                (["keysFile=\(one)", "--expires", "0s"], "is in the past"),
            ] {
                let ended = try await site.plain(words + more)
                #expect(ended.exit == 2 && ended.errors.contains(message) && ended.text.isEmpty, "\(ended.errors)")
            }
            let typo = try await site.plain([
                "sign", "variant", "thumbnial:3", "https://a.test", "--set", "keysFile=\(one)",
            ])
            #expect(typo.exit == 2 && typo.errors.contains("did you mean `thumbnail`"), "\(typo.errors)")
        }

        @Test(arguments: [
            (["variant", "thumbnail:300"], ["recipes.presetsOnly=true"], "renders only presets"),
            (["variant", "@card,dpr:4"], ["recipes.presetsOnly=true"], "dpr:3"),
            (["variant", "@crad"], [], "did you mean `@card`"),
            (["variant", "circle"], ["recipes.allow=@card"], "recipes.allow"),
            (["variant", "circle"], ["recipes.steps=thumbnail"], "recipes.steps"),
            (["variant", "thumbnail:301"], ["sizes.steps=[300]", "sizes.strict=true"], "sizes.strict"),
            (["original"], ["recipes.presetsOnly=true"], "server.routes"),
            (["info"], ["server.routes=variant"], "server.routes"),
            (["variant", "@card,dpr:2"], ["recipes.presetsOnly=true"], nil),
            (["original"], ["recipes.presetsOnly=true", "server.routes=original"], nil),
            (["variant", "@card,webp"], [#"presets={}"#], nil),
        ])
        func `what the settings refuse is not signed`(_ words: [String], _ settings: [String], _ refusal: String?)
            async throws
        {
            let keys = site.folder.write("web: 00112233445566778899aabbccddeeff\n", to: "keys")
            let all = ["keysFile=\(keys)", #"presets={"card":"thumbnail:320x240:fill,webp"}"#] + settings
            let ended = try await site.plain(
                ["sign"] + words + ["https://a.test/b.jpg"] + all.flatMap { ["--set", $0] })
            #expect(ended.exit == (refusal == nil ? 0 : 2) && ended.text.isEmpty == (refusal != nil), "\(ended.errors)")
            if let refusal { #expect(ended.errors.contains(refusal), "\(ended.errors)") }
        }

        @Test func `the path of an upload names the recipe alone`() async throws {
            let file = site.folder.write("web: 00112233445566778899aabbccddeeff\n", to: "keys")
            let words = ["sign", "upload", "thumbnail:300,rounded-mask:8%", "--set", "keysFile=\(file)"]
            let key = try SigningKey(id: "web", hex: "00112233445566778899aabbccddeeff")
            let ended = try await site.plain(words + ["--expires", "4102444800"])
            #expect(ended.text == key.uploadPath(recipe: words[2], expiry: 4_102_444_800) + "\n")
            #expect(ended.text.hasSuffix("/thumbnail:300,rounded-mask:8%25?exp=4102444800\n"))
            let refused = try await site.plain(words + ["--set", "recipes.steps=circle"])
            #expect(refused.exit == 2 && refused.errors.contains("recipes.steps"))
        }

        @Test func `a time is a duration from now or Unix seconds`() throws {
            for (text, seconds) in [("90s", 1090), ("15m", 1900), ("1h", 4600), ("7d", 605_800), ("5000", 5000)] {
                #expect(try SigningOptions.expiry(text, now: 1000.5) == seconds)
            }
            for text in ["", "h", "-1h", "1.5h", "1 h", "1000", "999999999999", "99999999999d", "1w", "١h"] {
                #expect(throws: CommandFailure.self) { _ = try SigningOptions.expiry(text, now: 1000.5) }
            }
        }

        @Test func `the secret is not shown`() async throws {
            let settings = try await site.plain([
                "settings", "--set", #"keys={"web":"0011223344556677889900aabbccddee"}"#,
            ])
            #expect(settings.text.contains(#"keys = "(secret)""#) && !settings.text.contains("00112233"))
        }

        @Test func `the page on signing has every test vector`() throws {
            let page = try #require(ScratchFolder.bytes(at: Samples.folder + "/../docs/signing.md"))
            let text = String(decoding: page, as: UTF8.self)
            for vector in try Self.vectors() { #expect(text.contains(vector.path) && text.contains(vector.key)) }
        }

        /// The sample signers: a name, and the command to run one with.
        private static let signers: [(name: String, command: [String])] = [
            ("Swift", [MountedSite.Server.example("sign-path")]),
            ("Python", ["python3", Samples.folder + "/signers/sign.py"]),
            ("JavaScript", ["node", Samples.folder + "/signers/sign.mjs"]),
            ("shell", ["bash", Samples.folder + "/signers/sign.sh"]),
        ]

        /// The output of each signer for a vector; nil if the interpreter is missing.
        private static func printed(_ vector: Vector, _ signer: [String]) async throws -> String? {
            guard isInstalled(signer[0]) else { return nil }
            // `env` starts it, like `pipectl` in `ChildProgram`.
            return try await run(signer + [vector.id, vector.expiry] + vector.words, ["KEY=\(vector.key)"])
        }

        private static func isInstalled(_ program: String) -> Bool {
            if program.contains("/") { return access(program, X_OK) == 0 }
            let folders = (getenv("PATH").map { String(cString: $0) } ?? "/usr/bin:/bin").split(separator: ":")
            return folders.contains { access("\($0)/\(program)", X_OK) == 0 }
        }

        private static func run(_ words: [String], _ environment: [String]) async throws -> String {
            let folder = ScratchFolder()
            let child = try ChildProgram(
                Array(words.dropFirst()), program: words[0], folder: folder.path, environment: environment)
            let ended = await child.end
            #expect(ended.exit == 0, "\(words): \(ended.errors)")
            return ended.text
        }

        @Test(arguments: signers.map(\.name)) func `a sample signer prints what every other does`(name: String)
            async throws
        {
            let signer = try #require(Self.signers.first { $0.name == name })
            if name == "Swift", MountedSite.Server.areExamplesBuilt { #expect(Self.isInstalled(signer.command[0])) }
            for vector in try Self.vectors() {
                guard let text = try await Self.printed(vector, signer.command) else { return }
                #expect(text == vector.path + "\n", "\(name)")
            }
        }

        @Test func `the server serves what every signer signed, and nothing else`() async throws {
            let origin = try FolderOrigin(folder: Samples.folder + "/originals", maxAge: 3600)
            defer { origin.stop() }
            let key = "ffeeddccbbaa99887766554433221100ff"
            let folder = ScratchFolder()
            let keys = folder.write("web: \(key)\n", to: "keys")
            try await RunningServer.with(["allowUnsigned=false", "keysFile=\(keys)"], folder: folder) { server in
                let words = ["variant", "thumbnail:20,png", origin.url("/night-tiny.jpg")]
                var vector = Vector(id: "web", key: key, expiry: "4102444800", words: words, path: "")
                let ours = try await site.plain(
                    ["sign"] + words + ["--expires", vector.expiry, "--set", "keysFile=\(keys)"])
                vector.path = String(ours.text.dropLast())
                #expect(try await server.ask(vector.path).status == 200, "\(ours.errors)")
                for signer in Self.signers {
                    if let text = try await Self.printed(vector, signer.command) { #expect(text == vector.path + "\n") }
                }
                #expect(origin.requests.count == 1)

                // The lowest bit: the text stays visible ASCII. `AccessTests` has the others.
                for position in 0..<vector.path.utf8.count {
                    var bytes = Array(vector.path.utf8)
                    bytes[position] ^= 1
                    let answer = try await server.ask(String(decoding: bytes, as: UTF8.self))
                    #expect(
                        answer.status == 403 || position < 9 && [400, 404].contains(answer.status),
                        "\(position) \(answer.status)")
                    #expect(answer["cache-control"] == "no-store")
                }
                for target in [
                    RunningServer.variant("thumbnail:20,png", origin.url("/night-tiny.jpg")),
                    vector.path.replacing("?exp=4102444800", with: ""),
                ] { #expect(try await server.ask(target).problem == "bad-signature") }
                vector.expiry = "1000000000"
                // The shell's: that one is there everywhere.
                let late = try await Self.printed(vector, Self.signers[3].command)
                let answer = try await server.ask(String(try #require(late).dropLast()))
                #expect(answer.problem == "bad-signature" && answer.text.contains("expired on Sun, 09 Sep 2001"))
                #expect(origin.requests.count == 1)
            }
        }
    }
}
