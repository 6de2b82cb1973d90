import Testing

@testable import Variants

/// Animated GIF and WebP in, animated GIF and WebP out.
@Suite struct AnimationTests {
    /// A moving picture: an opaque ground, then patches with each disposal, one of them with holes.
    static let sample: HandmadeAnimation = {
        func patch(
            _ x: Int, _ y: Int, _ width: Int, _ height: Int, _ delay: Int, _ disposal: HandmadeAnimation.Disposal,
            _ pixel: (Int, Int) -> [UInt8]
        ) -> HandmadeAnimation.Frame {
            HandmadeAnimation.Frame(
                x: x, y: y, width: width, height: height, delay: delay, disposal: disposal,
                pixels: (0..<(width * height)).map { pixel($0 % width, $0 / width) })
        }
        return HandmadeAnimation(
            width: 26, height: 18,
            frames: [
                patch(0, 0, 26, 18, 120, .keep) { x, y in [UInt8(x / 2 * 18), UInt8(y / 2 * 25), 90, 255] },
                patch(4, 2, 9, 7, 30, .clear) { x, y in x == y ? [0, 0, 0, 0] : [250, UInt8(y * 30), 10, 255] },
                patch(10, 6, 12, 8, 1000, .keep) { x, _ in [20, UInt8(x * 20), 240, 255] },
                patch(0, 10, 20, 6, 70, .keep) { x, y in (x + y) % 3 == 0 ? [0, 0, 0, 0] : [9, 200, 30, 255] },
                patch(2, 0, 22, 18, 250, .keep) { x, y in (x / 2 + y) % 2 == 0 ? [255, 255, 0, 255] : [0, 0, 0, 0] },
            ])
    }()

    /// With a frame that is taken back, which only GIF can say.
    static let restoring: HandmadeAnimation = {
        var animation = sample
        animation.frames[3].disposal = .restore
        return animation
    }()

    static func files() throws -> [(bytes: [UInt8], seen: [PixelBuffer])] {
        [(sample.gif, sample.composed), (restoring.gif, restoring.composed), (try sample.webp(), sample.composed)]
    }

    private func render(_ bytes: [UInt8], _ recipe: String) async throws -> [UInt8] {
        try await RenderFixture.renderer.render(RenderSamples.job(bytes, recipe, quality: .balanced)).bytes
    }

    /// Pixels that can be seen, so that nothing depends on what lies under an alpha of 0.
    static func visible(_ picture: PixelBuffer) -> PixelBuffer {
        var result = picture
        for at in stride(from: 0, to: result.pixels.count, by: 4) where result.pixels[at + 3] == 0 {
            result.pixels.replaceSubrange(at..<(at + 4), with: [0, 0, 0, 0])
        }
        return result
    }

    @Test(arguments: ["gif", "webp:lossless"])
    func `every frame looks as it did in the original`(output: String) async throws {
        for (bytes, seen) in try Self.files() {
            let result = try RenderSamples.frames(try await render(bytes, "frames:all," + output))
            #expect(result.map(Self.visible) == seen.map(Self.visible))
        }
    }

    @Test func `a lossy WebP animation stays near`() async throws {
        for (bytes, seen) in try Self.files() {
            let result = try RenderSamples.frames(try await render(bytes, "frames:all,scaled:8,webp:90"))
            #expect(result.count == seen.count)
            for (frame, expected) in zip(result, seen) {
                let png = try RenderFixture.png(
                    Image(PixelStorage(expected.pixels), width: 26, height: 18, bands: 4).labeled("srgb"))
                let large = try await RenderFixture.renderer.pixels(
                    RenderSamples.job(png, "scaled:8", quality: .balanced))
                let distance = try #require(
                    ColorDifference.mean(RenderOutputTests.onGray(frame), RenderOutputTests.onGray(large)))
                #expect(distance < 3)
            }
        }
    }

    @Test(arguments: [0, 1, 3], ["gif", "webp", "webp:lossless"])
    func `delays and the number of plays stay`(loops: Int, output: String) async throws {
        var animation = Self.sample
        animation.loops = loops
        let expected = AnimationTimes(delays: [120, 30, 1000, 70, 250], loops: loops)
        for bytes in [animation.gif, try animation.webp()] {
            #expect(try AnimationTimes(bytes) == expected)
            #expect(try AnimationTimes(try await render(bytes, "frames:all," + output)) == expected)
            #expect(try AnimationTimes(try await render(bytes, "frames:all,circle,scaled:2," + output)) == expected)
        }
    }

    @Test func `what GIF cannot hold of a delay goes to the next frame`() async throws {
        #expect(GIFOutput.written(Array(repeating: [33, 33, 34], count: 10).flatMap { $0 }).reduce(0, +) == 1000)
        #expect(GIFOutput.written(Array(repeating: 33, count: 30)).reduce(0, +) == 990)
        #expect(GIFOutput.written([33, 34, 33, 40, 100]) == [30, 40, 30, 40, 100])
        // Browsers show frames of one hundredth for 100 ms; what is written above what was asked for is not owed.
        #expect(GIFOutput.written([16, 17, 17, 100]) == [20, 20, 20, 100])
        #expect(GIFOutput.written([655_349, 655_360, 9_000_000, 14]) == [655_350, 655_350, 655_350, 20])
        #expect(GIFOutput.written([]).isEmpty)

        var animation = Self.sample
        for (index, delay) in [33, 33, 34, 67, 33].enumerated() { animation.frames[index].delay = delay }
        let webp = try animation.webp()
        let gif = try await render(webp, "frames:all,gif")
        #expect(try AnimationTimes(gif).delays == [30, 40, 30, 70, 30])
        #expect(try AnimationTimes(try await render(webp, "frames:all,webp")).delays == [33, 33, 34, 67, 33])
        #expect(try AnimationTimes(try await render(gif, "frames:all,webp")).delays == [30, 40, 30, 70, 30])
    }

    @Test(arguments: [
        "thumbnail:13x9", "thumbnail:11x11:fill", "thumbnail:20x20:pad", "scaled:3", "circle", "rounded-mask:3:0:5:1",
        "mask:half", "crop:7x5+3+4", "crop:9x9:gravity=south-east", "rotate:90", "rotate:180", "flip:hv",
        "blur:1.5", "sharpen", "pixelate:4", "grayscale", "tint:704214", "brightness:1.4,contrast:1.2,saturation:0.5",
        "extend:2:3:0:1", "border:2:ff0000", "rotate:30", "overlay:half:gravity=south-east:opacity=0.5",
        "overlay:half:tile:scale=30pct",
        "background:336699", "thumbnail:12x12,flip:v,circle,background:ff000080,rotate:270",
    ])
    func `every step acts on every frame as on a picture of its own`(steps: String) async throws {
        let mask = try RenderFixture.png(RenderFixture.image(8, 8, bands: 1) { x, _ in [x < 4 ? 40 : 255] })
        for (bytes, seen) in try Self.files() {
            var job = try RenderSamples.job(bytes, "frames:all,\(steps),webp:lossless", quality: .balanced)
            job.masks = ["half": mask, Recipe.overlayKey("half"): mask]
            // A PNG of one frame may count as drawn where the animation does not.
            job.light = .linear
            let variant = try await RenderFixture.renderer.render(job)
            let result = try RenderSamples.shown(variant.bytes, delays: Self.sample.frames.map(\.delay))
            for (frame, picture) in zip(result, seen) {
                let image = try Image(PixelStorage(picture.pixels), width: 26, height: 18, bands: 4).labeled("srgb")
                var alone = try RenderSamples.job(RenderFixture.png(image), steps, quality: .balanced)
                (alone.masks, alone.light) = (job.masks, job.light)
                let expected = try await RenderFixture.renderer.pixels(alone)
                #expect(Self.visible(frame) == Self.visible(expected))
                #expect(frame.width == variant.width && frame.height == variant.height)
            }
        }
    }

    @Test func `a first frame that reaches beyond the canvas enlarges it, later ones are cut off`() async throws {
        let red = [[UInt8]](repeating: [255, 0, 0, 255], count: 16)
        let blue = [[UInt8]](repeating: [0, 0, 255, 255], count: 16)
        func frame(_ x: Int, _ y: Int, _ pixels: [[UInt8]]) -> HandmadeAnimation.Frame {
            HandmadeAnimation.Frame(x: x, y: y, width: 4, height: 4, delay: 50, pixels: pixels)
        }
        for (x, y, expected) in [(0, 0, (6, 5)), (3, 0, (7, 5)), (0, 4, (6, 8)), (40, 30, (44, 34))] {
            let bytes = HandmadeAnimation(
                width: 6, height: 5,
                frames: [frame(x, y, red), frame(4, 3, blue), frame(60, 50, blue), frame(0, 0, red)]
            ).gif
            let first = try await RenderFixture.renderer.render(RenderSamples.job(bytes, "png"))
            #expect(first.width == expected.0 && first.height == expected.1)
            let all = try await RenderFixture.renderer.render(RenderSamples.job(bytes, "frames:all,webp:lossless"))
            #expect(all.width == expected.0 && all.height == expected.1)
        }
    }

    @Test func `what a step looks for is looked for in the first frame`() async throws {
        let bytes = try ProbeSampleTests.read("originals/balloon.gif")
        for gravity in ["attention", "entropy"] {
            let crop = "crop:60x50:gravity=\(gravity)"
            let result = try RenderSamples.shown(
                try await render(bytes, "frames:all,\(crop),webp:lossless"), delays: AnimationTimes(bytes).delays)
            let whole = try RenderSamples.frames(bytes)
            let first = try await RenderFixture.renderer.pixels(RenderSamples.job(bytes, crop))
            #expect(whole.count == 12 && result[0] == first)
            let places = try whole.indices.map { index in
                try #require(Self.place(of: result[index], in: whole[index]))
            }
            #expect(Set(places).count == 1)
        }
    }

    @Test func `trim cuts all frames as the first`() async throws {
        var animation = Self.sample
        for at in animation.frames[0].pixels.indices where at % 26 < 3 || at / 26 >= 15 {
            animation.frames[0].pixels[at] = [1, 2, 3, 255]
        }
        let result = try RenderSamples.shown(
            try await render(animation.gif, "frames:all,trim,webp:lossless"), delays: animation.frames.map(\.delay))
        for (frame, whole) in zip(result, animation.composed) {
            #expect(frame.width == 23 && frame.height == 15)
            #expect(Self.place(of: Self.visible(frame), in: Self.visible(whole)) != nil)
        }
    }

    /// Where `part` is found, as row × width + column.
    private static func place(of part: PixelBuffer, in whole: PixelBuffer) -> Int? {
        for top in 0...(whole.height - part.height) {
            for left in 0...(whole.width - part.width) {
                let agrees = (0..<part.height).allSatisfy { row in
                    let at = ((top + row) * whole.width + left) * 4
                    let from = row * part.width * 4
                    return whole.pixels[at..<(at + part.width * 4)].elementsEqual(
                        part.pixels[from..<(from + part.width * 4)])
                }
                if agrees { return top * whole.width + left }
            }
        }
        return nil
    }

    @Test func `frames N takes the first N, and other outputs the first`() async throws {
        let two = try await render(Self.sample.gif, "frames:2,webp:lossless")
        #expect(try RenderSamples.frames(two).map(Self.visible) == Self.sample.composed.prefix(2).map(Self.visible))
        #expect(try AnimationTimes(two).delays == [120, 30])
        let many = try await render(Self.sample.gif, "frames:100,gif")
        #expect(try ImageHeader.probe(many).pages == 5)
        for recipe in ["webp:lossless", "frames:1,gif", "frames:all,png", "frames:all,jxl:lossless,png"].dropLast() {
            let still = try await render(Self.sample.gif, recipe)
            #expect(try ImageHeader.probe(still).pages == 1)
            #expect(try await RenderSamples.decoded(still) == Self.sample.composed[0], "\(recipe)")
        }
    }

    @Test(arguments: [0, 1, 2])
    func `a delay of 10 ms or less is 100 ms, as browsers show it`(delay: UInt8) async throws {
        // Behind each graphic control extension's introducer, label and length come flags and the delay.
        var gif = Self.sample.gif
        let controls = gif.indices.dropLast(5).filter { gif[$0..<($0 + 3)].elementsEqual([0x21, 0xF9, 4]) }
        let first = try #require(controls.first)
        (gif[first + 4], gif[first + 5]) = (delay, 0)
        let expected = try [delay < 2 ? 100 : 20] + AnimationTimes(Self.sample.gif).delays.dropFirst()
        var animation = Self.sample
        animation.frames[0].delay = Int(delay) * 10
        for bytes in [gif, try animation.webp()] {
            for recipe in ["frames:all,gif", "frames:all,webp:lossless"] {
                #expect(try AnimationTimes(await render(bytes, recipe)).delays == expected, "\(recipe)")
            }
        }
    }

    /// Frames without holes and without a transparent color.
    private static func opaque(
        _ places: [(x: Int, y: Int, width: Int, height: Int, disposal: HandmadeAnimation.Disposal)],
        _ color: (Int, Int) -> [UInt8]
    ) -> (bytes: [UInt8], composed: [PixelBuffer]) {
        let animation = HandmadeAnimation(
            width: 20, height: 18,
            frames: places.enumerated().map { index, place in
                HandmadeAnimation.Frame(
                    x: place.x, y: place.y, width: place.width, height: place.height, delay: 50,
                    disposal: place.disposal, pixels: (0..<place.width * place.height).map { color(index, $0) + [255] }
                )
            })
        var gif = animation.gif
        for at in gif.indices.dropLast(4) where gif[at..<(at + 3)].elementsEqual([0x21, 0xF9, 4]) {
            gif[at + 3] &= 0xFE
            gif[at + 6] = 0
        }
        return (gif, animation.composed)
    }

    @Test(
        arguments: [
            [(4, 4, 8, 6, .keep)],
            [(0, 0, 20, 17, .keep), (0, 0, 4, 4, .keep)],
            [(0, 0, 20, 18, .clear), (4, 4, 4, 4, .keep)],
            [(0, 0, 20, 18, .keep), (5, 5, 6, 6, .clear), (8, 8, 2, 2, .restore), (1, 1, 2, 2, .keep)],
            [(3, 3, 6, 6, .restore), (8, 8, 2, 2, .clear), (0, 0, 3, 3, .keep)],
        ] as [[(Int, Int, Int, Int, HandmadeAnimation.Disposal)]])
    func `what no frame has painted or a frame cleared is transparent without a transparent colour`(
        places: [(x: Int, y: Int, width: Int, height: Int, disposal: HandmadeAnimation.Disposal)]
    ) async throws {
        let few = Self.opaque(places) { index, at in [UInt8(200 - index * 50), UInt8(at % 7 * 30), 40] }
        // All colours that a table holds, so that none is left to name.
        let all = Self.opaque([(2, 1, 16, 16, .keep)]) { _, at in [UInt8(at), UInt8(255 - at), 3] }
        for (gif, seen) in [few, all] {
            #expect(try ImageHeader.probe(gif).hasAlpha)
            #expect(try RenderSamples.frames(gif).map(Self.visible) == seen.map(Self.visible))
            let webp = try await render(gif, "frames:all,webp:lossless")
            #expect(try ImageHeader.probe(webp).hasAlpha)
            let shown = try RenderSamples.shown(webp, delays: seen.map { _ in 50 })
            #expect(shown.map(Self.visible) == seen.map(Self.visible))
            // A colour table may be cut, and so may be everything else.
            for length in 0..<gif.count { Array(gif[..<length]).withUnsafeBytes { _ = GIFDecoder.source($0) } }
        }
    }

    @Test func `a frame with holes does not cover what was cleared`() async throws {
        func frame(_ disposal: HandmadeAnimation.Disposal, _ pixel: (Int) -> [UInt8]) -> HandmadeAnimation.Frame {
            HandmadeAnimation.Frame(
                width: 6, height: 5, delay: 50, disposal: disposal, pixels: (0..<30).map(pixel))
        }
        let animation = HandmadeAnimation(
            width: 6, height: 5,
            frames: [frame(.clear) { _ in [9, 8, 7, 255] }, frame(.keep) { [90, 0, 0, $0 % 2 == 0 ? 0 : 255] }])
        var gif = animation.gif
        let first = try #require(gif.indices.first { gif[$0..<($0 + 3)].elementsEqual([0x21, 0xF9, 4]) })
        gif[first + 3] &= 0xFE
        #expect(try RenderSamples.frames(gif).map(Self.visible) == animation.composed.map(Self.visible))
    }

    @Test func `a GIF whose frames cover what was cleared has no alpha, and is decoded as it is`() throws {
        let covered = Self.opaque([(0, 0, 20, 18, .clear), (0, 0, 20, 18, .clear)]) { index, at in [UInt8(index), 9, 9]
        }
        #expect(try !ImageHeader.probe(covered.bytes).hasAlpha)
        covered.bytes.withUnsafeBytes {
            if case .bytes = GIFDecoder.source($0).bytes { return }
            Issue.record("a copy")
        }
    }

    @Test func `the colour that a frame does not use is found behind any encoder's codes`() async throws {
        let noise = try RenderFixture.image(150, 120) { x, y in
            let value = UInt8(truncatingIfNeeded: (x &* 7919 ^ y &* 104_729 ^ x &* y) >> 3)
            return value < 201 ? [value, 255 - value, 7] : [1, 2, 3]
        }
        let gif = try await render(RenderFixture.png(noise), "gif")
        let flags = Int(gif[10])
        var at = 13 + (flags & 0x80 == 0 ? 0 : 3 << (flags & 7 + 1))
        while gif[at] == 0x21 {
            at += 2
            while gif[at] > 0 { at += 1 + Int(gif[at]) }
            at += 1
        }
        let data = at + 10 + (gif[at + 9] & 0x80 == 0 ? 0 : 3 << (Int(gif[at + 9]) & 7 + 1))
        let index = try #require(gif.withUnsafeBytes { GIFDecoder.unusedColor(ByteReader($0), data) })
        // Named transparent, it changes nothing.
        let control: [UInt8] = [0x21, 0xF9, 4, 1, 0, 0, index, 0]
        let named = Array(gif[..<at] + control + gif[at...])
        #expect(try RenderSamples.frames(named) == RenderSamples.frames(gif))
        #expect(gif[data] == 8)
    }

    @Test func `auto keeps an animation where frames are asked for`() throws {
        let header = try ImageHeader.probe(Self.sample.gif)
        #expect(header.pages == 5)
        func format(_ recipe: String, _ negotiated: ImageFormat...) throws -> ImageFormat {
            try Recipe(recipe).resolvedOutput(for: header, negotiated: negotiated).format
        }
        #expect(try format("frames:all,auto", .avif) == .gif)
        #expect(try format("frames:all,auto", .webp) == .webp)
        #expect(try format("frames:all,auto", .jxl, .webp) == .webp)
        #expect(try format("auto", .avif) == .avif)
    }

    @Test func `the limits count the frames that are decoded, and name the number that fits`() async throws {
        func refusal(_ recipe: String, _ change: (inout RenderLimits) -> Void) async throws -> RenderError? {
            var job = try RenderSamples.job(Self.sample.gif, recipe)
            change(&job.limits)
            do throws(RenderError) {
                _ = try await RenderFixture.renderer.render(job)
                return nil
            } catch {
                return error
            }
        }
        let area = 26 * 18
        let tooLarge = try await refusal("frames:all,gif") { $0.pixels = area * 3 + 5 }
        #expect(tooLarge?.code == .overLimit && tooLarge?.message.contains("use `frames:3`") == true)
        let tooMany = try await refusal("frames:4,webp") { $0.frames = 2 }
        #expect(tooMany?.code == .overLimit && tooMany?.message.contains("use `frames:2`") == true)
        let enlarged = try await refusal("frames:all,scaled:3,webp") { $0.pixels = area * 9 * 2 }
        #expect(enlarged?.code == .overLimit && enlarged?.message.contains("use `frames:2`") == true)
        for recipe in ["gif", "frames:3,gif", "frames:all,png", "frames:all,jpeg"] {
            #expect(try await refusal(recipe) { $0.pixels = area * 3 } == nil)
        }
    }

    @Test func `an animation cut short is undecodable`() async throws {
        for bytes in [Self.sample.gif, try Self.sample.webp()] {
            var job = try RenderSamples.job(bytes, "frames:all,webp")
            job.original = EncodedBytes(Array(bytes.dropLast(bytes.count / 3)))
            await #expect(throws: RenderError.self) { try await RenderFixture.renderer.render(job) }
        }
    }

    @Test func `a stopped render stops between frames`() throws {
        let control = RenderControl()
        let pixels = EncodablePixels(
            storage: PixelStorage([UInt8](repeating: 9, count: 300 * 300 * 3 * 4)), width: 300, height: 300, bands: 3,
            timing: FrameTiming(delays: [1, 1, 1, 1], loops: 0))
        control.stop(.cancelled)
        let job = EncodeJob(output: ResolvedOutput(format: .webp), kept: KeptBlobs(), control: control)
        let error = #expect(throws: RenderError.self) { try WebPOutput(job: job).encode(pixels, quality: 80) }
        #expect(error?.code == .cancelled)
    }
}
