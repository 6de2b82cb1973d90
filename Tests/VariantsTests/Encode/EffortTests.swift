import Testing

@testable import Variants

@Suite struct EffortTests {
    private static let header = ImageHeader(format: .jpeg, encodedWidth: 600, encodedHeight: 400)

    private func output(_ recipe: String, _ effort: RenderEffort = .quick) throws -> ResolvedOutput {
        try Recipe(recipe).resolvedOutput(for: Self.header, effort: effort)
    }

    @Test func `an effort that is not given is the surroundings', and not part of the description`() throws {
        for (recipe, quick) in [("avif", 0), ("jxl", 3), ("webp", 6), ("png", 6)] {
            let (hasty, patient) = (try output(recipe), try output(recipe, .thorough))
            #expect(hasty.effort == quick && patient.effort > quick)
            #expect(hasty.description == patient.description && hasty.description.contains(":effort=none:"))
            let given = try output(recipe + ":effort=\(quick)", .thorough)
            #expect(given.effort == quick && given.description.contains(":effort=\(quick):"))
            #expect(try given == output(recipe + ":effort=\(quick)"))
        }
        for recipe in ["jpeg", "gif", "tiff"] { #expect(try output(recipe) == output(recipe, .thorough)) }
        // Where the format is chosen later, an effort counts if the format has one.
        #expect(try output("original:effort=9") == output("original"))
        #expect(try Recipe("auto:effort=7").resolvedOutput(for: Self.header, negotiated: [.avif]).effort == 7)
    }

    @Test func `more effort is declared to cost more`() {
        for format in [ImageFormat.avif, .jxl, .webp, .png] {
            for isLossless in [false, true] {
                let costs = (0...9).map { effort in
                    format.encoder!.nanosecondsPerPixel(
                        ResolvedOutput(format: format, isLossless: isLossless, effort: effort))
                }
                #expect(costs == costs.sorted() && costs[9] > costs[0], "\(format)")
            }
        }
    }

    @Test(arguments: ["avif", "jxl", "webp", "webp:lossless", "jxl:lossless", "png"])
    func `every effort writes the picture, and the greatest in fewer bytes than the least`(output: String) async throws
    {
        let pixels = try await RenderSamples.pixels("dusk-2mp.jpg", "thumbnail:96")
        var sizes: [Int] = []
        for effort in [0, 3, 6, 9] {
            let job = try RenderSamples.job("dusk-2mp.jpg", "thumbnail:96,\(output):effort=\(effort)")
            let bytes = try await RenderFixture.renderer.render(job).bytes
            sizes.append(bytes.count)
            var reading = try RenderSamples.job(bytes, "")
            reading.limits.formats.insert(.jxl)
            let decoded = try await RenderFixture.renderer.pixels(reading)
            let error = zip(decoded.pixels, pixels.pixels).reduce(0) { $0 + abs(Int($1.0) - Int($1.1)) }
            #expect(error < pixels.pixels.count * (output.hasSuffix("ss") || output == "png" ? 1 : 8))
        }
        #expect(sizes[3] < sizes[0], "\(sizes)")
    }

    @Test func `an effort that exceeds the deadline is a clear error`() async throws {
        // Other encoders can only be stopped by killing their worker; WebP's polls for stops.
        var job = try RenderSamples.job("mountains-12mp.jpg", "thumbnail:2000,webp:90:effort=9")
        job.limits.encodeTimeout = .seconds(0.2)
        do throws(RenderError) {
            _ = try await RenderFixture.renderer.render(job)
            Issue.record("it was in time")
        } catch {
            #expect(error.code == .deadline && error.message.contains("limits.encodeSeconds"))
            #expect(error.message.contains("a lower `effort=`"))
        }
    }
}
