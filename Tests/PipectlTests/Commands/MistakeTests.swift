import Glibc
import TestSupport
import Testing

@testable import Pipeline
@testable import pipectl

extension CommandTests {
    /// Command lines that newcomers write; each error names what to write.
    @Suite struct Mistakes {
        private let site = CommandSite()
        private let picture = Samples.original("night-tiny.jpg")

        static let usage: [(words: [String], error: String)] = [
            (["get", "a.jpg", "-r", "300", "-o", "b.jpg"], "did you mean `thumbnail:300`?"),
            (["get", "a.jpg", "thumbnail:30", "-o", "b.jpg"], "to give a recipe, use `-r thumbnail:30`"),
            (["get", "a.jpg", "--width", "320"], "use `-r thumbnail:320`"),
            (["batch", "a.jpg", "--size=320", "-o", "b"], "use `-r thumbnail:320`"),
            (["batch", "a", "--recursive", "-r", "circle", "-o", "b"], "folders are always read recursively"),
            (["serve", "--port", "9000"], "unknown option `--port`; use `--listen 127.0.0.1:9000`"),
            (["serve", "-p"], "use `--listen 127.0.0.1:8080`"),
            (["serve", "--host", "0.0.0.0"], "use `--listen 0.0.0.0:8080`"),
            (["serve", "nothere"], "pipectl: the folder nothere does not exist; use `pipectl serve FOLDER`"),
            (["serve", "9000"], "to set the port, use `--listen 127.0.0.1:9000`"),
            (["serve", "c.yaml"], "for a settings file, use `--config c.yaml`"),
            (["recipe", "thumbnail:300x200^"], "did you mean `thumbnail:300x200:fill`?"),
            (["batch", "a.jpg", "-o", "out", "--sizes", "320,640"], "use `--srcset 320,640`"),
            (["resize", "a.jpg"], "did you mean `pipectl get a.jpg -r thumbnail:300 -o small.jpg`?"),
            (["resize", "a.jpg", "--width", "300"], "did you mean `pipectl get a.jpg -r thumbnail:300 -o small.jpg`?"),
            (["convert", "-resize", "300", "a.jpg", "b.jpg"], "did you mean `pipectl get a.jpg -r thumbnail:300"),
            (["convert"], "did you mean `pipectl get SOURCE -r thumbnail:300 -o small.jpg`?"),
            (["c.yaml"], "did you mean `pipectl get c.yaml -r thumbnail:300 -o small.jpg`?"),
            (["https://a.test/a"], "did you mean `pipectl get https://a.test/a -r thumbnail:300 -o small.jpg`?"),
            (["."], "did you mean `pipectl serve .`?"), (["gett", "a.jpg"], "did you mean `pipectl get a.jpg`?"),
            (["ls"], "did you mean `pipectl cache list`?"), (["sharpen"], "`sharpen` is not a command; see --help"),
            (["sign", "thumbnail:300", "a.jpg"], "did you mean `pipectl sign variant thumbnail:300 a.jpg`?"),
            (["sign", "https://a.test/a"], "did you mean `pipectl sign original https://a.test/a`?"),
            (["cache", "clear", "--all"], "unknown option `--all`; to remove everything, use `pipectl cache clear`"),
            (["cache", "purg", "a.jpg"], "did you mean `pipectl cache purge a.jpg`?"),
        ]

        @Test(arguments: usage) func `a mistaken command line leads to the right one`(words: [String], error: String)
            async throws
        {
            site.folder.write("retries: 1", to: "c.yaml")
            let ended = try await site.plain(words)
            #expect(ended.exit == 2 && ended.output.isEmpty)
            #expect(ended.errors.contains(error) && ended.errors.hasPrefix("pipectl: "), "\(ended.errors)")
            #expect(ended.errors.split(separator: "\n").count == 1, "\(ended.errors)")
        }

        @Test func `a recipe of a single step is quoted once`() async throws {
            let ended = try await site.plain(["recipe", "thumbnail:300x200:sideways"])
            #expect(ended.errors.hasPrefix("pipectl: recipe `thumbnail:300x200:sideways`: unknown argument `sideways`"))
            #expect(ended.errors.split(separator: "thumbnail:300x200:sideways").count == 2, "\(ended.errors)")
            let second = try await site.plain(["recipe", "circle,blur"])
            #expect(second.errors.hasPrefix("pipectl: recipe `circle,blur`: step 2, `blur`: expected"))
        }

        @Test func `a folder that is missing is named with the command that makes it`() async throws {
            let make = "the folder new/folder does not exist; create it with `mkdir -p new/folder`"
            let flags = ["-r", "thumbnail:20", "-o"]
            let get = try await site.run(["get", picture] + flags + ["new/folder/a.jpg"])
            #expect(get.exit == 8 && get.errors.contains(make), "\(get.errors)")
            let report = try await site.run(["batch", picture] + flags + ["out", "--report", "new/folder/r.jsonl"])
            #expect(report.exit == 8 && report.errors.contains(make), "\(report.errors)")
        }

        @Test(arguments: ["list.txt", "list.csv", "list.jsonl", "-"], [true, false])
        func `a list in UTF-16 is one error, which says how to convert it`(name: String, isLittle: Bool) async throws {
            let text = Array("source\na.jpg\n".utf16)
            let bytes: [UInt8] = text.flatMap { (unit: UInt16) -> [UInt8] in
                isLittle ? [UInt8(unit), 0] : [0, UInt8(unit)]
            }
            let mark: [UInt8] = isLittle ? [0xFF, 0xFE] : [0xFE, 0xFF]
            for list in [mark + bytes, bytes] {
                let file = site.folder.write(list, to: name == "-" ? "input" : name)
                let words = ["batch", name == "-" ? "-" : file, "-r", "circle", "-o", "out", "--json"]
                let ended = try await site.run(words, input: name == "-" ? file : "/dev/null")
                #expect(ended.exit == 1 && ended.errors.contains("`iconv -f UTF-16\(isLittle ? "L" : "B")E -t UTF-8`"))
                let summary = SettingValue.parsed(ended.text)
                #expect(summary.at("failures", "badManifest") == .int(1), "\(ended.text)")
                #expect(summary["items"] == .int(1), "\(ended.text)")
            }
        }

        @Test func `what is missing has one name, whatever names it`() async throws {
            let ended = try await site.run(["batch", "nothere.jpg", "x*.jpg", "-r", "circle", "-o", "out", "--json"])
            #expect(SettingValue.parsed(ended.text).at("failures", "notFound") == .int(2), "\(ended.text)")
            #expect(PipelineError.Code.ofItems.allSatisfy { !PipelineError.Code.all.contains($0) })
        }

        @Test func `a failed connection says that the environment's proxy is not used`() async throws {
            let port = try RefusingPort()
            defer { withExtendedLifetime(port) {} }
            let words = ["get", port.url("/a.jpg"), "-o", "a.jpg"] + site.flags
            for (variable, isNamed) in [("http_proxy", true), ("ALL_PROXY", true), ("https_proxy", false)] {
                let child = try ChildProgram(
                    words, folder: site.folder.path, environment: [variable + "=http://127.0.0.1:9"])
                let ended = await child.end
                let note = "the proxy in the environment variable `\(variable)` is not used; set `fetch.proxy`"
                #expect(ended.exit == 4 && ended.errors.contains(note) == isNamed, "\(ended.errors)")
            }
        }
    }
}
