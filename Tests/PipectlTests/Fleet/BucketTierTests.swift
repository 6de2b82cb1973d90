import Glibc
import PipelineSupport
import TestSupport
import Testing

@testable import pipectl

extension CommandTests {
    /// A bucket behind the caches, as users of the command and of the server see it.
    @Suite(.enabled(if: S3Servers.areInstalled, "scripts/install-s3-servers"))
    struct BucketTier {
        @Test func `nodes that share a bucket render a picture once, and say where it came from`() async throws {
            let folder = ScratchFolder()
            let store = try BucketServer("rclone", "cache")
            defer { store.stop() }
            let images = try FolderOrigin(folder: Samples.folder + "/originals", maxAge: 3600)
            defer { images.stop() }
            _ = folder.write(
                "remote.s3: {bucket: cache, prefix: fleet, endpoint: '\(store.endpoint)', accessKey: ACCESSKEY, secretKey: SECRETKEY}\n"
                    + "remote.seconds: 60\nallowPrivateAddresses: true\n", to: "pipectl.yaml")
            let source = images.url("/night-tiny.jpg")
            func get(_ node: String) async throws -> ChildProgram.Ended {
                try await ChildProgram.run(
                    [
                        "get", source, "-r", "thumbnail:40,png", "-o", folder("\(node).png"), "--json", "--cache",
                        folder(node), "--config", folder("pipectl.yaml"),
                    ], folder: folder.path)
            }
            let first = try await get("one")
            #expect(first.exit == 0 && first.text.contains(#""outcome":"rendered""#), "\(first.errors)\(first.text)")
            let second = try await get("two")
            #expect(second.text.contains(#""outcome":"remote""#), "\(second.errors)\(second.text)")
            #expect(try await get("two").text.contains(#""outcome":"disk""#))
            #expect(folder.bytes("one.png") == folder.bytes("two.png") && folder.bytes("one.png")?.isEmpty == false)
            #expect(images.requests.count == 1)
            let server = try await RunningServer.start(folder: folder, config: folder("pipectl.yaml"))
            let target = "/variant/unsigned/thumbnail:40,png/" + RunningServer.encoded(source)
            let answer = try await server.ask(target)
            #expect(answer.status == 200 && answer["cache-status"]?.contains("detail=remote") == true)
            #expect(try await server.ask(target)["cache-status"]?.contains("detail=memory") == true)
            let metrics = try await server.ask("/metrics").text
            let counted = metrics.split(separator: "\n").contains {
                $0.contains("lookups") && $0.contains(#""remote""#) && $0.contains(#""variant""#)
                    && $0.contains(#""hit""#) && $0.hasSuffix(" 1")
            }
            #expect(counted, "\(metrics)")
            let page = try await server.ask("/page/cache.json", host: "127.0.0.1").text
            #expect(page.contains(#"{"tier":"remote","kind":"variants","hits":1,"misses":0}"#), "\(page)")
            let ended = await server.stop()
            #expect(ended.exit == 0, "\(ended.errors)")
        }

        @Test func `a bucket that refuses shows in the log and in the state of readiness`() async throws {
            let folder = ScratchFolder()
            let store = try BucketServer("rclone", "cache")
            defer { store.stop() }
            _ = folder.write(
                "remote.s3: {bucket: cache, endpoint: '\(store.endpoint)', accessKey: ACCESSKEY, secretKey: WRONG}\n"
                    + "remote.seconds: 60\nallowPrivateAddresses: true\n", to: "pipectl.yaml")
            let server = try await RunningServer.start(folder: folder, config: folder("pipectl.yaml"))
            #expect(try await !server.ask("/ready").text.contains("problems"))
            #expect(try await server.ask("/variant/unsigned/thumbnail:40,png/sample:dusk").status == 200)
            let says = "check `secretKey` in the setting `remote.s3`"
            let state = try await server.ask("/ready").text
            #expect(state.contains(#""problems":{"remote":""#) && state.contains(says), "\(state)")
            let ended = await server.stop()
            #expect(ended.exit == 0 && ended.errors.contains(says), "\(ended.errors)")
        }

        @Test(arguments: [
            #"{"prefix":"a"}"#, #"{"bucket":"a b"}"#, #"{"bucket":"a","prefix":"b c"}"#, #"{"bucket":"a","maxAge":3}"#,
            #"{"bucket":"a","buckets":{}}"#, #"{"bucket":3}"#, #"{"bucket":"a","accessKey":"k"}"#,
        ]) func `a bucket that cannot be is refused`(_ given: String) throws {
            let settings = try Settings(assignments: ["remote.s3=" + given])
            let error = #expect(throws: SettingErrors.self) { _ = try settings.configuration() }
            #expect("\(String(describing: error))".contains("remote.s3"))
        }
    }
}
