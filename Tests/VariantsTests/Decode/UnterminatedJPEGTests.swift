import Testing

@testable import Variants

/// A JPEG without its EOI marker is decoded if its data is there, and only then.
@Suite struct UnterminatedJPEGTests {
    private static func ending(_ bytes: [UInt8]) -> UnterminatedJPEG.Ending? {
        bytes.withUnsafeBytes { UnterminatedJPEG.ending(ByteReader($0)) }
    }

    /// JPEGs of every structure that libjpeg writes, of sizes that fill no block.
    private static func files() throws -> [(name: String, bytes: [UInt8])] {
        let color = try RenderFixture.gradientImage(61, 43)
        let gray = try RenderFixture.image(37, 29, bands: 1) { x, y in [UInt8((x * 7 + y * 3) & 0xFF)] }
        let noise = try RenderFixture.image(33, 41) { x, y in (0..<3).map { UInt8((x * 89 + y * 57 + $0 * 31) & 0xFF) }
        }
        var files: [(String, [UInt8])] = []
        for (picture, image) in [("colour", color), ("grey", gray), ("noise", noise)] {
            for isProgressive in [false, true] {
                for restart in [0, 1, 3] {
                    for subsampling in ["on", "off"] {
                        let bytes = try VipsCall(
                            "jpegsave_buffer",
                            [
                                "in": .image(image), "Q": 80, "interlace": .bool(isProgressive),
                                "restart-interval": .int(restart), "subsample-mode": .string(subsampling),
                                "optimize-coding": .bool(restart != 1), "strip": true,
                            ]
                        ).bytes()
                        files.append(("\(picture) \(isProgressive) \(restart) \(subsampling)", bytes))
                    }
                }
            }
        }
        return files
    }

    /// Offsets of the SOS markers.
    private static func scans(_ bytes: [UInt8]) throws -> [Int] {
        try bytes.withUnsafeBytes { buffer in
            var offsets: [Int] = []
            try JPEGDecoder.forEachSegment(ByteReader(buffer)) { marker, segment, end throws(RenderError) in
                if marker == 0xDA { offsets.append(end - segment.count - 4) }
                return true
            }
            return offsets
        }
    }

    /// libjpeg may find two codes in what it reads ahead, and each may end a block.
    @Test func `a file that lacks more than EOI is refused, or all but its last two blocks are there`() async throws {
        var refused = 0
        for (name, bytes) in try Self.files() {
            #expect(bytes.suffix(2) == [0xFF, 0xD9] && Self.ending(bytes) == nil, "\(name)")
            let whole = try await RenderSamples.decoded(bytes)
            for missing in Array(3..<12) + stride(from: 12, to: bytes.count - 700, by: 61) {
                switch await Self.pixels(bytes.dropLast(missing)) {
                case .success(let cut): #expect(!Self.differs(cut, whole), "\(name) without \(missing) bytes")
                case .failure(let error):
                    #expect(error.code == .undecodable, "\(name) without \(missing) bytes: \(error)")
                    refused += 1
                }
            }
        }
        #expect(refused > 500)
    }

    private static func pixels(_ bytes: [UInt8]) async -> Result<PixelBuffer, RenderError> {
        do throws(RenderError) {
            let header = try ImageHeader.probe(bytes)
            return .success(
                try await RenderFixture.renderer.pixels(
                    RenderJob(original: bytes, header: header, recipe: Recipe(), limits: .patient)))
        } catch {
            return .failure(error)
        }
    }

    /// Whether two pictures differ outside the corner that the last blocks are in, with a pixel for the interpolation of
    /// their colours.
    private static func differs(_ cut: PixelBuffer, _ whole: PixelBuffer) -> Bool {
        guard cut.width == whole.width, cut.height == whole.height else { return true }
        let corner = (x: whole.width - 24, y: whole.height - 18)
        return (0..<whole.height).contains { y in
            (0..<whole.width).contains { x in
                let at = (y * whole.width + x) * 4
                return (x < corner.x || y < corner.y) && cut.pixels[at..<at + 4] != whole.pixels[at..<at + 4]
            }
        }
    }

    @Test func `a progressive file that lacks whole scans is refused`() async throws {
        for (name, bytes) in try Self.files() {
            for scan in try Self.scans(bytes).dropFirst() {
                let job = try RenderSamples.job(Array(bytes[..<scan]), "png")
                #expect(Self.ending(Array(bytes[..<scan])) == nil, "\(name)")
                #expect(await DecodedFormatsTests.refusal(RenderFixture.renderer, job)?.code == .undecodable, "\(name)")
            }
        }
    }

    @Test(arguments: ["progressive.jpg", "cmyk.jpg", "grey.jpg", "meadow-small.jpg", "exif-orientation-6.jpg"])
    func `pictures of cameras and tools are decoded without EOI, and not if they are cut`(name: String) async throws {
        let bytes = try ProbeSampleTests.read("originals/" + name)
        let whole = try await RenderFixture.renderer.render(RenderSamples.job(bytes, "thumbnail:50,png"))
        for cut in [bytes.dropLast(2), bytes.dropLast(1)] {
            #expect(
                try await RenderFixture.renderer.render(RenderSamples.job(Array(cut), "thumbnail:50,png")).bytes
                    == whole.bytes)
        }
        for missing in [bytes.count / 50, bytes.count / 2] {
            let cut = try RenderSamples.job(bytes.dropLast(missing), "thumbnail:50,png")
            #expect(await DecodedFormatsTests.refusal(RenderFixture.renderer, cut)?.code == .undecodable)
        }
        #expect(Self.ending(bytes + Array("behind the picture".utf8)) == nil)
    }

    @Test(arguments: ["thumbnail:40x40,png", "png", "thumbnail:10x10,png"])
    func `the pixels are those of the whole file, in process and in a worker`(recipe: String) async throws {
        let pool = WorkerPool(WorkerPoolTests.configuration())
        for (name, bytes) in try Self.files() {
            let whole = try await RenderFixture.renderer.render(RenderSamples.job(bytes, recipe))
            let cut = try RenderSamples.job(bytes.dropLast(2), recipe)
            #expect(try await RenderFixture.renderer.render(cut).bytes == whole.bytes, "\(name)")
            guard name.hasPrefix("colour") else { continue }
            #expect(try await pool.render(cut).bytes == whole.bytes, "\(name)")
            let half = try RenderSamples.job(bytes.dropLast(bytes.count / 4), recipe)
            #expect(await DecodedFormatsTests.refusal(pool, half)?.code == .undecodable, "\(name)")
        }
        await pool.shutdown()
    }

    /// Our own checks before the decoder must not take longer than the decoder, or truncated uploads keep workers busy
    /// until the deadline.
    @Test func `half a large progressive picture is refused long before the deadline`() async throws {
        let bytes = try ProbeSampleTests.read("originals/mountains-12mp.jpg").withUnsafeBytes { original in
            let large = try Decoding.open(original, .jpeg)
            return try VipsCall("jpegsave_buffer", ["in": .image(large), "interlace": true, "strip": true]).bytes()
        }
        var job = try RenderSamples.job(bytes.dropLast(bytes.count / 2), "thumbnail:100,png")
        job.limits = RenderLimits()
        #expect(await DecodedFormatsTests.refusal(RenderFixture.renderer, job)?.code == .undecodable)
    }
}
