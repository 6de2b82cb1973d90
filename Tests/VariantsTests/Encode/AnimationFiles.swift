import Testing

@testable import Variants

/// Animations put together byte by byte, what a viewer shows of them, and what files say of time, all without libvips.
struct HandmadeAnimation {
    /// A rectangle of RGBA pixels and how it gets onto the canvas.
    struct Frame {
        var x = 0
        var y = 0
        var width: Int
        var height: Int
        /// Milliseconds.
        var delay: Int
        /// The disposal after the frame was shown.
        var disposal = Disposal.keep
        /// Row by row; alpha 0 or 255.
        var pixels: [[UInt8]]
    }
    enum Disposal: Int { case keep = 1, clear, restore }

    var width: Int
    var height: Int
    /// Times played, 0 for ever.
    var loops = 0
    var frames: [Frame]

    /// The visible picture during each frame (GIF89a §23, RFC 9649 §2.7.2).
    var composed: [PixelBuffer] {
        var canvas = [UInt8](repeating: 0, count: width * height * 4)
        return frames.map { frame in
            let before = canvas
            var seen = canvas
            for y in 0..<frame.height {
                for x in 0..<frame.width {
                    let pixel = frame.pixels[y * frame.width + x]
                    let at = ((frame.y + y) * width + frame.x + x) * 4
                    if pixel[3] > 0 { seen.replaceSubrange(at..<(at + 4), with: pixel) }
                }
            }
            canvas = frame.disposal == .restore ? before : seen
            if frame.disposal == .clear {
                for y in 0..<frame.height {
                    let at = ((frame.y + y) * width + frame.x) * 4
                    canvas.replaceSubrange(at..<(at + frame.width * 4), with: repeatElement(0, count: frame.width * 4))
                }
            }
            return PixelBuffer(width: width, height: height, pixels: seen)
        }
    }

    /// A GIF with a separate color table for every frame, at most 255 colors each.
    var gif: [UInt8] {
        let little = HandmadeImages.little
        var bytes = HandmadeImages.ascii("GIF89a") + little(width, 2) + little(height, 2) + [0, 0, 0]
        if loops != 1 {
            bytes += [0x21, 0xFF, 11] + HandmadeImages.ascii("NETSCAPE2.0")
            bytes += [3, 1] + little(loops == 0 ? 0 : loops - 1, 2) + [0]
        }
        for frame in frames {
            let colors = Array(Set(frame.pixels.filter { $0[3] > 0 }.map { [$0[0], $0[1], $0[2]] }))
            let flags = UInt8(frame.disposal.rawValue << 2 | 1)
            bytes += [0x21, 0xF9, 4, flags] + little(frame.delay / 10, 2) + [255, 0]
            bytes += [0x2C] + little(frame.x, 2) + little(frame.y, 2) + little(frame.width, 2)
            bytes += little(frame.height, 2) + [0x87]
            bytes += (0..<256).flatMap { $0 < colors.count ? colors[$0] : [0, 0, 0] }
            let indexes = frame.pixels.map { pixel in
                pixel[3] == 0 ? 255 : colors.firstIndex(of: [pixel[0], pixel[1], pixel[2]])!
            }
            bytes += [8] + Self.subBlocks(Self.uncompressed(indexes)) + [0]
        }
        return bytes + [0x3B]
    }

    /// LZW without compression: codes of nine bits, the table cleared before it grows (GIF89a appendix F).
    private static func uncompressed(_ indexes: [Int]) -> [UInt8] {
        var codes: [Int] = []
        for (count, index) in indexes.enumerated() {
            if count % 250 == 0 { codes.append(256) }
            codes.append(index)
        }
        var (bytes, bits, count): ([UInt8], Int, Int) = ([], 0, 0)
        for code in codes + [257] {
            bits |= code << count
            count += 9
            while count >= 8 {
                bytes.append(UInt8(bits & 0xFF))
                bits >>= 8
                count -= 8
            }
        }
        return count > 0 ? bytes + [UInt8(bits)] : bytes
    }

    private static func subBlocks(_ bytes: [UInt8]) -> [UInt8] {
        stride(from: 0, to: bytes.count, by: 255).flatMap { at -> [UInt8] in
            let part = bytes[at..<min(at + 255, bytes.count)]
            return [UInt8(part.count)] + part
        }
    }

    /// A WebP of lossless frames; offsets must be even, and frames are not restored to what was before them.
    func webp() throws -> [UInt8] {
        var chunks = [
            HandmadeImages.vp8x(0x12, width: width, height: height),
            ("ANIM", [0, 0, 0, 0] + HandmadeImages.little(loops, 2)),
        ]
        for frame in frames {
            let storage = PixelStorage(frame.pixels.flatMap { $0 })
            let output = ResolvedOutput(format: .webp, isLossless: true)
            let job = EncodeJob(output: output, kept: KeptBlobs(), control: RenderControl())
            let still = try WebPOutput(job: job).encode(
                EncodablePixels(storage: storage, width: frame.width, height: frame.height, bands: 4), quality: 100)
            var data: [UInt8] = []
            for value in [frame.x / 2, frame.y / 2, frame.width - 1, frame.height - 1, frame.delay] {
                data += HandmadeImages.little(value, 3)
            }
            chunks.append(("ANMF", data + [frame.disposal == .clear ? 1 : 0] + still[12...]))
        }
        return HandmadeImages.webp(chunks)
    }
}

/// The times in an animation's bytes.
struct AnimationTimes: Equatable {
    var delays: [Int]
    /// Times played, 0 for ever.
    var loops: Int

    init(delays: [Int], loops: Int) {
        self.delays = delays
        self.loops = loops
    }

    init(_ bytes: [UInt8]) throws {
        self.init(delays: [], loops: 1)
        bytes.starts(with: "GIF".utf8) ? readGIF(bytes) : readWebP(bytes)
    }

    private mutating func readGIF(_ bytes: [UInt8]) {
        func table(_ flags: UInt8) -> Int { flags & 0x80 == 0 ? 0 : 3 << (Int(flags & 7) + 1) }
        func skipped(_ start: Int) -> Int {
            var at = start
            while bytes[at] > 0 { at += 1 + Int(bytes[at]) }
            return at + 1
        }
        var at = 13 + table(bytes[10])
        while bytes[at] != 0x3B {
            if bytes[at] == 0x21 {
                if bytes[at + 1] == 0xF9 { delays.append((Int(bytes[at + 4]) | Int(bytes[at + 5]) << 8) * 10) }
                if bytes[at + 1] == 0xFF, bytes[(at + 3)..<(at + 14)].elementsEqual("NETSCAPE2.0".utf8) {
                    let count = Int(bytes[at + 16]) | Int(bytes[at + 17]) << 8
                    loops = count == 0 ? 0 : count + 1
                }
                at = skipped(at + 2)
            } else {
                at = skipped(at + 11 + table(bytes[at + 9]))
            }
        }
    }

    private mutating func readWebP(_ bytes: [UInt8]) {
        var at = 12
        while at + 8 <= bytes.count {
            let length = (0..<4).reduce(0) { $0 | Int(bytes[at + 4 + $1]) << (8 * $1) }
            let type = String(decoding: bytes[at..<(at + 4)], as: UTF8.self)
            if type == "ANIM" { loops = Int(bytes[at + 12]) | Int(bytes[at + 13]) << 8 }
            if type == "ANMF" { delays.append((0..<3).reduce(0) { $0 | Int(bytes[at + 20 + $1]) << (8 * $1) }) }
            at += 8 + length + length % 2
        }
    }
}

extension RenderSamples {
    /// The visible picture at the beginning of each of `delays`: encoders keep a frame if it does not change.
    static func shown(_ bytes: [UInt8], delays: [Int]) throws -> [PixelBuffer] {
        let pictures = try frames(bytes)
        let times = try pictures.count == 1 ? [delays.reduce(0, +)] : AnimationTimes(bytes).delays
        #expect(times.reduce(0, +) == delays.reduce(0, +))
        var (index, end, start) = (0, times[0], 0)
        return delays.map { delay in
            while start >= end, index + 1 < pictures.count {
                index += 1
                end += times[index]
            }
            start += delay
            return pictures[index]
        }
    }

    /// All frames of an animation as libvips shows them, RGBA.
    static func frames(_ bytes: [UInt8]) throws -> [PixelBuffer] {
        try VipsLibrary.load()
        let header = try ImageHeader.probe(bytes)
        return try bytes.withUnsafeBytes { buffer in
            let image = try Decoding.open(buffer, header.format, frames: header.pages).withAlpha()
            let pixels = try image.computed(RenderControl()).array
            let size = header.encodedWidth * header.encodedHeight * 4
            #expect(pixels.count == size * header.pages)
            return (0..<header.pages).map { index in
                PixelBuffer(
                    width: header.encodedWidth, height: header.encodedHeight,
                    pixels: Array(pixels[(index * size)..<((index + 1) * size)]))
            }
        }
    }
}
