import Testing

@testable import Variants

@Suite struct StopTests {
    @Test func `a worker that has had its processor time is killed at the first look`() {
        let grace = StopGrace(now: 100, cpu: 7)
        #expect(grace.killTime(now: 100.015, cpu: 7.011) == 100.015)
    }

    @Test func `one that waits for a processor is looked at again, and killed in the end`() {
        let grace = StopGrace(now: 100, cpu: 7)
        var (now, looks) = (100 + StopGrace.seconds, 0)
        while true {
            let next = grace.killTime(now: now, cpu: 7.001)
            guard next > now, looks < 1000 else { break }
            (now, looks) = (next, looks + 1)
        }
        #expect(abs(now - 100 - StopGrace.longest) < 1e-9 && looks > 3)
    }

    @Test func `where the system does not say what a worker used, only the clock counts`() {
        #expect(StopGrace(now: 100, cpu: -1).killTime(now: 100.015, cpu: 9) == 100.015)
        #expect(StopGrace(now: 100, cpu: 7).killTime(now: 100.015, cpu: -1) == 100.015)
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
        let image = try Image(noise(400, 300), width: 400, height: 300, bands: 3).labelled("srgb")
        let control = RenderControl(seconds: 100)
        let whole = try VipsCall(saver, ["in": .image(image)]).written(control)
        #expect(whole.count > 50_000)
        // Not told to the image: what fails is the writing.
        control.stop(.cancelled)
        #expect(throws: RenderError.self) { try VipsCall(saver, ["in": .image(image)]).written(control) }
    }

    @Test func `loops over pixels stop with their render`() throws {
        let control = RenderControl(seconds: 100)
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
        #expect(code { () throws(RenderError) in _ = try PNGOutput(job).encode(pixels, quality: 1) } == .cancelled)
        let circle = RoundedRectangle(ellipse: 100, height: 100)
        #expect(
            code { () throws(RenderError) in
                try circle.multiply(into: opaque.mutableBytes, control.check)
            } == .cancelled)
    }
}
