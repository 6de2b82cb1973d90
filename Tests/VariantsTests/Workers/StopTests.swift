import Testing

@testable import Variants

@Suite struct StopTests {
    @Test func `a worker that has had its processor time is killed at the first look`() {
        let grace = StopGrace(now: 100, cpu: 7, heeds: true)
        #expect(grace.firstLook == 100 + StopGrace.seconds)
        #expect(grace.killTime(now: grace.firstLook, cpu: 7.031) == grace.firstLook)
    }

    @Test func `one that waits for a processor is looked at again, and killed in the end`() {
        let grace = StopGrace(now: 100, cpu: 7, heeds: true)
        var (now, seen) = (grace.firstLook, 0)
        while true {
            let next = grace.killTime(now: now, cpu: 7.001)
            guard next > now, seen < 1000 else { break }
            (now, seen) = (next, seen + 1)
        }
        #expect(abs(now - 100 - StopGrace.longest) < 1e-9 && seen > 3)
    }

    @Test func `where the system does not say what a worker used, only the clock counts`() {
        for (told, looked) in [(-1.0, 9.0), (7, -1)] {
            let grace = StopGrace(now: 100, cpu: told, heeds: true)
            #expect(grace.killTime(now: grace.firstLook, cpu: looked) == grace.firstLook)
        }
    }

    @Test func `one whose encoder does not listen is killed at the first look, which is sooner`() {
        let grace = StopGrace(now: 100, cpu: 7, heeds: false)
        #expect(grace.firstLook < 100 + StopGrace.seconds)
        #expect(grace.killTime(now: grace.firstLook, cpu: 7) == grace.firstLook)
        let heeding = ["jpeg", "png", "webp", "jpeg:progressive", "webp:lossless", "avif", "gif", "jxl", "tiff"].map {
            text in
            (try? Recipe(text))?.resolvedOutput(for: ImageHeader(format: .jpeg, encodedWidth: 9, encodedHeight: 9))
                .heedsStops
        }
        #expect(heeding == [true, true, true, true, false, false, false, false, false])
    }

    /// Pixels no encoder makes short work of.
    private func noise(_ width: Int, _ height: Int) -> PixelStorage {
        let storage = PixelStorage(byteCount: width * height * 3)
        var value: UInt32 = 1
        for index in 0..<storage.count {
            value = value &* 1_664_525 &+ 1_013_904_223
            storage.mutableBytes[index] = UInt8(value >> 24)
        }
        return storage
    }

    @Test(arguments: ["pngsave_target", "jpegsave_target"])
    func `a saver fails once its render is stopped, though it has all pixels`(saver: String) throws {
        try VipsLibrary.load()
        let image = try Image(noise(400, 300), width: 400, height: 300, bands: 3).labeled("srgb")
        let control = RenderControl()
        let whole = try VipsCall(saver, ["in": .image(image)]).written(control)
        #expect(whole.count > 50_000)
        // The image does not learn of the stop: the writing fails.
        control.stop(.cancelled)
        #expect(throws: RenderError.self) { try VipsCall(saver, ["in": .image(image)]).written(control) }
    }

    @Test func `loops over pixels stop with their render`() throws {
        let control = RenderControl()
        control.stop(.cancelled)
        let opaque = PixelStorage(byteCount: 40_000)
        opaque.mutableBytes.update(repeating: 255)
        let pixels = EncodablePixels(storage: opaque, width: 100, height: 100, bands: 4)
        func code(_ body: () throws(RenderError) -> Void) -> RenderError.Code? {
            do throws(RenderError) {
                try body()
                return nil
            } catch {
                return error.code
            }
        }
        #expect(code { () throws(RenderError) in _ = try pixels.droppingOpaqueAlpha(control) } == .cancelled)
        #expect(code { () throws(RenderError) in _ = try PNGPalette(pixels, control) } == .cancelled)
        let job = EncodeJob(output: ResolvedOutput(format: .png), kept: KeptBlobs(), control: control)
        #expect(code { () throws(RenderError) in _ = try PNGOutput(job: job).encode(pixels, quality: 1) } == .cancelled)
        let circle = RoundedRectangle(ellipse: 100, height: 100)
        #expect(
            code { () throws(RenderError) in
                try circle.multiply(into: opaque.mutableBytes, control.check)
            } == .cancelled)
    }
}
