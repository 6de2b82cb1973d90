import HTTPCaching
import Synchronization
import Testing
import Variants

@testable import ImageServer

/// The `Cache-Control` of variants (setting `server.cacheControl`).
@Suite struct ClientFreshnessTests {
    private static func with(_ body: (HitTests.Bench) async throws -> Void) async throws {
        let presets = try RecipePresets(["card": "thumbnail:20,png", "other": "thumbnail:30,png"])
        try await HitTests.with(
            { settings, _ in
                settings.presets = presets
                var rule = ClientFreshness(maxAge: .seconds(600))
                rule.staleWhileRevalidate = .seconds(60)
                settings.freshness = rule
                rule = ClientFreshness(maxAge: .seconds(86_400))
                rule.isImmutable = true
                settings.presetFreshness = ["card": rule]
            }, body)
    }

    @Test func `200 and 304 of variants say what is configured, a preset's what is configured for it`() async throws {
        try await Self.with { bench in
            for (recipe, control) in [
                ("thumbnail:20,png", "max-age=600, stale-while-revalidate=60"), ("@card", "max-age=86400, immutable"),
                ("@other", "max-age=600, stale-while-revalidate=60"),
                ("grayscale,@card", "max-age=600, stale-while-revalidate=60"),
            ] {
                let target = bench.variant.replacing("thumbnail:20,png", with: recipe)
                let first = await bench.ask(target)
                #expect(first.status == 200 && first["Cache-Control"] == control, "\(recipe)")
                let hit = try #require(bench.hit(target))
                #expect(String(decoding: hit.head, as: UTF8.self).contains("\r\nCache-Control: \(control)\r\n"))
                let tag = try #require(first["ETag"])
                let same = await bench.ask(target, [HeaderField("If-None-Match", tag)])
                #expect(same.status == 304 && same["Cache-Control"] == control, "\(recipe)")
            }
            #expect(await bench.ask(bench.original)["Cache-Control"] == "max-age=60")
            let bad = await bench.ask(bench.variant.replacing("thumbnail:20,png", with: "thumbnial:20"))
            #expect(bad.status == 400 && bad["Cache-Control"]?.contains("600") != true)
        }
    }

    @Test(arguments: [("no-store", "no-store"), ("private, max-age=60", "private, max-age=")])
    func `what shared caches may not store stays so`(sent: String, told: String) async throws {
        try await Self.with { bench in
            bench.answer.fields.withLock { $0 = [("Cache-Control", sent)] }
            let control = await bench.ask(bench.variant)["Cache-Control"]
            #expect(control?.hasPrefix(told) == true && control?.contains("stale") == false)
        }
    }
}
