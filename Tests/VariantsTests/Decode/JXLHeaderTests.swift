import TestSupport
import Testing

@testable import Variants

/// JPEG XL as a format of originals: only where the setting `decoders` names it, and only in workers.
@Suite struct JXLHeaderTests {
    /// A header put together bit by bit.
    private struct Bits {
        private var bits: [Bool] = []

        mutating func add(_ value: Int, _ count: Int) {
            for index in 0..<count { bits.append(value >> index & 1 == 1) }
        }

        /// SizeHeader with an explicit width, edges up to 8192.
        mutating func addSize(_ width: Int, _ height: Int) {
            add(0, 1)
            add(1, 2)
            add(height - 1, 13)
            add(0, 3)
            add(1, 2)
            add(width - 1, 13)
        }

        var file: [UInt8] {
            let bytes = stride(from: 0, to: bits.count, by: 8).map { start in
                bits[start..<min(bits.count, start + 8)].enumerated().reduce(UInt8(0)) {
                    $0 | ($1.element ? 1 << $1.offset : 0)
                }
            }
            return [0xFF, 0x0A] + bytes
        }
    }

    /// A header with everything that may stand before the colours.
    static func complete(orientation: Int, channels: Int = 2) -> [UInt8] {
        var bits = Bits()
        bits.addSize(300, 200)
        bits.add(0, 1)  // not all default
        bits.add(1, 1)  // extra fields
        bits.add(orientation - 1, 3)
        bits.add(1, 1)  // intrinsic size
        bits.addSize(30, 20)
        bits.add(1, 1)  // preview in eighths, square
        bits.add(1, 1)
        bits.add(0, 2)
        bits.add(1, 3)
        bits.add(1, 1)  // animation
        for _ in 0..<3 { bits.add(0, 2) }
        bits.add(0, 1)
        bits.add(0, 1)  // 12 bits a sample
        bits.add(2, 2)
        bits.add(1, 1)
        if channels < 2 { bits.add(channels, 2) } else { bits.add(channels < 18 ? 2 : 3, 2) }
        if channels >= 2 { bits.add(channels < 18 ? channels - 2 : channels - 1, channels < 18 ? 4 : 12) }
        for channel in 0..<min(channels, 4) {
            bits.add(0, 1)
            bits.add(channel == 0 ? 1 : 0, 2)  // depth, then alpha
            bits.add(0, 3)  // 8 bits
            bits.add(0, 2)
            bits.add(1, 2)  // a name of two letters
            bits.add(2, 4)
            bits.add(0x4142, 16)
            if channel > 0 { bits.add(0, 1) }
        }
        bits.add(0, 1)  // not XYB
        bits.add(0, 1)  // own colours
        bits.add(0, 1)
        bits.add(1, 2)  // grey
        bits.add(0, 32)
        return bits.file
    }

    private static func details(_ bytes: [UInt8]) -> ImageDetails {
        bytes.withUnsafeBytes { JXLHeader.details(ByteReader($0)) }
    }

    @Test(arguments: 1...8)
    func `a header is read whatever stands in it, the size as seen`(orientation: Int) throws {
        let file = Self.complete(orientation: orientation)
        let header = try ImageHeader.probe(file)
        #expect(header.format == .jxl && header.hasAlpha && header.orientation == 1 && header.pages == 1)
        #expect([header.width, header.height] == (orientation >= 5 ? [200, 300] : [300, 200]))
        #expect(Self.details(file).bitDepth == 12 && Self.details(file).colorSpace == "grey")
        for length in 2..<(file.count - 4) {
            let error = #expect(throws: RenderError.self) { try ImageHeader.probe(Array(file[..<length])) }
            #expect(error?.code == .undecodable && error?.message.contains("truncated") == true)
        }
    }

    @Test func `more channels than any picture has are refused`() throws {
        #expect(try ImageHeader.probe(Self.complete(orientation: 1, channels: 4)).hasAlpha)
        for channels in [5, 17, 4096] {
            let error = #expect(throws: RenderError.self) {
                try ImageHeader.probe(Self.complete(orientation: 1, channels: channels))
            }
            #expect(error?.code == .overLimit && error?.message.contains("\(channels) extra channels") == true)
        }
    }

    @Test(arguments: [
        (0, 8, 8), (1, 200, 200), (2, 240, 200), (3, 266, 200), (4, 300, 200), (5, 355, 200), (6, 250, 200),
        (7, 400, 200),
    ])
    func `a ratio gives the width`(ratio: Int, width: Int, height: Int) throws {
        var bits = Bits()
        if ratio == 0 {
            bits.add(1, 1)  // in eighths
            bits.add(0, 5)
            bits.add(0, 3)
            bits.add(0, 5)
        } else {
            bits.add(0, 1)
            bits.add(0, 2)
            bits.add(height - 1, 9)
            bits.add(ratio, 3)
        }
        bits.add(1, 1)
        let header = try ImageHeader.probe(bits.file + [0])
        #expect(header.width == width && header.height == height && !header.hasAlpha)
    }

    @Test(arguments: [
        "thumbnail:60x60,jxl", "thumbnail:61x40:stretch,jxl:lossless", "thumbnail:60x60,circle,jxl",
        "grayscale,thumbnail:64,jxl:lossless", "thumbnail:60x60,jxl:keep=exif",
    ])
    func `what jxl writes is read again`(text: String) async throws {
        let jpeg = try ProbeSampleTests.read("originals/meadow-small.jpg")
        let original = CameraEXIF.inserted(CameraEXIF().complete, into: jpeg)
        let written = try await RenderFixture.renderer.render(RenderSamples.job(original, text))
        let header = try ImageHeader.probe(written.bytes)
        #expect(header.width == written.width && header.height == written.height)
        #expect(header.hasAlpha == text.contains("circle"))
        #expect(Self.details(written.bytes).bitDepth == 8)
        #expect((Self.details(written.bytes).exif?.camera == "Canon EOS R5") == text.contains("exif"))

        var job = RenderFixture.job(
            written.bytes, .jxl, header.width, header.height, try Recipe("thumbnail:32"),
            ResolvedOutput(format: .png, isLossless: true))
        let pool = WorkerPool(WorkerPoolTests.configuration())
        let refused = #expect(throws: RenderError.self) { try job.checkLimits() }
        #expect(refused?.code == .unsupportedFormat && refused?.message.contains("`decoders`") == true)
        job.limits.formats.insert(.jxl)
        let careful = await DecodedFormatsTests.refusal(InProcessRenderer(maxConcurrentRenders: 1), job)
        #expect(careful?.code == .unsupportedFormat && careful?.message.contains("only in render workers") == true)
        let variant = try await pool.render(job)
        #expect(max(variant.width, variant.height) == 32)
        await pool.shutdown()
    }

    @Test func `an animation shows its first frame`() async throws {
        // 40 × 30 pixels, red, green and blue for a second each: cjxl's lossless encoding.
        let animation: [UInt8] = [
            0xFF, 0x0A, 0xE8, 0x30, 0x41, 0x00, 0x16, 0x14, 0x97, 0x04, 0x08, 0x08, 0xA0, 0x02, 0x00, 0x00, 0x68, 0x00,
            0x4B, 0x18, 0x8B, 0x15, 0x00, 0xD4, 0x19, 0x63, 0x30, 0x26, 0x2F, 0x20, 0x01, 0x80, 0x20, 0x41, 0x12, 0x94,
            0xBF, 0x00, 0x41, 0x3F, 0x9A, 0x75, 0xDB, 0x1F, 0x08, 0x08, 0xA0, 0x02, 0x00, 0x00, 0x68, 0x00, 0x4B, 0x18,
            0x8B, 0x15, 0x00, 0x1C, 0x32, 0xC6, 0xE0, 0xC8, 0xB9, 0x80, 0x04, 0x00, 0xA6, 0x32, 0x28, 0x00, 0x82, 0x04,
            0xFE, 0xFD, 0x54, 0xD0, 0xE6, 0x00, 0x08, 0x08, 0xA0, 0x42, 0x00, 0x00, 0x44, 0x00, 0x4B, 0x18, 0x8B, 0x15,
            0x80, 0x5D, 0xF8, 0xFF, 0x02, 0x12, 0x00, 0xF0, 0xF6, 0x44, 0xD9, 0xFB, 0x03,
        ]
        #expect(try ImageHeader.probe(animation).pages == 1)
        let pool = WorkerPool(WorkerPoolTests.configuration())
        var job = RenderFixture.job(
            animation, .jxl, 40, 30, Recipe(), ResolvedOutput(format: .png, isLossless: true))
        job.limits.formats.insert(.jxl)
        let shown = try await RenderSamples.decoded(pool.render(job).bytes)
        #expect(shown.pixels == Array(repeating: [255, 0, 0, 255], count: 40 * 30).flatMap { $0 })
        job.original = EncodedBytes(Array(animation[..<30]))
        let cut = job
        let error = await #expect(throws: RenderError.self) { try await pool.render(cut) }
        #expect(error?.code == .undecodable)
        await pool.shutdown()
    }

    @Test func `a turned JPEG XL comes out upright`() async throws {
        let written = try await RenderFixture.renderer.render(
            RenderSamples.job("meadow-small.jpg", "thumbnail:64x48:stretch,jxl:lossless"))
        let turned = try #require(Self.turned(written.bytes))
        let header = try ImageHeader.probe(turned)
        #expect(header.width == 48 && header.height == 64 && header.orientation == 1)
        let pool = WorkerPool(WorkerPoolTests.configuration())
        var job = RenderFixture.job(
            turned, .jxl, 48, 64, try Recipe("original:lossless"), ResolvedOutput(format: .png, isLossless: true))
        job.limits.formats.insert(.jxl)
        let upright = try await pool.render(job)
        job = RenderFixture.job(
            written.bytes, .jxl, 64, 48, try Recipe("rotate:90"), ResolvedOutput(format: .png, isLossless: true))
        job.limits.formats.insert(.jxl)
        let rotated = try await pool.render(job)
        #expect(try await RenderSamples.decoded(upright.bytes) == RenderSamples.decoded(rotated.bytes))
        await pool.shutdown()
    }

    /// A copy of the codestream with an orientation of 6 in its header, in the form of our own files: not all default, 8
    /// bits, no extra channels.
    private static func turned(_ file: [UInt8]) -> [UInt8]? {
        func bit(_ at: Int) -> Int { Int(file[at >> 3]) >> (at & 7) & 1 }
        var bits = Bits()
        var at = 16
        func copy(_ count: Int) {
            for _ in 0..<count {
                bits.add(bit(at), 1)
                at += 1
            }
        }
        // 64 × 48 in eighths: a flag, the height, a ratio of 4 to 3.
        guard bit(at) == 1 else { return nil }
        copy(1 + 5 + 3)
        guard bit(at) == 0, bit(at + 1) == 0 else { return nil }
        at += 2
        bits.add(0b10, 2)  // not all default, extra fields
        bits.add(5, 3)
        bits.add(0, 3)
        copy(3 + 1 + 2 + 1)  // depth, buffers, no channels, XYB
        guard bit(at) == 1 else { return nil }
        copy(1)  // usual colours
        bits.add(1, 1)  // usual tone mapping
        copy(2 + 1)  // no extensions, usual transform
        return bits.file + file[((at + 7) / 8)...]
    }

    @Test func `a JPEG XL cut short or damaged is refused in words and crashes no worker`() async throws {
        let written = try await RenderFixture.renderer.render(
            RenderSamples.job("dunes-2mp.jpg", "thumbnail:400,jxl:lossless"))
        let pool = WorkerPool(WorkerPoolTests.configuration())
        for part in [written.bytes.count / 2, written.bytes.count - 40, 40] {
            var job = RenderFixture.job(
                Array(written.bytes[..<part]), .jxl, written.width, written.height, try Recipe("thumbnail:32"))
            job.limits.formats.insert(.jxl)
            let error = await DecodedFormatsTests.refusal(pool, job)
            #expect(error?.code == .undecodable, "\(part): \(error as Any)")
        }
        #expect(pool.statistics.crashed == 0 && pool.statistics.started == 1)
        await pool.shutdown()
    }

    @Test(arguments: ["jxl", "jxl:lossless", "circle,jxl"])
    func `a JPEG XL that does not fit in a worker's memory is refused and crashes no worker`(text: String) async throws
    {
        let written = try await RenderFixture.renderer.render(
            RenderSamples.job("dunes-2mp.jpg", "scaled:2," + text))
        var outcomes: [RenderError.Code?] = []
        for mebibytes in stride(from: 64, through: 512, by: 64) {
            let pool = WorkerPool(WorkerPoolTests.configuration { $0.memory = mebibytes << 20 })
            var job = RenderFixture.job(
                written.bytes, .jxl, written.width, written.height, try Recipe("thumbnail:32"))
            job.limits.formats.insert(.jxl)
            let error = await DecodedFormatsTests.refusal(pool, job)
            outcomes.append(error?.code)
            if let error { #expect(error.message.contains("limits.workerMemory"), "\(mebibytes) MiB: \(error)") }
            #expect(pool.statistics.crashed == 0, "\(mebibytes) MiB")
            await pool.shutdown()
        }
        #expect(outcomes.first == .overLimit && outcomes.last == .some(nil), "\(outcomes)")
    }
}
