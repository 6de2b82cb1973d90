import Glibc
import Testing

@testable import Variants

/// Enlarging beside a resampler in doubles.
struct EnlargingTests {
    private func enlarged(
        _ pixels: [UInt8], _ size: PixelSize, bands: Int, to target: PixelSize, linear: Bool = true
    ) throws -> [UInt8] {
        try VipsLibrary.load()
        let image = try Image(PixelStorage(pixels), width: size.width, height: size.height, bands: bands)
            .labeled("srgb")
        return try Resize.resize(image, to: target, linear: linear).computed(RenderControl())
            .array
    }

    @Test(arguments: [(100, 80), (75, 60), (65, 52), (200, 41), (100, 20), (25, 80), (51, 40)])
    func `an enlarged spot stays where it was`(width: Int, height: Int) throws {
        let size = PixelSize(width: 50, height: 40)
        var rgb: [UInt8] = []
        var rgba: [UInt8] = []
        for y in 0..<size.height {
            for x in 0..<size.width {
                let distance = Double((x - 20) * (x - 20) + (y - 17) * (y - 17))
                let value = UInt8(40 + 200 * exp(-distance / 32))
                rgb += [value, value, value]
                rgba += [value, value, value, 255]
            }
        }
        let result = try enlarged(rgb, size, bands: 3, to: PixelSize(width: width, height: height))
        let reference = LinearLightReference.resized(
            PixelBuffer(width: size.width, height: size.height, pixels: rgba), width: width, height: height)
        #expect(result.count == width * height * 3)
        for index in 0..<min(width * height, result.count / 3) {
            let difference = Int(result[index * 3]) - Int(reference.pixels[index * 4])
            // Bicubic beside Lanczos; half a pixel off would be 6 to 30.
            #expect(abs(difference) <= 3, "pixel \(index % width), \(index / width)")
        }
    }

    @Test(arguments: [true, false])
    func `a flat picture keeps its colour to the edge`(linear: Bool) throws {
        let size = PixelSize(width: 7, height: 5)
        let target = PixelSize(width: 31, height: 23)
        for pixel in [[200, 90, 10], [200, 90, 10, 255], [200, 90, 10, 128]] as [[UInt8]] {
            let pixels = (0..<35).flatMap { _ in pixel }
            let result = try enlarged(pixels, size, bands: pixel.count, to: target, linear: linear)
            #expect(result.count == 31 * 23 * pixel.count)
            let furthest = result.indices.map { abs(Int(result[$0]) - Int(pixel[$0 % pixel.count])) }.max()
            #expect(try #require(furthest) <= 1)
        }
    }
}
