import TestSupport
import Testing

@testable import Variants

@Suite struct RenderMemoryTests {
    struct Kind: Sendable, CustomTestStringConvertible {
        var name: String
        /// Bytes that the decoder keeps of 4000 × 3000 pixels, for each of them.
        var held: Double
        var bytes: @Sendable (_ width: Int, _ height: Int) -> [UInt8]
        var testDescription: String { name }
    }

    private typealias Make = HandmadeImages

    /// A JPEG of three components. The first has twice the resolution.
    private static func jpeg(_ width: Int, _ height: Int, marker: UInt8, first: [UInt8]) -> [UInt8] {
        let frame = Make.segment(
            marker, [8] + Make.big(height, 2) + Make.big(width, 2) + [3, 1, 0x22, 0, 2, 0x11, 0, 3, 0x11, 0])
        let scan = Make.segment(0xDA, [UInt8(first.count)] + first.flatMap { [$0, 0] } + [0, 63, 0]) + [1, 2, 3]
        return [0xFF, 0xD8] + frame + scan + [0xFF, 0xD9]
    }

    private static func png(_ width: Int, _ height: Int, depth: UInt8 = 8, color: UInt8, interlace: UInt8) -> [UInt8] {
        var bytes = Make.png(width: width, height: height, color: color)
        (bytes[24], bytes[28]) = (depth, interlace)
        return bytes
    }

    static let kinds: [Kind] = [
        Kind(name: "JPEG", held: 0) { jpeg($0, $1, marker: 0xC0, first: [1, 2, 3]) },
        Kind(name: "progressive JPEG", held: 3) { jpeg($0, $1, marker: 0xC2, first: [1, 2, 3]) },
        Kind(name: "JPEG with a scan for each component", held: 3) { jpeg($0, $1, marker: 0xC0, first: [1]) },
        Kind(name: "PNG", held: 0) { png($0, $1, color: 2, interlace: 0) },
        Kind(name: "interlaced PNG", held: 4) { png($0, $1, color: 2, interlace: 1) },
        Kind(name: "interlaced PNG of 16 bits", held: 8) { png($0, $1, depth: 16, color: 6, interlace: 1) },
        Kind(name: "GIF", held: 8) { Make.gif(width: $0, height: $1, frames: [(0, 0, $0, $1)]) },
        Kind(name: "WebP", held: 0) { Make.webp([Make.vp8(width: $0, height: $1)]) },
        Kind(name: "lossless WebP", held: 8) { Make.webp([Make.vp8l(width: $0, height: $1, alpha: false)]) },
        Kind(name: "WebP with alpha", held: 8) {
            Make.webp([Make.vp8x(0x10, width: $0, height: $1), Make.vp8(width: $0, height: $1)])
        },
        Kind(name: "AVIF", held: 14) { Make.heif(width: $0, height: $1) },
        Kind(name: "HEIF with alpha", held: 21) { Make.heif(brand: "heic", width: $0, height: $1, alpha: true) },
        // One strip of one bit a sample.
        Kind(name: "TIFF", held: 0.75) { Make.tiff(width: $0, height: $1) },
    ]

    private static func job(_ bytes: [UInt8], _ recipe: String) throws -> RenderJob {
        var job = RenderJob(original: bytes, header: try ImageHeader.probe(bytes), recipe: try Recipe(recipe))
        job.limits.pixels = 5_000_000_000
        job.limits.formats = Set(ImageFormat.decodable)
        return job
    }

    @Test(arguments: kinds) func `a header tells what decoding takes, and a limit just below refuses it`(
        _ kind: Kind
    ) throws {
        let job = try Self.job(kind.bytes(4000, 3000), "thumbnail:300,jpeg")
        #expect(job.header.heldBytes == Int(kind.held * 12_000_000))
        let needed = RenderMemory(job).total
        try job.checkLimits(memory: needed)
        let error = #expect(throws: RenderError.self) { try job.checkLimits(memory: needed - 1) }
        #expect(error?.code == .overLimit)
        let title = job.header.format.title
        for words in [
            "4000 × 3000 pixels of ", title, "MB of memory", "workerMemory = \(needed - 1)", "raise the limit",
        ] {
            #expect(error?.message.contains(words) == true, "\(error?.message ?? "")")
        }
        #expect(error?.message.contains("progressive JPEG") == (title == "JPEG" && kind.held > 0))
        #expect(error?.message.contains("interlaced PNG") == (title == "PNG" && kind.held > 0))
    }

    @Test func `JPEG XL takes twice as much with alpha or more than 8 bits`() throws {
        #expect(JXLDecoder.bytesPerPixel(isPlain: false) == 2 * JXLDecoder.bytesPerPixel(isPlain: true))
        let image = try RenderFixture.gradientImage(40, 30)
        let written = try image.saved(
            by: "jxlsave_buffer", ["in": .image(image), "lossless": true])
        #expect(try ImageHeader.probe(written).heldBytes == 40 * 30 * 24)
    }

    @Test(arguments: [
        ("thumbnail:300,blur:3,jpeg", 1 << 30), ("crop:300x300,jpeg", 1 << 30),
        ("grayscale,thumbnail:300,jpeg", 1 << 30),
        ("blur:3,thumbnail:300,jpeg", 0), ("flip:v,thumbnail:300,jpeg", 0), ("crop:300x300:gravity=attention,jpeg", 0),
    ])
    func `200 megapixels fit in a worker unless a step keeps them all`(recipe: String, memory: Int) throws {
        let job = try Self.job(Self.jpeg(20_000, 10_000, marker: 0xC0, first: [1, 2, 3]), recipe)
        if memory > 0 { return try job.checkLimits(memory: memory) }
        let error = #expect(throws: RenderError.self) { try job.checkLimits(memory: 1 << 30) }
        #expect(error?.message.contains("begin the recipe with a step that reduces the size") == true)
    }

    @Test func `a picture that has to be turned is kept whole, unless it is scaled first`() throws {
        var job = try Self.job(Self.jpeg(20_000, 10_000, marker: 0xC0, first: [1, 2, 3]), "crop:300x300,jpeg")
        let upright = RenderMemory(job).pictures
        job.header.orientation = 6
        #expect(RenderMemory(job).pictures == upright + 600_000_000)
        job.recipe = try Recipe("thumbnail:300,jpeg")
        #expect(RenderMemory(job).pictures < 1_000_000)
    }

    @Test(arguments: kinds) func `a bomb in a hundred bytes is refused without a worker`(_ kind: Kind) async throws {
        let edge = kind.name.contains("WebP") ? 16_383 : 65_000
        let job = try Self.job(kind.bytes(edge, edge), "blur:3,jpeg")
        let pool = WorkerPool(WorkerPoolTests.configuration())
        let error = await WorkerPoolTests.error(pool, job)
        #expect(error?.code == .overLimit && error?.message.contains("limits.workerMemory") == true)
        #expect(pool.statistics.started == 0)
        await pool.shutdown()
    }

    // The estimate suffices: the worker gets no byte more.
    @Test(arguments: [
        ("jpegsave_buffer", false), ("jpegsave_buffer", true), ("pngsave_buffer", false), ("pngsave_buffer", true),
        ("webpsave_buffer", false), ("webpsave_buffer", true), ("gifsave_buffer", false), ("tiffsave_buffer", false),
        ("heifsave_buffer", false),
    ])
    func `what a header is said to take suffices`(saver: String, special: Bool) async throws {
        try VipsLibrary.load()
        let noise = try (0..<3).map { _ in
            try VipsCall("gaussnoise", ["width": 3000, "height": 2000, "mean": .double(128), "sigma": .double(20)])
                .image().cast(to: "uchar")
        }
        let image = try VipsCall("bandjoin", ["in": .images(noise)]).image().labeled("srgb")
        var arguments: [(String, VipsArgument)] = [("in", .image(image))]
        switch saver {
        case "webpsave_buffer": arguments += [("lossless", .bool(special)), ("effort", 0)]
        case "gifsave_buffer": arguments += [("effort", 1)]
        case "heifsave_buffer": arguments += [("compression", "av1"), ("effort", 0), ("Q", 40)]
        default: if special { arguments += [("interlace", true)] }
        }
        let bytes = try VipsCall(nickname: saver, arguments: arguments).bytes()
        let job = try Self.job(bytes, "thumbnail:300,jpeg")
        let pool = WorkerPool(WorkerPoolTests.configuration { $0.memory = max(64 << 20, RenderMemory(job).total) })
        #expect(await WorkerPoolTests.error(pool, job) == nil)
        await pool.shutdown()
    }

    @Test(arguments: [false, true]) func `a JPEG of 200 megapixels renders in a worker`(isProgressive: Bool)
        async throws
    {
        try VipsLibrary.load()
        let image = try VipsCall("black", ["width": 20_000, "height": 10_000]).image()
        let bytes = try VipsCall("jpegsave_buffer", ["in": .image(image), "interlace": .bool(isProgressive)]).bytes()
        var job = try Self.job(bytes, "thumbnail:300,jpeg")
        job.limits.timeout = .seconds(100)
        #expect(job.header.heldBytes == (isProgressive ? 400_000_000 : 0))
        let pool = WorkerPool(WorkerPoolTests.configuration())
        let variant = try await pool.render(job)
        #expect(variant.width == 300 && variant.height == 150)
        await pool.shutdown()
    }
}
