import HTTPCaching
import TestSupport
import Testing

@testable import pipectl

extension CommandTests {
    /// Variants that the server encodes again.
    @Suite struct ServeSecondPass {
        @Test func `a variant of auto becomes smaller, and clients are told to ask again until then`() async throws {
            let origin = try FolderOrigin(folder: Samples.folder + "/originals", maxAge: 86_400)
            defer { origin.stop() }
            let settings = [
                "secondPass.after=2", "secondPass.maxAge=300", "adminToken=0123456789abcdef",
                #"server.cacheControl={"maxAge":86400,"staleWhileRevalidate":60,"immutable":true}"#,
            ]
            try await RunningServer.with(settings, isProgram: true) { server in
                let path = RunningServer.variant("thumbnail:320,auto", origin.url("/dusk-2mp.jpg"))
                let accept: KeyValuePairs<String, String> = ["Accept": "image/avif,image/webp"]
                let first = try await server.ask(path, accept)
                #expect(first["content-type"] == "image/webp" && first["vary"] == "Accept")
                #expect(first["cache-control"] == "max-age=300, stale-while-revalidate=60")
                #expect(first["cache-status"]?.hasSuffix("detail=first-pass") == true)
                // Explicit formats, and clients without AVIF, have the same picture without a second pass.
                for (recipe, accepted) in [("thumbnail:320,auto", "image/webp"), ("thumbnail:320,webp", "*/*")] {
                    let other = try await server.ask(
                        RunningServer.variant(recipe, origin.url("/dusk-2mp.jpg")), ["Accept": accepted])
                    #expect(other.body == first.body && other["cache-control"]?.contains("immutable") == true)
                    #expect(other["cache-status"]?.contains("pass") == false)
                }
                try await eventually { try await server.ask(path, accept)["etag"] != first["etag"] }
                let second = try await server.ask(path, accept)
                #expect(second["content-type"] == "image/avif")
                // The versions may have the same date.
                #expect(first["last-modified"] == nil && second["last-modified"] != nil)
                #expect(second.body.count * 100 <= first.body.count * 95)
                #expect(second["cache-control"] == "max-age=86400, immutable, stale-while-revalidate=60")
                #expect(second["cache-status"]?.hasSuffix("detail=memory/second-pass") == true)
                let old = try await server.ask(
                    path, ["Accept": "image/avif,image/webp", "If-None-Match": first["etag"] ?? ""])
                #expect(old.status == 200 && old.body == second.body)
                let new = try await server.ask(
                    path, ["Accept": "image/avif,image/webp", "If-None-Match": second["etag"] ?? ""])
                #expect(new.status == 304)
                let metrics = try await server.ask("/metrics", ["Authorization": "Bearer 0123456789abcdef"]).text
                #expect(metrics.contains(#"image_pipeline_second_passes_total{result="improved"} 1"#))
                let caches = try await server.ask(
                    "/page/cache.json", ["Authorization": "Bearer 0123456789abcdef"]
                ).text
                #expect(caches.contains(#""bytes":\#(second.body.count),"firstBytes":\#(first.body.count),"#))
            }
        }

        @Test(arguments: [(60, 60), (86_400, 300)])
        func `a first version is fresh no longer than its original, and at most as long as the setting says`(
            original: Int, expected: Int
        ) async throws {
            let origin = try FolderOrigin(folder: Samples.folder + "/originals", maxAge: original)
            defer { origin.stop() }
            try await RunningServer.with(["secondPass.maxAge=300"], isProgram: true) { server in
                let first = try await server.ask(
                    RunningServer.variant("thumbnail:40,auto", origin.url("/night-tiny.jpg")),
                    ["Accept": "image/avif,image/webp"])
                #expect(first["cache-status"]?.hasSuffix("first-pass") == true)
                let ages = (first["cache-control"] ?? "").split(separator: ",").filter { $0.contains("max-age=") }
                #expect(!ages.isEmpty)
                for age in ages {
                    let seconds = try #require(age.split(separator: "=").last.flatMap { Int($0) })
                    #expect((expected - 5...expected).contains(seconds), "\(ages)")
                }
            }
        }
    }
}
