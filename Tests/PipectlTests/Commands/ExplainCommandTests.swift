import PipelineSupport
import TestSupport
import Testing

@testable import pipectl

extension CommandTests {
    @Suite struct Explain {
        private let site = CommandSite()

        @Test func `explain tells before and after a get, as text and as JSON, and contacts no origin`() async throws {
            let origin = try FolderOrigin(folder: Samples.folder + "/originals", maxAge: 3600)
            defer { origin.stop() }
            let source = origin.url("/night-tiny.jpg")
            let before = try await site.run(["explain", source, "-r", "thumbnail:20"])
            #expect(before.exit == 0 && before.errors == "" && before.text.contains("decision  fetch"))
            #expect(origin.requests.isEmpty)
            let got = SettingValue.parsed(try await site.run(["get", source, "-r", "thumbnail:20", "--json"]).text)
            let after = try await site.run(["explain", source, "-r", "thumbnail:20"])
            #expect(after.text.contains("decision  reuse") && after.text.contains("Cache-Control: max-age=3600"))
            #expect(after.text.contains("answer    the variant from disk"), "\(after.text)")
            let json = try await site.run(
                ["explain", source, "-r", "thumbnail:20", "--json", "--policy", "revalidate", "--field", "X: y"])
            let object = SettingValue.parsed(json.text)
            #expect(object["decision"] == .string("validate") && object.at("variant", "key") == got["key"])
            #expect(json.text.contains(#"["X","y"]"#) && json.text.contains("If-None-Match"))
            #expect(origin.requests.count == 1)
        }

        @Test func `explain reads a path of a mounted grammar, and shows the settled recipe`() async throws {
            let origin = try FolderOrigin(folder: Samples.folder + "/originals", maxAge: 0)
            defer { origin.stop() }
            let source = origin.url("/night-tiny.jpg")
            let mounted = #"grammars={"next":{"path":"/_next/image","formats":["avif","webp"]}}"#
            let path = "/_next/image?url=\(source.replacing("/", with: "%2F"))&w=16&q=75"
            let words = ["explain", path, "--set", mounted, "--field", "Accept: image/avif"]
            #expect(try await site.run(words).text.contains("decision  fetch"))
            let got = SettingValue.parsed(
                try await site.run(["get", source, "-r", "thumbnail:16x,avif:55", "--json"]).text)
            let after = try await site.run(words)
            #expect(after.text.contains("recipe    thumbnail:16x,avif:55\n"), "\(after.text)")
            #expect(after.text.contains("decision  reuse: the response is within the minimum freshness"))
            #expect(SettingValue.parsed(try await site.run(words + ["--json"]).text).at("variant", "key") == got["key"])
            let refused = try await site.run(["explain", path.replacing("w=16", with: "w=17"), "--set", mounted])
            #expect(refused.exit == 2 && refused.errors.contains("\"w\" parameter (width) of 17 is not allowed"))
        }

        @Test func `a field without a colon is a usage error`() async throws {
            let ended = try await site.run(["explain", "http://127.0.0.1/a", "--field", "nonsense"])
            #expect(ended.exit == 2 && ended.errors.contains("Name: value"))
        }
    }
}
