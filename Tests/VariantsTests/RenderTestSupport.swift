@testable import Variants

/// Pictures made in memory for render tests, and short ways to render them.
enum RenderFixture {
    /// `width × height` pixels of `bands` 8-bit bands.
    static func image(
        _ width: Int, _ height: Int, bands: Int = 3, _ pixel: (Int, Int) -> [UInt8]
    ) throws(RenderError) -> Image {
        try VipsLibrary.load()
        var bytes: [UInt8] = []
        for y in 0..<height { for x in 0..<width { bytes += pixel(x, y) } }
        return try Image(PixelStorage(bytes), width: width, height: height, bands: bands)
            .labeled(bands < 3 ? "b-w" : "srgb")
    }

    /// A smooth picture with some texture: its values differ everywhere.
    static func gradient(_ x: Int, _ y: Int, _ width: Int, _ height: Int) -> [UInt8] {
        let u = Double(x) / Double(max(1, width - 1))
        let v = Double(y) / Double(max(1, height - 1))
        let wave = (x / 6 + y / 4) % 2 == 0 ? 12.0 : -12.0
        return [20 + 200 * u, 30 + 190 * v, 40 + 90 * (u + 1 - v)].map { UInt8(max(0, min(255, $0 + wave))) }
    }

    static func gradientImage(_ width: Int, _ height: Int) throws(RenderError) -> Image {
        try image(width, height) { gradient($0, $1, width, height) }
    }

    static func jpeg(_ image: Image, quality: Int = 95) throws(RenderError) -> [UInt8] {
        try VipsCall("jpegsave_buffer", ["in": .image(image), "Q": .int(quality), "strip": true]).bytes()
    }

    static func png(_ image: Image) throws(RenderError) -> [UInt8] {
        try VipsCall("pngsave_buffer", ["in": .image(image), "strip": true]).bytes()
    }

    static func recipe(_ steps: any VariantOperation...) -> Recipe {
        var recipe = Recipe()
        recipe.steps = steps
        return recipe
    }

    static func job(
        _ bytes: [UInt8], _ format: ImageFormat, _ width: Int, _ height: Int, _ recipe: Recipe,
        _ output: ResolvedOutput = ResolvedOutput(format: .png, isLossless: true), quality: RenderQuality = .fast
    ) -> RenderJob {
        RenderJob(
            original: EncodedBytes(bytes),
            header: ImageHeader(format: format, encodedWidth: width, encodedHeight: height),
            recipe: recipe, output: output, quality: quality, limits: .patient)
    }

    /// Decodes every format, as a caller who trusts the pictures may have it.
    static let renderer = InProcessRenderer(maxConcurrentRenders: 2, formats: Set(ImageFormat.decodable))
}

extension Image {
    /// The output of a saver of any format for this image.
    func saved(
        by nickname: String, _ arguments: KeyValuePairs<String, VipsArgument>
    ) throws(RenderError) -> [UInt8] {
        try VipsCall(nickname, arguments).bytes()
    }
}

extension RenderLimits {
    /// The defaults, with deadlines that a busy machine keeps too.
    static var patient: RenderLimits {
        var limits = RenderLimits()
        limits.timeout = .seconds(300)
        limits.encodeTimeout = .seconds(300)
        return limits
    }
}

extension KeptBlobs {
    /// EXIF that has no sizes in it, as an upright variant keeps it.
    static func upright(_ exif: [UInt8]) -> [UInt8] {
        Self.exif(exif, of: PixelSize(width: 1, height: 1), isUpright: true) ?? []
    }
}
