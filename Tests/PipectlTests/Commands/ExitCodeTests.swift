@testable import PipelineCaching
import PipelineSupport
import CSQLite
import Glibc
import TestSupport
import Testing

@testable import Pipeline
@testable import pipectl

extension CommandTests {
    /// Every exit code by a real cause (design §5).
    @Suite struct ExitCodes {
        private let site = CommandSite()
        private let picture = Samples.original("night-tiny.jpg")

        @Test(arguments: [
            ["get", "PICTURE", "-r", "thumbnial:20", "-o", "a.jpg"],
            ["get", "PICTURE", "-r", "mask:nowhere", "-o", "a.png"],
            ["get", "PICTURE", "-r", "mask:nowhere", "-o", "a.png", "--set", "masks=MASKS"],
            ["get", "PICTURE", "-o", "a.jpg", "--set", "fetch.slot=3"],
            ["get", "PICTURE", "-o", "a.jpg", "--set", "fetch.slots=many"],
            ["get", "PICTURE", "-o", "a.jpg", "--config", "missing.yaml"],
            ["get", "PICTURE", "-r", "thumbnail:20", "--json", "-o", "-"],
            ["get", "PICTURE", "-o", "a.jpg", "--policy", "never"],
            ["get", "ftp://example.org/a.jpg", "-o", "a.jpg"],
            ["get", "PICTURE", "-r", "thumbnail:20", "-o", "a.jpg", "--set", "limits.workerMemory=63MiB"],
            ["get", "PICTURE", "-thumbnail:20", "-o", "a.jpg"],
            ["get", "PICTURE", "-rthumbnail:20", "-o", "a.jpg"],
            ["batch", "PICTURE", "-thumbnial:20", "-o", "out"],
            ["get", "-", "-o", "a.jpg"],
            ["info", "-"],
            ["get"],
            ["gett", "PICTURE"],
            ["batch", "PICTURE", "-o", "out"],
            ["batch", "PICTURE", "-r", "nonsense", "-o", "out"],
            ["recipe", "thumbnail:20:sideways"],
            ["cache", "trim"],
        ])
        func `2: usage or configuration`(arguments: [String]) async throws {
            let words = arguments.map {
                $0 == "PICTURE" ? picture : $0.replacing("MASKS", with: Samples.folder + "/masks")
            }
            let isRecipeOnly = words[0] == "gett"
            let ended = isRecipeOnly ? try await site.plain(words) : try await site.run(words)
            #expect(ended.exit == 2, "\(ended.errors)")
            #expect(ended.output.isEmpty && !ended.errors.isEmpty)
            #expect(site.folder.bytes("a.jpg") == nil && site.folder.bytes("a.png") == nil)
        }

        @Test func `2: a mistyped step or setting is told what it may have meant`() async throws {
            let step = try await site.run(["get", picture, "-r", "thumbnial:20", "-o", "a.jpg"])
            #expect(step.errors.contains("thumbnail"))
            let setting = try await site.run(["get", picture, "-o", "a.jpg", "--set", "fetch.slot=3"])
            #expect(setting.errors.contains("fetch.slots"))
            let stdin = try await site.run(["get", "-", "-o", "a.jpg"])
            #expect(stdin.errors.contains("cannot be read from standard input"))
            let memory = try await site.run(["get", picture, "-o", "a.jpg", "--set", "limits.workerMemory=1"])
            #expect(memory.errors.contains("limits.workerMemory is 1 bytes") && memory.errors.contains("64 MiB"))
            let stray = try await site.run(["get", picture, "-thumbnail:20", "-o", "a.jpg"])
            #expect(stray.errors.contains("`-thumbnail:20` is not an option; to give a recipe, use `-r thumbnail:20`"))
            #expect(try await site.plain(["get", "-qh"]).text.contains("OVERVIEW"))
        }

        @Test func `3: a loopback address is refused unless allowed, and is never asked`() async throws {
            let origin = try FolderOrigin(folder: Samples.folder + "/originals")
            defer { origin.stop() }
            let ended = try await site.plain(
                ["get", origin.url("/grey.jpg"), "-o", "a.jpg", "--cache", site.cache, "--json"])
            #expect(ended.exit == 3, "\(ended.errors)")
            #expect(SettingValue.parsed(ended.text).at("error", "code") == .string("sourceRefused"))
            #expect(origin.requests.isEmpty && site.folder.bytes("a.jpg") == nil)
        }

        @Test func `4: what the origin does not have, told as a line of JSON too`() async throws {
            let origin = try FolderOrigin(folder: Samples.folder + "/originals")
            defer { origin.stop() }
            let ended = try await site.run(["get", origin.url("/nothing.jpg"), "-r", "thumbnail:20", "--json"])
            #expect(ended.exit == 4 && ended.lines.count == 1)
            let line = SettingValue.parsed(ended.text)
            #expect(line["source"] == .string(origin.url("/nothing.jpg")))
            #expect(line["outcome"] == .string("failed"))
            #expect(line.at("error", "code") == .string("notFound"))
            guard case .string(let message)? = line.at("error", "message") else {
                Issue.record("no message")
                return
            }
            #expect(message.contains("404") && ended.errors.contains(message))
        }

        @Test func `4: a closed port, a missing file, an empty cache`() async throws {
            let port = try RefusingPort()
            defer { withExtendedLifetime(port) {} }
            let url = port.url("/a.jpg")
            let closed = try await site.run(["get", url, "-o", "a.jpg"])
            #expect(closed.exit == 4, "\(closed.errors)")
            let missing = try await site.run(["get", site.folder("none.jpg"), "-o", "a.jpg"])
            #expect(missing.exit == 4, "\(missing.errors)")
            let offline = try await site.run(["get", url, "-o", "a.jpg", "--policy", "cacheOnly"])
            #expect(offline.exit == 4, "\(offline.errors)")
            #expect(site.folder.bytes("a.jpg") == nil)
        }

        @Test func `5: HTML that calls itself a picture, and one over the limit of pixels`() async throws {
            let page = Array("<!doctype html><title>Sign in</title>".utf8)
            let origin = try LoopbackOrigin { _ in .response(200, ["Content-Type": "image/jpeg"], body: page) }
            defer { origin.stop() }
            let html = try await site.run(["get", origin.url("/a.jpg"), "-r", "thumbnail:20", "-o", "a.jpg"])
            #expect(html.exit == 5, "\(html.errors)")
            let large = try await site.run([
                "get", picture, "-r", "thumbnail:20", "-o", "a.jpg", "--set", "limits.pixels=100",
            ])
            #expect(large.exit == 5, "\(large.errors)")
            let giant = try await site.run(
                ["get", Samples.broken("giant-header.png"), "-r", "thumbnail:20", "-o", "a.jpg"])
            #expect(giant.exit == 5, "\(giant.errors)")
            let empty = try await site.run(["get", Samples.broken("empty.jpg"), "-r", "thumbnail:20", "-o", "a.jpg"])
            #expect(empty.exit == 5, "\(empty.errors)")
            #expect(site.folder.bytes("a.jpg") == nil)
        }

        @Test func `6: a picture that ends early`() async throws {
            let origin = try FolderOrigin(folder: Samples.folder + "/broken")
            defer { origin.stop() }
            let ended = try await site.run(["get", origin.url("/truncated.jpg"), "-r", "scaled:0.5", "-o", "a.jpg"])
            #expect(ended.exit == 6, "\(ended.errors)")
            #expect(site.folder.bytes("a.jpg") == nil)
        }

        @Test func `7: a cache folder below a file`() async throws {
            let file = site.folder.write("a file", to: "file")
            let flags = ["--cache", file + "/cache"]
            let get = try await site.plain(["get", picture, "-o", "a.jpg"] + flags)
            #expect(get.exit == 7 && site.folder.bytes("a.jpg") == nil, "\(get.errors)")
            let batch = try await site.plain(["batch", picture, "-r", "thumbnail:20", "-o", "out"] + flags)
            #expect(batch.exit == 7, "\(batch.errors)")
            #expect(try await site.plain(["cache", "stats"] + flags).exit == 7)
        }

        @Test func `7: a cache folder of a newer version is left as it is`() async throws {
            #expect(try await site.run(["get", picture, "-r", "thumbnail:20", "-o", "a.jpg"]).exit == 0)
            #expect(Self.execute("PRAGMA user_version=9999", in: site.cache + "/cache.sqlite") == SQLITE_OK)
            let get = try await site.run(["get", picture, "-r", "thumbnail:20", "-o", "b.jpg"])
            #expect(get.exit == 7 && site.folder.bytes("b.jpg") == nil, "\(get.errors)")
            #expect(get.errors.contains("9999"))
            #expect(try await site.run(["cache", "clear"]).exit == 7)
            #expect(try await site.run(["cache", "purge", picture]).exit == 7)
            let restored = "PRAGMA user_version=\(DiskSchema.version)"
            #expect(Self.execute(restored, in: site.cache + "/cache.sqlite") == SQLITE_OK)
            let back = try await site.run(["get", picture, "-r", "thumbnail:20", "--json"])
            #expect(SettingValue.parsed(back.text)["outcome"] == .string("disk"))
        }

        @Test func `8: an output that cannot be written`() async throws {
            site.folder.write("a file", to: "file")
            for output in ["missing/a.jpg", "file/a.jpg", "cache", "/proc/a.jpg"] {
                let ended = try await site.run(["get", picture, "-r", "thumbnail:20", "-o", output, "--json"])
                #expect(ended.exit == 8, "\(output): \(ended.errors)")
                #expect(SettingValue.parsed(ended.text).at("error", "code") == .string("outputFailed"))
            }
            let batch = try await site.run(["batch", picture, "-r", "thumbnail:20", "-o", "file/out"])
            #expect(batch.exit == 8, "\(batch.errors)")
            let report = try await site.run(
                ["batch", picture, "-r", "thumbnail:20", "-o", "out", "--report", "missing/report.jsonl"])
            #expect(report.exit == 8, "\(report.errors)")
            #expect(site.folder.text("file") == "a file")
        }

        private static func execute(_ statement: String, in path: String) -> Int32 {
            var database: OpaquePointer?
            defer { sqlite3_close(database) }
            let status = sqlite3_open_v2(path, &database, SQLITE_OPEN_READWRITE, nil)
            return status == SQLITE_OK ? sqlite3_exec(database, statement, nil, nil, nil) : status
        }
    }
}
