import Testing

@testable import Variants

struct ReductionTests {
    /// Pixels of a picture shrunk by `Reduction`.
    private func reduced(
        _ pixels: [UInt8], width: Int, height: Int, bands: Int, to target: PixelSize, linear: Double = 1
    ) throws -> [UInt8] {
        try VipsLibrary.load()
        let image = try Image(PixelStorage(pixels), width: width, height: height, bands: bands)
            .labeled(bands < 3 ? "b-w" : "srgb")
        try #require(Reduction.accepts(image, target))
        let control = RenderControl()
        return try Reduction.resize(image, to: target, lights: [linear], control).computed(control).array
    }

    /// Noise, the same each time.
    private func noise(_ count: Int) -> [UInt8] {
        var state: UInt32 = 1
        return (0..<count).map { _ in
            state = state &* 1_664_525 &+ 1_013_904_223
            return UInt8(state >> 24)
        }
    }

    @Test(arguments: [
        (64, 48, 32, 24), (61, 47, 13, 9), (200, 3, 7, 2), (5, 301, 5, 19), (1, 1, 1, 1), (33, 17, 1, 1),
        (40, 30, 40, 7),
        (40, 30, 39, 30), (700, 9, 699, 8),
    ])
    func `every sample is that of the reference in doubles`(
        width: Int, height: Int, outWidth: Int, outHeight: Int
    ) throws {
        let rgb = noise(width * height * 3)
        var rgba = [UInt8](repeating: 255, count: width * height * 4)
        for index in 0..<(width * height) { for band in 0..<3 { rgba[index * 4 + band] = rgb[index * 3 + band] } }
        for linear in [0, 0.125, 0.9375, 1] {
            let result = try reduced(
                rgb, width: width, height: height, bands: 3, to: PixelSize(width: outWidth, height: outHeight),
                linear: linear)
            let reference = LinearLightReference.resized(
                PixelBuffer(width: width, height: height, pixels: rgba), width: outWidth, height: outHeight,
                linear: linear)
            #expect(result.count == outWidth * outHeight * 3)
            for index in 0..<(outWidth * outHeight) {
                for band in 0..<3 {
                    let difference = Int(result[index * 3 + band]) - Int(reference.pixels[index * 4 + band])
                    #expect(abs(difference) <= 1, "pixel \(index), band \(band), \(linear) linear")
                }
            }
        }
    }

    @Test(arguments: 1...4, [0, 0.125, 0.9375, 1])
    func `a flat picture keeps its colour, whatever the bands`(bands: Int, linear: Double) throws {
        for value in [0, 1, 2, 9, 10, 11, 12, 60, 128, 200, 254, 255] as [UInt8] {
            var pixel = [UInt8](repeating: value, count: bands)
            if bands == 2 || bands == 4 { pixel[bands - 1] = 255 }
            let pixels = (0..<(50 * 37)).flatMap { _ in pixel }
            let result = try reduced(
                pixels, width: 50, height: 37, bands: bands, to: PixelSize(width: 9, height: 8),
                linear: linear)
            #expect(result == (0..<72).flatMap { _ in pixel }, "value \(value)")
        }
    }

    @Test func `transparent pixels lend no colour, and alpha is averaged as it is`() throws {
        // Columns in turn: opaque red, and green that is not to be seen.
        let pixels = (0..<(32 * 32)).flatMap { index -> [UInt8] in
            index % 2 == 0 ? [200, 0, 0, 255] : [0, 255, 0, 0]
        }
        let result = try reduced(pixels, width: 32, height: 32, bands: 4, to: PixelSize(width: 4, height: 4))
        for index in 0..<16 {
            #expect(Array(result[(index * 4)..<(index * 4 + 3)]) == [200, 0, 0])
            // Not equally 128: at the edges one of the two repeats.
            #expect((110...145).contains(result[index * 4 + 3]))
        }
        let nothing = [UInt8](repeating: 0, count: 32 * 32 * 4)
        let empty = try reduced(nothing, width: 32, height: 32, bands: 4, to: PixelSize(width: 4, height: 4))
        #expect(empty == [UInt8](repeating: 0, count: 64))
    }

    @Test func `what would grow is not taken`() throws {
        try VipsLibrary.load()
        let bytes = try Image(PixelStorage(noise(300)), width: 10, height: 10, bands: 3).labeled("srgb")
        #expect(Reduction.accepts(bytes, PixelSize(width: 10, height: 10)))
        #expect(!Reduction.accepts(bytes, PixelSize(width: 11, height: 10)))
        #expect(!Reduction.accepts(bytes, PixelSize(width: 10, height: 11)))
    }

    /// Black beside white, and noise: what 16 bits hold of 8 comes out as from 8.
    @Test(arguments: 1...4, [0, 0.125, 0.9375, 1])
    func `16 bits are shrunk as exactly as 8`(bands: Int, linear: Double) throws {
        try VipsLibrary.load()
        let target = PixelSize(width: 13, height: 9)
        let edges = (0..<(61 * 47 * bands)).map { $0 / bands % 61 < 30 ? 0 : 255 as UInt8 }
        for bytes in [edges, noise(61 * 47 * bands)] {
            let words = bytes.map { UInt16($0) * 257 }.withUnsafeBytes { [UInt8]($0) }
            let wide = try Image(PixelStorage(words), width: 61, height: 47, bands: bands, format: 2)
                .labeled(bands < 3 ? "grey16" : "rgb16")
            try #require(Reduction.accepts(wide, target))
            let control = RenderControl()
            let result = try Reduction.resize(wide, to: target, lights: [linear], control).computed(control).array
            #expect(
                try result == reduced(bytes, width: 61, height: 47, bands: bands, to: target, linear: linear))
        }
    }

    @Test func `a render that was stopped does not go on`() throws {
        try VipsLibrary.load()
        let image = try Image(PixelStorage(noise(300 * 200 * 3)), width: 300, height: 200, bands: 3).labeled("srgb")
        let control = RenderControl()
        control.stop(.cancelled)
        let error = #expect(throws: RenderError.self) {
            try Reduction.resize(image, to: PixelSize(width: 30, height: 20), lights: [1], control)
        }
        #expect(error?.code == .cancelled)
    }

    @Test(arguments: [(1, 1), (2, 1), (2, 3), (3, 3), (4, 3), (8, 3), (16, 3), (5, 1)])
    func `squares are averaged as they are, and what is left at the edges too`(box: Int, bands: Int) throws {
        try VipsLibrary.load()
        let (width, height) = (37, 29)
        let bytes = noise(width * height * bands)
        // With the width of the averages, so that the resampler only rounds.
        let size = Reduction.boxed(PixelSize(width: width, height: height), box)
        let image = try Image(PixelStorage(bytes), width: width, height: height, bands: bands)
            .labeled(bands < 3 ? "b-w" : "srgb")
        let whole = Reduction.Extent(width: Double(size.width * box), height: Double(size.height * box))
        let part = Reduction.Part(image, whole, box: box, to: size, linear: 1)
        let result = try Reduction.pixels(of: image, [part], RenderControl())[0].array
        #expect(size.width == (width + box - 1) / box && result.count == size.width * size.height * bands)
        for y in 0..<size.height {
            for x in 0..<size.width {
                for band in 0..<bands {
                    var (sum, count) = (0, 0)
                    for row in (y * box)..<min(height, y * box + box) {
                        for column in (x * box)..<min(width, x * box + box) {
                            sum += Int(bytes[(row * width + column) * bands + band])
                            count += 1
                        }
                    }
                    let mean = (2 * sum + count) / (2 * count)
                    let value = Int(result[(y * size.width + x) * bands + band])
                    #expect(abs(value - mean) <= 1, "pixel \(x), \(y), band \(band)")
                }
            }
        }
    }

    @Test(arguments: [1, 2, 3, 4])
    func `rows with gaps between them are read as those without`(box: Int) throws {
        try VipsLibrary.load()
        let bytes = noise(80 * 50 * 3)
        let whole = try Image(PixelStorage(bytes), width: 80, height: 50, bands: 3).labeled("srgb")
        let area = try whole.area(PixelRectangle(x: 7, y: 3, width: 61, height: 41))
        let control = RenderControl()
        var gaps = false
        try area.forEachTile(nil, control) { gaps = gaps || !$0.isDense }
        #expect(gaps)
        let copied = try area.computed(control)
        var expected: [UInt8] = []
        for y in 3..<44 { expected += bytes[((y * 80 + 7) * 3)..<((y * 80 + 68) * 3)] }
        #expect(copied.array == expected)
        let dense = try Image(copied, width: 61, height: 41, bands: 3).labeled("srgb")
        let squares = Reduction.Extent(width: Double(61 / box * box), height: Double(41 / box * box))
        let part = Reduction.Part(area, squares, box: box, to: PixelSize(width: 9, height: 8), linear: 1)
        let reduced = try Reduction.pixels(of: area, [part], control)[0].array
        #expect(try reduced == Reduction.pixels(of: dense, [part], control)[0].array)
        let tiles = try area.computed(control, tile: PixelSize(width: 16, height: 8))
        #expect(tiles.array == copied.array)
    }

    @Test func `averages are not rounded, on none of their levels`() throws {
        try VipsLibrary.load()
        // Every other square of four has a mean of 100½, the rest of 100: rounded, their mean would be 100½ and so 101.
        let bytes = (0..<(64 * 64)).flatMap { index -> [UInt8] in
            let value: UInt8 = index % 64 / 2 % 2 == 0 && index / 64 % 2 == 0 ? 101 : 100
            return [value, value, value]
        }
        let image = try Image(PixelStorage(bytes), width: 64, height: 64, bands: 3).labeled("srgb")
        let parts = [2, 4, 8].map { box in
            Reduction.Part(image, box: box, to: PixelSize(width: 8, height: 8), linear: 1)
        }
        for pixels in try Reduction.pixels(of: image, parts, RenderControl()) {
            #expect(Set(pixels.array) == [100])
        }
    }
}
