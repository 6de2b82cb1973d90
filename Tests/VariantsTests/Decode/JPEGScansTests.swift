import Testing

@testable import Variants

/// A JPEG without its EOI marker is decoded if no pixel is missing, and only then.
@Suite struct JPEGScansTests {
    private static func isCompleted(_ bytes: [UInt8]) -> Bool {
        bytes.withUnsafeBytes { JPEGScans.completed($0)?.array == bytes + [0xFF, 0xD9] }
    }

    /// JPEGs of every structure that libjpeg writes, of sizes that fill no block.
    private static func files() throws -> [(name: String, bytes: [UInt8])] {
        let colour = try RenderFixture.gradientImage(61, 43)
        let grey = try RenderFixture.image(37, 29, bands: 1) { x, y in [UInt8((x * 7 + y * 3) & 0xFF)] }
        let noise = try RenderFixture.image(33, 41) { x, y in (0..<3).map { UInt8((x * 89 + y * 57 + $0 * 31) & 0xFF) }
        }
        var files: [(String, [UInt8])] = []
        for (picture, image) in [("colour", colour), ("grey", grey), ("noise", noise)] {
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

    @Test func `a file that lacks nothing but EOI is completed, and one that lacks a single byte more is not`() throws {
        for (name, bytes) in try Self.files() {
            #expect(bytes.suffix(2) == [0xFF, 0xD9] && !Self.isCompleted(bytes), "\(name)")
            #expect(Self.isCompleted(bytes.dropLast(2)), "\(name)")
            #expect(Self.isCompleted(bytes.dropLast(1)), "\(name): with the first byte of the marker")
            let cuts = Array(3..<24) + stride(from: 24, to: bytes.count - 2, by: 61)
            for missing in cuts where !Self.isPadding(bytes, missing) {
                #expect(!Self.isCompleted(bytes.dropLast(missing)), "\(name) without \(missing) bytes")
            }
        }
    }

    /// Whether what is dropped before EOI is nothing but the zero stuffed behind a last byte of 255.
    private static func isPadding(_ bytes: [UInt8], _ missing: Int) -> Bool {
        missing == 3 && bytes.dropLast(2).suffix(2) == [0xFF, 0]
    }

    @Test(arguments: ["progressive.jpg", "cmyk.jpg", "grey.jpg", "meadow-small.jpg", "exif-orientation-6.jpg"])
    func `pictures of cameras and tools are completed`(name: String) throws {
        let bytes = try ProbeSampleTests.read("originals/" + name)
        #expect(Self.isCompleted(bytes.dropLast(2)))
        #expect(!Self.isCompleted(bytes.dropLast(bytes.count / 50)))
        #expect(!Self.isCompleted(bytes + Array("behind the picture".utf8)))
    }

    @Test(arguments: ["thumbnail:40x40,png", "png", "thumbnail:10x10,png"])
    func `the pixels are those of the whole file, in process and in a worker`(recipe: String) async throws {
        let pool = WorkerPool(WorkerPoolTests.configuration())
        for (name, bytes) in try Self.files().filter({ $0.name.hasPrefix("colour") }) {
            let whole = try await RenderFixture.renderer.render(RenderSamples.job(bytes, recipe))
            let cut = try RenderSamples.job(bytes.dropLast(2), recipe)
            #expect(try await RenderFixture.renderer.render(cut).bytes == whole.bytes, "\(name)")
            #expect(try await pool.render(cut).bytes == whole.bytes, "\(name)")
            let half = try RenderSamples.job(bytes.dropLast(bytes.count / 4), recipe)
            #expect(await DecodedFormatsTests.refusal(pool, half)?.code == .undecodable, "\(name)")
        }
        await pool.shutdown()
    }
}
