import Testing

@testable import Variants

/// Handmade bitmaps with known pixels; `scripts/check-bitmaps` compares more of them with Pillow.
@Suite struct BMPTests {
    typealias Make = HandmadeImages

    static let gray = (0..<256).map { [UInt8($0), UInt8($0), UInt8(255 - $0)] }

    struct Example: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let bytes: [UInt8]
        /// Red, green, blue, alpha of the pixel at x, y.
        let expected: @Sendable (Int, Int) -> [UInt8]

        init(
            _ name: String, _ bitmap: HandmadeBMP = HandmadeBMP(), pixel: ((Int, Int) -> Int)? = nil,
            _ expected: @escaping @Sendable (Int, Int) -> [UInt8]
        ) {
            testDescription = name
            var bitmap = bitmap
            if let pixel { bitmap.pixel = pixel }
            bytes = bitmap.file
            self.expected = expected
        }
    }

    private static func plain(_ x: Int, _ y: Int) -> [UInt8] { [UInt8(x * 40), UInt8(y * 60), UInt8(x * y), 255] }

    /// Pixels with the index x + y, of `count` colours.
    private static func indexed(_ name: String, _ bits: Int, header: Int = 40, used: Int? = nil) -> Example {
        let count = min(used ?? 256, 1 << bits)
        return Example(
            name, HandmadeBMP(header: header, bits: bits, palette: Array(gray.prefix(used ?? 1 << bits)), used: used),
            pixel: { ($0 + $1) % (1 << bits) }
        ) { x, y in
            let index = (x + y) % (1 << bits)
            return index < count ? gray[index] + [255] : [0, 0, 0, 255]
        }
    }

    static let examples: [Example] = [
        indexed("1 bit", 1), indexed("2 bits", 2), indexed("4 bits", 4), indexed("8 bits", 8),
        indexed("4 bits of OS/2 1", 4, header: 12), indexed("8 bits of OS/2 2", 8, header: 64),
        indexed("8 bits with five colours, of which pixels use more", 8, used: 5),
        indexed("4 bits with more colours than pixels can have", 4, used: 20),
        Example("8 bits of OS/2 2 in 16 bytes", HandmadeBMP(header: 16, bits: 8, palette: gray), pixel: { $0 * $1 }) {
            gray[$0 * $1] + [255]
        },
        Example("16 bits", HandmadeBMP(bits: 16), pixel: { $0 << 10 | $1 << 5 | 31 }) { x, y in
            [UInt8((x * 255 + 15) / 31), UInt8((y * 255 + 15) / 31), 255, 255]
        },
        Example(
            "16 bits, 5-6-5", HandmadeBMP(bits: 16, compression: 3, masks: [0xF800, 0x7E0, 0x1F]),
            pixel: { $0 << 11 | $1 << 5 | 31 }
        ) { x, y in [UInt8((x * 255 + 15) / 31), UInt8((y * 255 + 31) / 63), 255, 255] },
        Example(
            "16 bits, 4-4-4-4 with alpha",
            HandmadeBMP(header: 124, bits: 16, compression: 3, masks: [0xF00, 0xF0, 0xF, 0xF000]),
            pixel: { $0 << 12 | $1 << 8 | 0x7F }
        ) { x, y in [UInt8(y * 17), 119, 255, UInt8(x * 17)] },
        Example("24 bits", HandmadeBMP(), plain), Example("24 bits of OS/2 1", HandmadeBMP(header: 12), plain),
        Example("24 bits, top down", HandmadeBMP(isTopDown: true), plain),
        Example("24 bits, offset 0", HandmadeBMP(offset: 0), plain),
        Example("32 bits, whose fourth byte is no alpha", HandmadeBMP(bits: 32), plain),
        Example(
            "32 bits, 10-10-10", HandmadeBMP(bits: 32, compression: 3, masks: [0x3FF0_0000, 0xFFC00, 0x3FF]),
            pixel: { ($0 * 200) << 20 | ($1 * 300) << 10 | 1023 }
        ) { x, y in [UInt8((x * 200 * 255 + 511) / 1023), UInt8((y * 300 * 255 + 511) / 1023), 255, 255] },
        Example(
            "32 bits with alpha",
            HandmadeBMP(
                header: 108, bits: 32, compression: 3, masks: [0xFF0000, 0xFF00, 0xFF, 0xFF00_0000], isTopDown: true),
            pixel: { $0 << 24 | $1 << 16 | 7 }
        ) { x, y in [UInt8(y), 0, 7, UInt8(x)] },
        Example(
            "32 bits with an alpha mask behind a short header",
            HandmadeBMP(bits: 32, compression: 6, masks: [0xFF, 0xFF00, 0xFF0000, 0xFF00_0000]),
            pixel: { $0 << 24 | $1 }
        ) { x, y in [UInt8(y), 0, 0, UInt8(x)] },
        Example(
            "32 bits whose alpha is zero throughout",
            HandmadeBMP(header: 56, bits: 32, compression: 3, masks: [0xFF0000, 0xFF00, 0xFF, 0xFF00_0000]), plain),
        Example(
            "8 bits of run lengths",
            HandmadeBMP(
                bits: 8, compression: 1, palette: gray,
                // Below: five pixels of 9. Then two of 3, three single ones, padded. On top: two skipped, one of 5.
                data: [5, 9, 0, 0, 2, 3, 0, 3, 6, 7, 8, 0, 0, 0, 0, 2, 2, 0, 1, 5, 0, 1])
        ) { x, y in
            let lines: [[Int]] = [[0, 0, 5, 0, 0], [3, 3, 6, 7, 8], [9, 9, 9, 9, 9]]
            return gray[lines[y][x]] + [255]
        },
        Example(
            "4 bits of run lengths that reach beyond the line, without an end",
            HandmadeBMP(
                bits: 4, compression: 2, palette: Array(gray.prefix(16)),
                data: [9, 0x12, 0, 0, 0, 5, 0x34, 0x56, 0x70, 0, 0, 0, 5, 0xAA])
        ) { x, y in
            let lines: [[Int]] = [[10, 10, 10, 10, 10], [3, 4, 5, 6, 7], [1, 2, 1, 2, 1]]
            return gray[lines[y][x]] + [255]
        },
    ]

    @Test(arguments: examples) func `pixels are as stored`(_ example: Example) async throws {
        let picture = try await RenderSamples.decoded(example.bytes)
        #expect(picture.width == 5 && picture.height == 3)
        var expected: [UInt8] = []
        for y in 0..<3 { for x in 0..<5 { expected += example.expected(x, y) } }
        #expect(picture.pixels == expected)
    }

    @Test func `an embedded profile is found, wherever it is`() throws {
        let profile = [UInt8](repeating: 7, count: 200)
        #expect(try ImageHeader.probe(HandmadeBMP(header: 124, profile: profile).file).profileBytes == 200)
        var cut = HandmadeBMP(header: 124, profile: profile).file
        cut.replaceSubrange(126..<130, with: [255, 255, 255, 255])
        #expect(try ImageHeader.probe(cut).profileBytes == 0)
    }

    static let hostile: [(name: String, bytes: [UInt8], code: RenderError.Code, words: String)] = [
        ("a negative width", HandmadeBMP().with(18, -5), .undecodable, "-5 × 3"),
        ("the least height", HandmadeBMP().with(22, 0x8000_0000), .overLimit, "2147483648"),
        ("a width of 2³¹ − 1", HandmadeBMP().with(18, 0x7FFF_FFFF), .overLimit, "2147483647"),
        ("60,000 × 60,000", HandmadeBMP().with(18, 60_000, 60_000), .overLimit, "limits.pixels"),
        ("6,000 × 6,000 without pixels", HandmadeBMP().with(18, 6000, 6000), .undecodable, "truncated"),
        ("a header of 66 bytes", HandmadeBMP().with(14, 66), .undecodable, "66 bytes"),
        ("a header that is cut", Array(HandmadeBMP().file.prefix(50)), .undecodable, "header is truncated"),
        ("3 bits", HandmadeBMP(bits: 3, data: []).file, .undecodable, "3 bits"),
        ("64 bits", HandmadeBMP(bits: 64).file, .undecodable, "64 bits"),
        ("a JPEG", HandmadeBMP(bits: 0, compression: 4, data: []).file, .undecodable, "contains a JPEG"),
        ("Huffman codes", HandmadeBMP(header: 64, bits: 1, compression: 3, data: []).file, .undecodable, "Huffman"),
        ("pixels within the header", HandmadeBMP(offset: 20).file, .undecodable, "byte 20"),
        ("pixels beyond the end", HandmadeBMP(offset: 1 << 32 - 1).file, .undecodable, "truncated"),
        ("four billion colours", HandmadeBMP(bits: 8, used: 1 << 32 - 1, offset: 0).file, .undecodable, "truncated"),
        ("half of its pixels", HandmadeBMP().file.dropLast(20) + [], .undecodable, "truncated"),
        (
            "half of its run lengths", HandmadeBMP(bits: 8, compression: 1, data: [5, 9, 0, 0, 2]).file, .undecodable,
            "truncated"
        ),
    ]

    @Test(arguments: hostile.indices) func `what is damaged or too large is refused with an error message`(
        _ index: Int
    ) async throws {
        let (name, bytes, code, words) = Self.hostile[index]
        do {
            let job = try RenderSamples.job(bytes, "png")
            try job.checkLimits()
            _ = try await RenderFixture.renderer.render(job)
            Issue.record("\(name) is decoded")
        } catch let error as RenderError {
            #expect(error.code == code && error.message.contains(words), "\(name): \(error.code), \(error)")
        }
    }

    @Test func `text that begins with BM is text`() {
        for text in ["BM", "BMW builds cars and motorcycles"] {
            let error = #expect(throws: RenderError.self) { try ImageHeader.probe(Make.ascii(text)) }
            #expect(error?.code == .notAnImage)
        }
    }
}

extension HandmadeBMP {
    /// The file with 32-bit numbers at an offset.
    fileprivate func with(_ offset: Int, _ numbers: Int...) -> [UInt8] {
        var bytes = file
        for (index, number) in numbers.enumerated() {
            bytes.replaceSubrange(offset + index * 4..<offset + index * 4 + 4, with: Make.little(number, 4))
        }
        return bytes
    }
}
