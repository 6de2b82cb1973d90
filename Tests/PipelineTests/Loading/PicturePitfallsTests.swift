import TestSupport
import Testing
import Variants

@testable import Pipeline

/// Faults that loaders of images are known to have with unusual pictures and settings.
@Suite(.timeLimit(.minutes(10))) struct PicturePitfallsTests {
    private static func little(_ values: (value: Int, bytes: Int)...) -> [UInt8] {
        values.flatMap { value, bytes in (0..<bytes).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) } }
    }

    /// A grey picture of 24 bits per pixel.
    private static func bmp(_ width: Int, _ height: Int) -> [UInt8] {
        let count = (width * 3 + 3) / 4 * 4 * height
        return bmpHead(width, height, count) + [UInt8](repeating: 0x80, count: count)
    }

    private static func bmpHead(_ width: Int, _ height: Int, _ count: Int) -> [UInt8] {
        Array("BM".utf8) + little((54 + count, 4), (0, 4), (54, 4), (40, 4), (width, 4), (height, 4), (1, 2), (24, 2))
            + little((0, 4), (count, 4), (2835, 4), (2835, 4), (0, 4), (0, 4))
    }

    private static func request(_ bytes: [UInt8], _ recipe: String) throws -> ImageRequest {
        ImageRequest(.bytes(bytes, name: "given"), recipe: try Recipe(recipe))
    }

    private static func code(_ pipeline: ImagePipeline, _ request: ImageRequest) async -> PipelineError.Code? {
        do throws(PipelineError) {
            _ = try await pipeline.respond(to: request)
            return nil
        } catch { return error.code }
    }

    struct Thin: Sendable {
        var original: (Int, Int)
        var recipe: String
        var expected: (Int, Int)
    }

    @Test(arguments: [
        Thin(original: (10, 12_000), recipe: "thumbnail:6x", expected: (6, 7_200)),
        Thin(original: (12_000, 10), recipe: "thumbnail:x6", expected: (7_200, 6)),
        Thin(original: (100, 8_000), recipe: "thumbnail:200x", expected: (100, 8_000)),
        Thin(original: (1_000, 2), recipe: "thumbnail:100x", expected: (100, 1)),
        Thin(original: (2, 1_000), recipe: "thumbnail:100", expected: (1, 100)),
        Thin(original: (3_000, 1), recipe: "thumbnail:x1", expected: (3_000, 1)),
        Thin(original: (1_000, 2), recipe: "thumbnail:10x10:pad", expected: (10, 10)),
        Thin(original: (10, 10), recipe: "thumbnail:1000x1:fill", expected: (10, 1)),
    ])
    func `one edge decides the size of a long picture, and a thin one keeps a pixel`(thin: Thin) async throws {
        try await withPipeline(handler: { _ in .response(500) }) { _, pipeline in
            let bytes = Self.bmp(thin.original.0, thin.original.1)
            let response = try await pipeline.respond(to: Self.request(bytes, thin.recipe + ",png"))
            #expect((response.width, response.height) == thin.expected)
            #expect(try ImageHeader.probe(response.bytes).width == thin.expected.0)
            // An edge over the limit is an error, and makes no smaller picture.
            let long = try Self.request(Self.bmp(10, 30_000), "thumbnail:5x,png")
            #expect(await Self.code(pipeline, long) == .overLimit)
        }
    }

    @Test(arguments: [["M4A ", "mp42", "isom"], ["crx ", "isom"], ["mp42", "mp41", "avc1"], ["qt  "]])
    func `sound, video and raw data are no pictures, whatever their type says`(brands: [String]) async throws {
        let compatible = brands.dropFirst().joined()
        let file = [0, 0, 0, UInt8(16 + compatible.utf8.count)] + Array("ftyp\(brands[0])\0\0\0\0\(compatible)".utf8)
        try await withPipeline(handler: { _ in .response(200, ["Content-Type": "image/heic"], body: file) }) {
            bench, pipeline in
            for recipe in ["thumbnail:20", nil] {
                let code = await Self.code(pipeline, try bench.request("/a", recipe))
                #expect(code == .notAnImage)
            }
        }
    }

    /// A box may claim to be as long as the file. A brand behind the first 64 does not count.
    @Test func `a long list of brands is not read to its end`() async throws {
        let head: [UInt8] = [0x7F, 0xFF, 0xFF, 0xFF] + Array("ftypisom\0\0\0\0".utf8)
        let file = head + [UInt8](repeating: 0, count: 64 * 4) + Array("heicavif".utf8)
        try await withPipeline(handler: { _ in .response(500) }) { _, pipeline in
            let code = await Self.code(pipeline, try Self.request(file, "thumbnail:20"))
            #expect(code == .notAnImage)
        }
    }

    @Test func `a canvas that no memory holds is refused`() async throws {
        let most: [UInt8] = [0x7F, 0xFF, 0xFF, 0xFF]
        let chunk: [UInt8] = [0, 0, 0, 13] + Array("IHDR".utf8) + most + most + [8, 6, 0, 0, 0, 0, 0, 0, 0]
        let webp: [UInt8] =
            Array("RIFF".utf8) + Self.little((64, 4)) + Array("WEBPVP8X".utf8)
            + Self.little((10, 4), (2, 4), (0xFF_FFFF, 3), (0xFF_FFFF, 3))
        let files: [[UInt8]] = [
            Self.bmpHead(0x7FFF_FFFF, 0x7FFF_FFFF, 0), Self.bmpHead(0x7FFF_FFFF, -0x8000_0000, 0),
            [0x89, 0x50, 0x4E, 0x47, 13, 10, 26, 10] + chunk, webp,
            Array("GIF89a".utf8) + [0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0x3B],
        ]
        try await withPipeline(handler: { _ in .response(500) }) { _, pipeline in
            for file in files {
                let code = await Self.code(pipeline, try Self.request(file, "thumbnail:20,frames:all,gif"))
                #expect([.overLimit, .undecodable, .notAnImage].contains(code))
            }
        }
    }

    @Test func `10 ms of a frame are shown as 100, 11 as they are`() async throws {
        try await withPipeline(handler: { _ in .response(500) }) { _, pipeline in
            func animated(_ bytes: [UInt8]) async throws -> (bytes: [UInt8], delays: [Int]) {
                let bytes = try await pipeline.respond(to: Self.request(bytes, "frames:all,webp:lossless")).bytes
                return (bytes, Self.frames(bytes).map { Int(bytes[$0]) | Int(bytes[$0 + 1]) << 8 })
            }
            var webp = try await animated(sample("originals/balloon.gif")).bytes
            let frames = Self.frames(webp)
            try #require(frames.count > 2)
            for (frame, delay) in zip(frames, [10, 11]) { (webp[frame], webp[frame + 1]) = (UInt8(delay), 0) }
            #expect(try await animated(webp).delays.prefix(2) == [100, 11])
        }
    }

    /// Where the delays of a WebP's frames are.
    private static func frames(_ webp: [UInt8]) -> [Int] {
        webp.indices.filter { webp[$0...].starts(with: Array("ANMF".utf8)) }.map { $0 + 20 }
    }

    @Test func `an empty name of a folder is no folder`() throws {
        var configuration = PipelineConfiguration()
        configuration.cacheFolder = ""
        let failure = #expect(throws: PipelineError.self) { _ = try ImagePipeline(configuration) }
        #expect(failure?.code == .cacheUnavailable)
        for kind in [MaskFolder.Kind.mask, .overlay] {
            let missing = #expect(throws: PipelineError.self) { _ = try MaskFolder("", of: kind).file(named: "a") }
            #expect(missing?.message.contains("no \(kind) folder is configured") == true)
        }
    }
}
