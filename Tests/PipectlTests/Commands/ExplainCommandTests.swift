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

        @Test func `a field without a colon is a usage error`() async throws {
            let ended = try await site.run(["explain", "http://127.0.0.1/a", "--field", "nonsense"])
            #expect(ended.exit == 2 && ended.errors.contains("Name: value"))
        }
    }
}
