import Pipeline
import TestSupport
import Testing

@testable import pipectl

/// All errors of a start are found at once, in order of their sources.
@Suite struct SettingErrorsTests {
    private let folder = ScratchFolder()

    private func lines(
        _ file: String, _ assignments: [String] = [], environment: [String: String] = [:]
    ) -> [String] {
        let path = folder.write(file, to: "c.yaml")
        do throws(SettingErrors) {
            _ = try Settings.collected(assignments: assignments, environment: environment, file: path).serving()
            return []
        } catch {
            return error.lines.map { $0.replacing(folder.path + "/", with: "") }
        }
    }

    @Test func `errors of the file come by line, then the environment's, then the flags'`() {
        let text = """
            allowUnsigned: true
            fetch:
              slots: abc
            hosts:
              a.test: {basic: geheim}
            mebory.originals: 1
            recipes.allow: [circle, "thumbnial:3"]
            auto: [bmp]
            """
        #expect(
            lines(
                text, ["retries=many", "server.rate=-1"],
                environment: ["PIPECTL_NOTHING_LIKE_IT": "geheim", "PIPECTL_ADMIN_TOKEN": "geheim"]) == [
                    "c.yaml, line 3: `abc` is not valid for `fetch.slots`; expected a whole number from 1 to 4096",
                    "c.yaml, line 5: `hosts`: a.test: basic: is not USER:PASSWORD",
                    "c.yaml, line 6: unknown setting `mebory.originals`; did you mean `memory.originals`?",
                    "c.yaml, line 7: `recipes.allow`: recipe `thumbnial:3`: unknown step; did you mean "
                        + "`thumbnail`?",
                    "c.yaml, line 8: `auto`: expected one of jxl, avif, webp, not `bmp`",
                    "environment variable PIPECTL_ADMIN_TOKEN: `adminToken`: must have at least 16 characters of visible ASCII "
                        + "without spaces; create one with `openssl rand -hex 32`",
                    "environment variable PIPECTL_NOTHING_LIKE_IT: there is no setting for this variable",
                    "--set retries: `many` is not valid for `retries`; expected a whole number from 0 to 20",
                    "--set server.rate: `-1` is not valid for `server.rate`; expected a number of at least 0",
                ])
    }

    @Test func `each member at fault has a line of its own`() {
        let text = """
            allowUnsigned: true
            presets:
              good: circle
              bad: thumbnial:3
              user: "@bad"
              number: 3
            hosts:
              a.test: {insecure: 1, trace: 2}
              b.test/path: {}
            baseURLs:
              http: https://a.test
              a: ftp://geheim@b.test
            server.trustedProxies:
              - 10.0.0.0/8
              - x
              - y
            keys:
              a: geheim
              b: 12
            recipes.steps: [circle, squircle]
            """
        let found = lines(text).map { $0.split(separator: ":").first.map(String.init) ?? "" }
        #expect(found == [6, 8, 8, 9, 11, 12, 15, 16, 18, 19, 20].map { "c.yaml, line \($0)" })
        #expect(lines(text.replacing("  number: 3\n", with: "")).first?.hasPrefix("c.yaml, line 4: ") == true)
        #expect(!lines(text).joined().contains("geheim"))
    }

    @Test(arguments: [
        ("{maxAge: 1, immutabel: true}", "did you mean `immutable`?"),
        ("{immutable: true}", "`maxAge` is missing; set it to a number of seconds"),
        ("{maxAge: -1}", "maxAge: expected"), ("{maxAge: 1, immutable: 1}", "immutable: expected true or false"),
        ("{presets: 1}", "presets: expected a map"), ("{presets: {card: 1}}", "presets: card: expected a map"),
        (
            "{presets: {card: {staleWhileRevalidate: 1}}}",
            "presets: card: `maxAge` is missing; set it to a number of seconds"
        ),
        ("{presets: {crad: {maxAge: 1}}}", "there is no preset `crad`"),
    ])
    func `server.cacheControl says what is wrong with it`(value: String, problem: String) {
        let found = lines("allowUnsigned: true\npresets: {card: circle}\nserver.cacheControl: \(value)\n")
        #expect(found.count == 1 && found.first?.hasPrefix("c.yaml, line 3: ") == true, "\(found)")
        #expect(found.first?.contains(problem) == true, "\(found)")
    }

    @Test func `presets that others use are at fault alone, those of a circle all are`() {
        let text = "allowUnsigned: true\npresets:\n  a: '@b'\n  b: thumbnial:3\n  c: '@d'\n  d: '@c'\n  e: circle\n"
        let found = lines(text)
        #expect(found.count == 3, "\(found)")
        #expect(found.first?.contains("`presets`: in preset `b`, step 1, `thumbnial:3`") == true, "\(found)")
        for (line, letter) in zip(found.dropFirst(), ["d", "c"]) { #expect(line.contains("in preset `\(letter)`")) }
    }

    @Test func `every bad line of keysFile is an error, after all others and without a key`() {
        folder.write(
            "a: 00112233445566778899aabbccddeeff\nx\n\nb: geheim\na: 00112233445566778899aabbccddeeff\n", to: "k")
        let found = lines("keysFile: k\n", ["retries=-1"])
        #expect(found.count == 4 && found.first?.hasPrefix("--set retries: ") == true, "\(found)")
        #expect(found.dropFirst().map { $0.prefix(9) } == ["k, line 2", "k, line 4", "k, line 5"])
        #expect(!found.joined().contains("geheim") && !found.joined().contains("0011"))
    }

    @Test func `what follows from several settings comes last, and not if one of them is wrong by itself`() {
        let text = "sizes.strict: true\nrecipes.presetsOnly: true\nallowUnsigned: false\n"
        let all = lines(text, ["retries=-1"])
        #expect(all.count == 4, "\(all)")
        #expect(
            zip(all, ["--set retries: ", "c.yaml, line 2: ", "c.yaml, line 1: ", "the server has no keys"]).allSatisfy {
                $0.hasPrefix($1)
            }, "\(all)")
        let fewer = lines(text, ["sizes.steps=[0]", "presets={\"a\":1}", "keys={\"a\":1}"])
        #expect(fewer.count == 3 && fewer.allSatisfy { $0.hasPrefix("--set ") }, "\(fewer)")
    }

    @Test(arguments: ["presets", "baseURLs"])
    func `a member of a map of texts that is not text is an error in every command`(_ key: String) {
        let error = #expect(throws: SettingErrors.self) { try Settings(assignments: [key + #"={"a":1}"#]) }
        #expect(error?.lines.first?.contains("`a` is a number; expected text") == true)
    }

    @Test func `a bucket that a template leaves empty is none`() throws {
        let settings = try Settings(assignments: [#"remote.s3={"bucket":"","prefix":""}"#])
        #expect(try settings.configuration().pipelineConfiguration().remote == nil)
    }

    @Test func `a file that is not YAML ends the reading of that file alone`() {
        let found = lines("sizes.strict: true\na: [1\n", ["retries=-1", "sizes.strict=true"])
        #expect(found.count == 2, "\(found)")
        #expect(found.first?.hasPrefix("c.yaml, line 3: not valid YAML: ") == true)
        #expect(found.last?.hasPrefix("--set retries: ") == true)
    }

    @Test func `of very many errors fifty are shown, each as one line`() {
        let found = lines((0..<80).map { "\"a\\nb\($0)\": 1\n" }.joined() + "allowUnsigned: true\n")
        #expect(found.count == SettingErrors.limit + 1 && found.last == "and 30 more")
        #expect(found.allSatisfy { !$0.contains("\n") })
    }
}

extension CommandTests {
    @Suite struct SettingErrorLines {
        @Test(arguments: [
            ["serve"], ["get", "http://127.0.0.1/a"], ["cache", "stats"], ["settings"], ["recipe", "circle"],
            ["sign", "info", "http://127.0.0.1/a"],
        ])
        func `every command prints all errors, a line each, and exits with 2`(_ command: [String]) async throws {
            let folder = ScratchFolder()
            let file = folder.write("fetch.slots: abc\nretires: 1\n", to: "c.yaml")
            let ended = try await ChildProgram.run(
                command + ["--config", file, "--cache", folder("cache"), "--set", "retries=many"], folder: folder.path)
            let lines = ended.errors.split(separator: "\n")
            #expect(ended.exit == 2 && ended.output.isEmpty && lines.count >= 3, "\(ended.errors)")
            for (line, start) in zip(lines, ["\(file), line 1: ", "\(file), line 2: ", "--set retries: "]) {
                #expect(line.hasPrefix("pipectl: " + start), "\(line)")
            }
        }
    }
}
