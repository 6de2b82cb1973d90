import PipelineSupport
import Foundation
import Testing
import TestSupport

@testable import pipectl

extension CommandTests {
    @Suite struct SettingsCommands {
        private let site = CommandSite()

        @Test func `settings shows what is in force, where it came from, and no secret`() async throws {
            let file = site.folder.write("limits.pixels: 1000\n", to: "c.yaml")
            let words = [
                "settings", "--config", file, "--set", "fetch.slots=8", "--set",
                #"hosts={"a.org":{"bearer":"geheim"}}"#,
            ]
            let text = try await site.plain(words)
            #expect(text.exit == 0, "\(text.errors)")
            #expect(text.text.contains("fetch.slots = 8  (--set fetch.slots; default 16)"))
            #expect(text.text.contains("limits.pixels = 1000  (\(file), line 1; default 100000000)"))
            #expect(text.text.contains("retries = 2  (default)") && !text.text.contains("geheim"))
            let json = try await site.plain(words + ["--json"])
            let lines = json.lines.map { SettingValue.parsed($0) }
            #expect(lines.map { $0["name"] } == SettingCatalog.all.map { .string($0.key) })
            let slots = try #require(lines.first { $0["name"] == .string("fetch.slots") })
            #expect(
                slots["value"] == .int(8) && slots["default"] == .int(16)
                    && slots["origin"] == .string("--set fetch.slots"))
            #expect(lines.allSatisfy { $0["reason"] != nil && $0["type"] != nil } && !json.text.contains("geheim"))
        }

        @Test func `docs settings md holds the table of the catalogue`() throws {
            let path = FuzzPlan.root + "/docs/settings.md"
            let text = String(decoding: try #require(FuzzPlan.contents(path)), as: UTF8.self)
            let rows = SettingCatalog.all.map { setting in
                let cells = [
                    "`\(setting.key)`", setting.kind.expectation, "`\(setting.fallback.json)`", setting.reason,
                    setting.differingDefault?.text ?? "", SettingCatalog.reloaded.contains(setting.key) ? "yes" : "",
                ]
                return "| " + cells.map { $0.replacing("|", with: "\\|") }.joined(separator: " | ") + " |"
            }
            let head = [
                "| setting | takes | default | what and why | another default | reload |", "|---|---|---|---|---|---|",
            ]
            let table = (head + rows).joined(separator: "\n") + "\n"
            #expect(text.contains(table), "replace the table by:\n\(table)")
        }

        @Test func `limits steps is the longest recipe of every command`() async throws {
            let source = Samples.original("grey.jpg")
            for words in [["get", source, "-o", "a"], ["explain", source], ["batch", source, "-o", "out"]] {
                let setting = ["--set", "limits.steps=2"]
                let refused = try await site.run(words + ["-r", "circle,circle,png"] + setting)
                #expect(
                    refused.exit == 2 && refused.errors.contains("at most 2 steps (limits.steps)"), "\(refused.errors)")
                #expect(try await site.run(words + ["-r", "circle,png"] + setting).exit == 0)
            }
        }

        @Test(arguments: ["text", "json"]) func `the server's log has times, and JSON where it is asked for`(
            format: String
        ) async throws {
            let folder = ScratchFolder()
            let server = try await RunningServer.start(["log.format=\(format)", "log.level=info"], folder: folder)
            #expect(try await server.ask("/health").status == 200)
            let ended = await server.stop()
            let lines = ended.errors.split(separator: "\n")
            #expect(lines.count >= 3)
            for line in lines {
                if format == "json" {
                    let object = SettingValue.parsed(line)
                    #expect(object["time"] != nil && object["level"] != nil && object["message"] != nil, "\(line)")
                } else {
                    #expect(line.firstMatch(of: /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z ./) != nil, "\(line)")
                }
            }
            let request = try #require(lines.last { $0.contains("/health") })
            if format == "json" {
                let object = SettingValue.parsed(request)
                #expect(object["status"] == .int(200) && object["method"] == .string("GET"))
                #expect(object["target"] == .string("/health") && object["client"] == .string("127.0.0.1"))
            }
        }
    }
}

@Suite struct LogLineTests {
    @Test func `times are UTC with milliseconds (RFC 3339)`() {
        #expect(LogLine.timestamp(0) == "1970-01-01T00:00:00.000Z")
        #expect(LogLine.timestamp(1_709_210_096.0425) == "2024-02-29T12:34:56.042Z")
    }
}
