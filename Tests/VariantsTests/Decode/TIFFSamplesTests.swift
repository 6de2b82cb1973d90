import Testing

@testable import Variants

/// TIFF files put together byte by byte: samples of every kind, in one strip or in tiles.
struct HandmadeTIFF {
    /// Values in tags' order; SHORT up to 65,535, else LONG.
    var entries: [Int: [Int]] = [:]
    /// Numerators of RATIONAL entries, over 10,000; in a file that is not BigTIFF.
    var fractions: [Int: [Int]] = [:]
    /// Copyright, tag 33432.
    var copyright = ""
    var isBigEndian = false
    var isBig = false

    func number(_ value: Int, _ count: Int) -> [UInt8] {
        isBigEndian ? HandmadeImages.big(value, count) : HandmadeImages.little(value, count)
    }

    /// A directory that begins at `offset`, with what does not fit in its entries behind it.
    func directory(at offset: Int, next: Int = 0) -> [UInt8] {
        let wide = isBig ? 8 : 4
        let count = entries.count + fractions.count + (copyright.isEmpty ? 0 : 1)
        let size = (isBig ? 8 : 2) + count * (isBig ? 20 : 12) + wide
        var (head, tail): ([UInt8], [UInt8]) = (number(count, isBig ? 8 : 2), [])
        for tag in (Array(entries.keys) + Array(fractions.keys)).sorted() {
            if let numerators = fractions[tag] {
                head += number(tag, 2) + number(5, 2) + number(numerators.count, 4)
                head += number(offset + size + tail.count, 4)
                tail += numerators.flatMap { number($0, 4) + number(10_000, 4) }
                continue
            }
            let values = entries[tag] ?? []
            let isLong = values.contains { $0 > 0xFFFF } || [273, 279, 324, 325, 330].contains(tag)
            let data = values.flatMap { number($0, isLong ? 4 : 2) }
            head += number(tag, 2) + number(isLong ? 4 : 3, 2) + number(values.count, wide)
            if data.count <= wide {
                head += data + [UInt8](repeating: 0, count: wide - data.count)
            } else {
                head += number(offset + size + tail.count, wide)
                tail += data
            }
        }
        if !copyright.isEmpty {
            head += number(33_432, 2) + number(2, 2) + number(copyright.utf8.count + 1, wide)
            head += number(offset + size + tail.count, wide)
            tail += Array(copyright.utf8) + [0]
        }
        return head + number(next, wide) + tail
    }

    var start: [UInt8] {
        let order = HandmadeImages.ascii(isBigEndian ? "MM" : "II")
        return order + (isBig ? number(43, 2) + number(8, 2) + number(0, 2) : number(42, 2))
    }
    var headBytes: Int { isBig ? 16 : 8 }

    /// The file of one picture: the header, the samples, the directory.
    func file(_ data: [UInt8]) -> [UInt8] {
        let at = headBytes + data.count + data.count % 2
        return start + number(at, isBig ? 8 : 4) + data + [UInt8](repeating: 0, count: data.count % 2)
            + directory(at: at)
    }

    /// A picture in one strip. `samples` has all pixels, as numbers of `bits` bits.
    static func strip(
        _ width: Int, _ height: Int, _ samples: [UInt64], channels: Int, bits: Int, kind: Int, photometric: Int,
        isBigEndian: Bool = false
    ) -> [UInt8] {
        var tiff = HandmadeTIFF(isBigEndian: isBigEndian)
        let data = samples.flatMap { tiff.number(Int(truncatingIfNeeded: $0), bits / 8) }
        tiff.entries = [
            256: [width], 257: [height], 258: Array(repeating: bits, count: channels), 259: [1], 262: [photometric],
            273: [8], 277: [channels], 278: [height], 279: [data.count], 284: [1],
            339: Array(repeating: kind, count: channels),
        ]
        if channels == 2 || channels == 4 { tiff.entries[338] = [2] }
        return tiff.file(data)
    }
}

@Suite struct TIFFSamplesTests {
    private static let steps = [0, 0.25, 0.5, 0.75, 1]

    private func tones(_ bytes: [UInt8]) async throws -> [[UInt8]] {
        let pixels = try await RenderSamples.decoded(bytes).pixels
        return stride(from: 0, to: pixels.count, by: 4).map { Array(pixels[$0..<$0 + 4]) }
    }

    private static func float(_ value: Double) -> UInt64 { UInt64(Float(value).bitPattern) }

    @Test(arguments: [false, true], [1, 2, 3, 4])
    func `floats are linear light from 0 to 1, grey as RGB`(isBigEndian: Bool, channels: Int) async throws {
        let values = Self.steps + [-1, 7, .infinity, -.infinity, .nan]
        let samples = values.flatMap { value in
            Array(repeating: value, count: channels < 3 ? 1 : 3) + (channels % 2 == 0 ? [0.5] : [])
        }
        let bytes = HandmadeTIFF.strip(
            values.count, 1, samples.map(Self.float), channels: channels, bits: 32, kind: 3,
            photometric: channels < 3 ? 1 : 2, isBigEndian: isBigEndian)
        let expected = values.map { value in
            let encoded = value.isNaN ? 0 : SRGBCurve.encoded(min(max(value, 0), 1))
            return UInt8((encoded * 255).rounded())
        }
        for (pixel, tone) in zip(try await tones(bytes), expected) {
            #expect(pixel[..<3].allSatisfy { abs(Int($0) - Int(tone)) <= 1 }, "\(pixel) for \(tone)")
            #expect(abs(Int(pixel[3]) - (channels % 2 == 0 ? 128 : 255)) <= 1)
        }
        let inverted = HandmadeTIFF.strip(
            5, 1, Self.steps.map { Self.float(1 - $0) }, channels: 1, bits: 32, kind: 3, photometric: 0)
        let right = HandmadeTIFF.strip(5, 1, Self.steps.map(Self.float), channels: 1, bits: 32, kind: 3, photometric: 1)
        #expect(try await tones(inverted) == tones(right))
    }

    @Test(arguments: [(8, 1), (8, 2), (16, 1), (16, 2), (32, 1), (32, 2)], [1, 3, 4])
    func `integers are scaled over the range of their type`(sample: (bits: Int, kind: Int), channels: Int) async throws
    {
        let most = Double(UInt64.max >> (64 - UInt64(sample.bits)))
        let lowest = sample.kind == 2 ? (most + 1) / 2 : 0
        let samples = Self.steps.flatMap { step in
            let value = UInt64(bitPattern: Int64((step * most).rounded() - lowest))
            return Array(repeating: value, count: channels)
        }
        let bytes = HandmadeTIFF.strip(
            5, 1, samples, channels: channels, bits: sample.bits, kind: sample.kind, photometric: channels < 3 ? 1 : 2)
        for (pixel, step) in zip(try await tones(bytes), Self.steps) {
            #expect(pixel[..<3].allSatisfy { abs(Double($0) - step * 255) <= 1 }, "\(pixel) for \(step)")
            #expect(abs(Double(pixel[3]) - (channels == 4 ? step : 1) * 255) <= 1)
        }
    }

    @Test(arguments: [
        (16, 3, 1, "16-bit float"), (64, 3, 1, "64-bit float"), (64, 1, 1, "64-bit"), (32, 5, 1, "complex integer"),
        (64, 6, 1, "64-bit complex float"), (24, 1, 1, "24-bit"), (32, 3, 5, "32-bit float"), (16, 1, 32_803, "raw"),
    ]) func `other samples are refused by name`(bits: Int, kind: Int, photometric: Int, words: String) async throws {
        let bytes = HandmadeTIFF.strip(
            4, 4, Array(repeating: 1, count: 16), channels: 1, bits: bits, kind: kind, photometric: photometric)
        let error = await #expect(throws: RenderError.self) { try await RenderSamples.decoded(bytes) }
        #expect(error?.code == .undecodable && error?.message.contains(words) == true)
        #expect(error?.message.contains("convert it") == true)
    }

    @Test(arguments: [(false, false), (true, false), (false, true), (true, true)], [8, 16])
    func `planes in tiles are read`(layout: (isBigEndian: Bool, isBig: Bool), bits: Int) async throws {
        for channels in [2, 3, 4] {
            let (width, height, tile) = (40, 35, 16)
            func value(_ x: Int, _ y: Int, _ channel: Int) -> Int { [x * 6, y * 7, x + y * 3, 255 - x - y][channel] }
            var tiff = HandmadeTIFF(isBigEndian: layout.isBigEndian, isBig: layout.isBig)
            var (data, offsets): ([UInt8], [Int]) = ([], [])
            for channel in 0..<channels {
                for top in stride(from: 0, to: height, by: tile) {
                    for left in stride(from: 0, to: width, by: tile) {
                        offsets.append(tiff.headBytes + data.count)
                        for y in top..<top + tile {
                            for x in left..<left + tile {
                                let inside = x < width && y < height
                                let sample = inside ? value(x, y, channel) : 0
                                data += tiff.number(bits == 8 ? sample : sample * 257, bits / 8)
                            }
                        }
                    }
                }
            }
            tiff.entries = [
                254: [0], 256: [width], 257: [height], 258: Array(repeating: bits, count: channels), 259: [1],
                262: [channels < 3 ? 1 : 2], 277: [channels], 284: [2], 322: [tile], 323: [tile], 324: offsets,
                325: offsets.map { _ in tile * tile * bits / 8 },
            ]
            if channels != 3 { tiff.entries[338] = [2] }
            let file = tiff.file(data)
            let expected = (0..<width * height).flatMap { at -> [UInt8] in
                let all = (0..<channels).map { UInt8(value(at % width, at / width, $0)) }
                let colors = channels < 3 ? [all[0], all[0], all[0]] : Array(all[..<3])
                return colors + (channels % 2 == 0 ? [all[channels - 1]] : [255])
            }
            let shown = try await RenderSamples.decoded(file)
            let most = zip(shown.pixels, expected).enumerated().map { at, pair in
                // Colours under an alpha of 0 are not kept.
                shown.pixels[at / 4 * 4 + 3] == 0 && at % 4 < 3 ? 0 : abs(Int(pair.0) - Int(pair.1))
            }.max()
            #expect(shown.pixels.count == expected.count && (most ?? 9) <= (bits == 8 ? 0 : 1), "\(channels)")
            if channels == 3 {
                let small = try await RenderFixture.renderer.render(RenderSamples.job(file, "thumbnail:8,png"))
                #expect(small.width == 8)
                for at in stride(from: data.count, to: file.count, by: 3) {
                    var bytes = file
                    bytes[at] ^= 0x81
                    bytes.withUnsafeBytes {
                        _ = TIFFHeader(ByteReader($0))?.plain(keepsColors: false, planes: channels)
                    }
                    Array(file[..<at]).withUnsafeBytes {
                        _ = TIFFHeader(ByteReader($0))?.plain(keepsColors: false, planes: channels)
                    }
                }
            }
        }
    }

    @Test(arguments: [false, true]) func `a reduced first page is not taken for the picture`(isSub: Bool) async throws {
        func picture(_ width: Int, _ reduces: Int, at: Int, photometric: Int = 1) -> HandmadeTIFF {
            HandmadeTIFF(entries: [
                254: [reduces], 256: [width], 257: [2], 258: [8], 259: [1], 262: [photometric], 273: [at], 277: [1],
                278: [2], 279: [width * 2],
            ])
        }
        let data = [UInt8](repeating: 10, count: 8) + [UInt8](repeating: 200, count: 40)
        func file(_ full: HandmadeTIFF) -> [UInt8] {
            var small = picture(4, 1, at: 8)
            let first = 8 + data.count
            if isSub { small.entries[330] = [0] }
            let second = first + small.directory(at: first).count
            if isSub { small.entries[330] = [second] }
            return small.start + small.number(first, 4) + data
                + small.directory(at: first, next: isSub ? 0 : second) + full.directory(at: second)
        }
        let whole = file(picture(20, 0, at: 16))
        #expect(try ImageHeader.probe(whole).width == 20)
        #expect(try await tones(whole) == Array(repeating: [200, 200, 200, 255], count: 40))
        // Directories that cannot be decoded, such as a camera's raw data, and other reduced pictures do not take its
        // place.
        for other in [picture(20, 0, at: 16, photometric: 32_803), picture(20, 1, at: 16)] {
            #expect(try ImageHeader.probe(file(other)).width == 4)
            #expect(try await tones(file(other)) == Array(repeating: [10, 10, 10, 255], count: 8))
        }
    }
}
