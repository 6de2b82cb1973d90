public import PipelineSupport

/// Describes an original without decoding its pixels: format, size, pages and orientation.
///
/// ```swift
/// func size(of original: [UInt8]) throws -> String {
///     let header = try ImageHeader.probe(original)
///     return "\(header.format), \(header.width) × \(header.height)"
/// }
/// ```
///
/// Headers are read by our own parsers, never by libvips.
public struct ImageHeader: Sendable, Hashable {
    /// The container format.
    public var format: ImageFormat
    /// The stored width in pixels, before the orientation is applied. At least 1.
    public var encodedWidth: Int
    /// The stored height in pixels, before the orientation is applied. At least 1.
    public var encodedHeight: Int
    /// The number of frames of an animation or pages of a document. At least 1.
    public var pages: Int
    /// Whether the file contains an alpha channel or a transparent color (PNG `tRNS`, GIF transparency).
    public var hasAlpha: Bool
    /// The EXIF orientation, 1…8. 1 if it is missing or invalid.
    public var orientation: Int
    /// The number of SOS markers of a JPEG. 1 for other formats.
    public var scans: Int
    /// The size of the embedded ICC profile in bytes, or 0 if there is no profile.
    public var profileBytes: Int
    /// Whether the file can contain at most 256 colors: a GIF, or a PNG with a palette or fewer than 8 bits per sample.
    public var hasFewColors: Bool
    /// The number of bytes that a decoder keeps for the complete picture even if it shrinks, such as the coefficients
    /// of a progressive JPEG, the rows of an interlaced PNG or the canvas of a GIF. This is 0 if it decodes row by row.
    public var heldBytes: Int
    /// The number of smaller versions in the file. Each has half the edges of the previous version, so a decoder can
    /// shrink by 2, 4, 8 and so on without reading the complete picture.
    public var levels = 0
    /// Whether a decoder can read a part of the picture without the rest, as in a TIFF with tiles.
    public var readsWindows = false
    /// The headers of the second and later pages of a TIFF, which `page:N` selects. Smaller versions of a page are not
    /// included.
    package var furtherPages: [ImageHeader] = []
    /// The reason why JPEG XL cannot store the coefficients of this JPEG, or nil if no reason is known.
    package var transcodingObstacle: TranscodingObstacle?

    package init(
        format: ImageFormat, encodedWidth: Int, encodedHeight: Int, pages: Int = 1, hasAlpha: Bool = false,
        orientation: Int = 1, scans: Int = 1, profileBytes: Int = 0, hasFewColors: Bool = false, heldBytes: Int = 0
    ) {
        self.format = format
        self.encodedWidth = encodedWidth
        self.encodedHeight = encodedHeight
        self.pages = pages
        self.hasAlpha = hasAlpha
        self.orientation = orientation
        self.scans = scans
        self.profileBytes = profileBytes
        self.hasFewColors = hasFewColors
        self.heldBytes = heldBytes
    }

    /// The maximum number of a page that `page:N` can select.
    package static let pageLimit = 500

    /// Returns the header of a page, starting at 1. Returns nil if the document has fewer pages.
    package func page(_ number: Int) -> ImageHeader? {
        number == 1 ? self : furtherPages.indices.contains(number - 2) ? furtherPages[number - 2] : nil
    }

    /// The width in pixels after the orientation has been applied.
    public var width: Int { orientation >= 5 ? encodedHeight : encodedWidth }
    /// The height in pixels after the orientation has been applied.
    public var height: Int { orientation >= 5 ? encodedWidth : encodedHeight }

    /// The stored size, as shown in messages.
    var sizeText: String { "\(encodedWidth) × \(encodedHeight) pixels" }

    /// A description of the page that variants show, or nil if there is only one page, or if variants can show all
    /// pages.
    package var shownPage: String? {
        guard pages > 1, !format.holdsFrames else { return nil }
        return switch format {
        case .ico: "the largest picture"
        case .png: "the first picture of the animation"
        default: "the first page"
        }
    }
}

/// Specifies how resizing trades CPU time for fidelity (`RenderingConfiguration.quality`). A JPEG or WebP decoder can
/// shrink while decoding, and the quality determines how much of the reduction is left to the more accurate resampler.
public enum RenderQuality: String, Sendable, Hashable, CaseIterable {
    /// Leaves a factor of at least 1.5 to the resampler. Uses the least CPU time.
    case fast
    /// Leaves a factor of at least 4 to the resampler. This is the default.
    case balanced
    /// Decodes at full size.
    case best
}

/// Specifies which color values resizing averages when it mixes pixels: linear light, or the stored values
/// (`RenderingConfiguration.light`). A decoder that shrinks always averages stored values.
public enum RenderLight: String, Sendable, Hashable, CaseIterable {
    /// Shrinks mostly in linear light, except for drawings, screenshots and text, which are shrunk mostly in gamma
    /// space. Enlarges in gamma space. This is the default.
    case auto
    /// Linear light, using the sRGB curve. Fine patterns keep their brightness, but thin dark lines become pale.
    case linear
    /// The stored values, which browsers use too. Dark lines and colored text on white keep their weight.
    case gamma
}

/// Specifies how much CPU time encoders spend to save bytes if the recipe has no `effort=`
/// (`RenderingConfiguration.effort`).
public enum RenderEffort: String, Sendable, Hashable, CaseIterable {
    /// An effort that is suitable while a client is waiting. This is the default.
    case quick
    /// An effort for variants that are rendered once and sent often. Saves bytes but takes several times the CPU time.
    case thorough
}

/// An encoder's default efforts, 0…9, for recipes without `effort=`.
struct DefaultEfforts: Sendable {
    var quick: Int
    var thorough: Int
}

/// The resolution of chroma relative to luma in a lossy file.
package enum ChromaResolution: String, Sendable, Hashable, CaseIterable {
    case auto, full, half
}

/// Specifies the metadata that an output keeps. All other metadata is removed.
///
/// ```swift
/// let recipe = Recipe.thumbnail(1600).jpeg(85, .keep([.icc, .exif]))
/// print(recipe)  // thumbnail:1600x1600,jpeg:85:keep=exif+icc
/// ```
///
/// Defaults to `copyright`, which every other kind includes in a recipe. An empty set keeps nothing.
public struct KeptMetadata: OptionSet, Sendable, Hashable {
    /// The bit mask, with one bit per kind of metadata.
    public let rawValue: Int
    /// Creates a set from a bit mask.
    public init(rawValue: Int) { self.rawValue = rawValue }
    /// EXIF data that still applies to the variant. The thumbnail and the position are removed, and the orientation is
    /// reset.
    public static let exif = KeptMetadata(rawValue: 1)
    /// The ICC profile.
    public static let icc = KeptMetadata(rawValue: 2)
    /// XMP data that still applies to the variant. Positions are removed.
    public static let xmp = KeptMetadata(rawValue: 4)
    /// The credits of a picture, at most 8,000 bytes: artist, copyright, credit line, license, and whether the picture
    /// was generated. They are stored as EXIF, IPTC and XMP. All output formats can store at least the XMP.
    public static let copyright = KeptMetadata(rawValue: 8)
    /// IPTC data (IIM) that still applies to the variant, in JPEG and TIFF files. Previews and positions are removed.
    public static let iptc = KeptMetadata(rawValue: 32)
    /// The position in the EXIF, IPTC and XMP data that is kept. This is where the picture was taken and the location that it
    /// shows.
    public static let position = KeptMetadata(rawValue: 16)
}

/// An output with its format decided and every default filled in. It is part of the variant key.
package struct ResolvedOutput: Sendable, Hashable {
    package var format: ImageFormat
    /// The quality, 1…100. Lossless outputs ignore it.
    package var quality: Int
    /// Whether encoding preserves every pixel.
    package var isLossless: Bool
    /// Whether the encoder may choose a lossless encoding.
    package var mayBeLossless: Bool
    /// The maximum size in bytes, or nil if there is no limit.
    package var maxBytes: Int?
    /// The SSIMULACRA2 score that the file must reach, 10…95, or nil if the quality determines the file.
    package var score: Int?
    /// Whether to write a progressive JPEG or an interlaced PNG.
    package var isProgressive: Bool
    package var chroma: ChromaResolution
    /// The effort, 0…9, or 0 if the encoder has no effort setting.
    package var effort: Int
    /// Whether the recipe specifies the effort. An effort that the recipe does not specify is not part of the variant's
    /// key, so a server can serve variants that a batch encoded with a higher effort.
    package var isEffortGiven: Bool
    package var keep: KeptMetadata
    /// Whether to store the coefficients of a JPEG original. If that fails, the pixels are encoded with these options.
    package var transcodes = false
    /// Whether the coefficients are stored only if the file is not larger than the encoded pixels.
    package var transcodesIfSmaller = false
    /// The formats that a second pass may choose instead of `format`, because the client accepts them.
    package var alternatives: [ImageFormat] = []
    /// Whether to encode again with more effort, and to return the result if it is at least 5 % smaller than the first
    /// version (`RenderJob.firstVersionKey`). This is not part of the variant's key.
    package var isSecondPass = false

    /// The formats that a second pass tries. Empty if the recipe demands a particular file.
    package var secondFormats: [ImageFormat] {
        if isLossless || maxBytes != nil || score != nil || isEffortGiven || transcodes { return [] }
        return ([format] + alternatives).filter { $0.encoder?.secondEffort != nil }
    }

    package init(
        format: ImageFormat, quality: Int = 80, isLossless: Bool = false, mayBeLossless: Bool = false,
        maxBytes: Int? = nil, isProgressive: Bool = false, chroma: ChromaResolution = .auto, effort: Int? = nil,
        keep: KeptMetadata = []
    ) {
        self.format = format
        self.quality = quality
        self.isLossless = isLossless
        self.mayBeLossless = mayBeLossless
        self.maxBytes = maxBytes
        self.isProgressive = isProgressive
        self.chroma = chroma
        self.effort = effort ?? format.encoder?.efforts?.quick ?? 0
        isEffortGiven = effort != nil
        self.keep = keep
    }
}

/// Limits the work and memory of a render (`RenderingConfiguration.limits`). The limits are checked before and during
/// rendering. Each error contains the name of the limit, its value and the value that was found.
///
/// ```swift
/// var configuration = PipelineConfiguration()
/// configuration.rendering.limits.pixels = 50_000_000
/// configuration.rendering.limits.timeout = .seconds(5)
/// configuration.rendering.limits.formats = [.jpeg, .png, .webp]
/// ```
public struct RenderLimits: Sendable, Hashable {
    /// The maximum number of pixels, summed over all frames that the recipe decodes. If the file has tiles or smaller
    /// versions (`ImageHeader.readsWindows`, `levels`), only the decoded part counts. Defaults to 100 million. In a
    /// worker, `WorkerConfiguration.memory` also limits the memory of a render.
    public var pixels = 100_000_000
    /// The maximum size of the original in bytes. Defaults to 100 MB.
    public var bytes = 100_000_000
    /// The maximum number of frames. Defaults to 256.
    public var frames = 256
    /// The maximum number of scans of a JPEG. Defaults to 64. Real encoders write 3 to 12 scans.
    public var scans = 64
    /// The maximum length of each edge of the output in pixels. Defaults to 8192.
    public var outputEdge = 8192
    /// The maximum size of an ICC profile in bytes. Defaults to 4 MiB.
    public var profileBytes = 4 << 20
    /// The formats of originals, masks and overlays that are decoded. Defaults to `ImageFormat.decodedByDefault`.
    public var formats = Set(ImageFormat.decodedByDefault)
    /// How SVG originals are handled. Defaults to `pass`.
    public var svg = SVGHandling.pass
    /// Whether to render the available part of a JPEG or PNG with missing pixels, such as a truncated upload. Such a
    /// variant is marked as damaged and never stored. Damaged masks and overlays are always rejected. Defaults to
    /// false, in which case a damaged original is undecodable.
    public var acceptsDamaged = false
    /// The maximum wall time for opening, decoding and the steps. Defaults to 10 seconds.
    public var timeout = Duration.seconds(10)
    /// The maximum wall time for encoding. Defaults to 10 seconds.
    public var encodeTimeout = Duration.seconds(10)

    /// Creates limits with their default values.
    public init() {}

    /// The value of `timeout` in seconds, at most 10⁹.
    var seconds: Double { min(timeout.inSeconds, 1e9) }
    /// The value of `encodeTimeout` in seconds, at most 10⁹.
    var encodeSeconds: Double { min(encodeTimeout.inSeconds, 1e9) }
}

/// Describes one render without a pipeline: the encoded original, the recipe to apply to it, and the limits. Pass it to
/// a `WorkerPool` or an `InProcessRenderer`.
///
/// ```swift
/// func thumbnail(of original: [UInt8]) async throws -> RenderedVariant {
///     let header = try ImageHeader.probe(original)
///     let job = RenderJob(original: original, header: header, recipe: .thumbnail(300).webp())
///     return try await InProcessRenderer().render(job)
/// }
/// ```
public struct RenderJob: Sendable {
    /// The encoded original. The renderer reads it when the render begins.
    package var original: EncodedBytes
    /// The original's header, as returned by `ImageHeader.probe`.
    public var header: ImageHeader
    /// The recipe to apply.
    public var recipe: Recipe
    package var output: ResolvedOutput
    /// How resizing trades CPU time for fidelity.
    public var quality: RenderQuality
    /// The light that resizing uses for steps without a `light` argument.
    public var light = RenderLight.auto
    /// The limits that apply to the render.
    public var limits: RenderLimits
    /// The encoded masks and overlays that the recipe uses. A mask is stored under its name. An overlay is stored under
    /// `Recipe.overlayKey(_:)`, because a mask and an overlay with the same name can be different pictures.
    public var masks: [String: [UInt8]]
    /// The key in `masks` of the first version, which a second pass replaces. No mask or overlay can have this name.
    package static let firstVersionKey = "first version"
    /// The digest of the original's bytes. Waiting renders with the same digest share a decode if possible. If nil,
    /// which is the default, the render does not share a decode.
    package var digest: String?
    /// The shared decode, which is decided when the render is dequeued together with others, or nil if the render
    /// decodes alone.
    var shared: SharedDecode?

    /// Creates a render of bytes in memory. For an `auto` output, `negotiated` contains the formats that the client
    /// accepts, best first. The original's format is the last choice.
    public init(
        original: [UInt8], header: ImageHeader, recipe: Recipe, negotiated: [ImageFormat] = [],
        quality: RenderQuality = .balanced, limits: RenderLimits = RenderLimits(), masks: [String: [UInt8]] = [:]
    ) {
        self.init(
            original: EncodedBytes(original), header: header, recipe: recipe,
            output: recipe.resolvedOutput(
                for: header.page(recipe.page) ?? header, negotiated: negotiated, svg: limits.svg),
            quality: quality, limits: limits,
            masks: masks)
    }

    package init(
        original: EncodedBytes, header: ImageHeader, recipe: Recipe, output: ResolvedOutput,
        quality: RenderQuality = .balanced, limits: RenderLimits = RenderLimits(), masks: [String: [UInt8]] = [:]
    ) {
        self.original = original
        // The caller may have selected the page already.
        self.header = header.page(recipe.page) ?? header
        self.recipe = header.format.decoder?.isDrawing == true ? recipe.enlarging : recipe
        self.output = output
        self.quality = quality
        self.limits = limits
        self.masks = masks
    }
}

/// Contains the encoded picture that `WorkerPool.render(_:)` or `InProcessRenderer.render(_:)` returned, and its
/// properties.
public struct RenderedVariant: Sendable {
    /// The encoded picture.
    public var bytes: [UInt8]
    /// The container format.
    public var format: ImageFormat
    /// The width in pixels.
    public var width: Int
    /// The height in pixels.
    public var height: Int
    /// Whether the output carries alpha.
    public var hasAlpha: Bool
    /// Whether pixels are missing because the original is damaged.
    public var isDamaged = false
    /// The reason why the pixels were encoded although `ResolvedOutput.transcodes` was set. Otherwise nil.
    package var reencodingReason: String?
    /// The wall times of decoding, operations and encoding. libvips evaluates lazily, so decoding covers only opening
    /// and any eager decoding. Lazy work is attributed to the phase that reads the pixels.
    public var timings: Timings
    /// The thread CPU time of the complete render, which is the cost of rendering the variant again.
    public var cpuTime: Duration
    /// The libraries that rendered the variant, or nil if the renderer does not report them.
    package var libraries: RenderLibraries?

    package init(
        bytes: [UInt8], format: ImageFormat, width: Int, height: Int, hasAlpha: Bool,
        timings: Timings, cpuTime: Duration
    ) {
        self.bytes = bytes
        self.format = format
        self.width = width
        self.height = height
        self.hasAlpha = hasAlpha
        self.timings = timings
        self.cpuTime = cpuTime
    }
}

/// Contains decoded pixels for display, which `ImagePipeline.pixels(for:)` returns.
///
/// ```swift
/// let pipeline = try ImagePipeline()
/// let request = ImageRequest(.file("photo.jpg"), recipe: .thumbnail(300, 300, .fill))
/// let picture = try await pipeline.pixels(for: request)
/// let rounded = picture.roundedMask(radius: 24)
/// print(rounded.width, rounded.height, rounded.bytesPerRow, rounded.pixels.count)
/// ```
///
/// Pixels are sRGB with 8 bits per sample and four bands: red, green, blue and alpha, not premultiplied. Rows have no
/// padding, so `pixels.count` is `width × height × 4`.
public struct PixelBuffer: Sendable, Hashable {
    /// The width in pixels.
    public var width: Int
    /// The height in pixels.
    public var height: Int
    /// The pixels, row by row from the top, with four bytes per pixel.
    public var pixels: [UInt8]
    /// The number of bytes per row.
    public var bytesPerRow: Int { width * 4 }

    /// Creates a picture from pixels, row by row from the top. `pixels.count` must be `width × height × 4`.
    public init(width: Int, height: Int, pixels: [UInt8]) {
        precondition(pixels.count == width * height * 4)
        self.width = width
        self.height = height
        self.pixels = pixels
    }
}

/// Describes why a render failed. `WorkerPool` and `InProcessRenderer` throw it. `ImagePipeline` converts it to a
/// `PipelineError`.
public struct RenderError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kind of failure. Codes are stable across versions, and later versions may add codes.
    public struct Code: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
        /// The name of the code, such as `notAnImage`.
        public let rawValue: String
        public init(rawValue: String) { self.rawValue = rawValue }
        public var description: String { rawValue }

        /// The magic bytes match no known image format, or the original is empty.
        public static let notAnImage = Code(rawValue: "notAnImage")
        /// The format is known but not enabled or not built in.
        public static let unsupportedFormat = Code(rawValue: "unsupportedFormat")
        /// The original or the output exceeds a limit.
        public static let overLimit = Code(rawValue: "overLimit")
        /// The decoder rejected the bytes.
        public static let undecodable = Code(rawValue: "undecodable")
        /// The installed libvips cannot encode the output format, or the format is only decoded.
        public static let notAvailable = Code(rawValue: "notAvailable")
        /// A step cannot be applied to this picture, such as a crop that leaves no pixels.
        public static let notApplicable = Code(rawValue: "notApplicable")
        /// No quality produces a file within the byte limit.
        public static let overBudget = Code(rawValue: "overBudget")
        /// A named mask or overlay is missing or cannot be decoded.
        public static let maskUnavailable = Code(rawValue: "maskUnavailable")
        public static let encodingFailed = Code(rawValue: "encodingFailed")
        public static let cancelled = Code(rawValue: "cancelled")
        /// A phase exceeded `limits.timeout` or `limits.encodeTimeout`, or did so recently and will not be retried for
        /// now.
        public static let deadline = Code(rawValue: "deadline")
        /// libvips is missing or too old. The message names the package to install.
        public static let libraryUnavailable = Code(rawValue: "libraryUnavailable")
        /// The worker process was killed by a signal or exited while rendering.
        public static let crashed = Code(rawValue: "crashed")
        /// The worker process sent an invalid reply and was killed.
        public static let workerProtocol = Code(rawValue: "workerProtocol")
        /// Two worker processes in a row were killed from outside, for example by the kernel's out-of-memory killer.
        public static let workerKilled = Code(rawValue: "workerKilled")
        /// The original, or this variant of it, recently crashed a worker and will not be retried for now.
        public static let quarantined = Code(rawValue: "quarantined")
        /// Worker processes cannot be started.
        public static let workerUnavailable = Code(rawValue: "workerUnavailable")

        /// All codes.
        package static let all: [Code] = [
            .notAnImage, .unsupportedFormat, .overLimit, .undecodable, .notAvailable, .notApplicable, .overBudget,
            .maskUnavailable, .encodingFailed, .cancelled, .deadline, .libraryUnavailable, .crashed, .workerProtocol,
            .workerKilled, .quarantined, .workerUnavailable,
        ]
    }

    /// The kind of failure.
    public var code: Code
    /// A description of the failure and how to fix it.
    public var message: String
    public var description: String { message }

    /// Creates an error with a message that says what failed and how to fix it.
    public init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }
}

/// A renderer, either in this process or in worker processes.
package protocol Rendering: Sendable {
    /// Renders a job outside the cooperative thread pool. Cancelling the calling task stops the render.
    func render(_ job: RenderJob) async throws(RenderError) -> RenderedVariant
    /// Applies the recipe's steps and returns sRGB pixels with alpha for display. Ignores `job.output`.
    func pixels(_ job: RenderJob) async throws(RenderError) -> PixelBuffer
    /// The libraries that the renderer uses, or nil if they are not loaded yet or the renderer does not report them.
    var libraries: RenderLibraries? { get }
    /// Loads the libraries if necessary. Returns nil if they cannot be loaded now.
    func loadLibraries() async -> RenderLibraries?
    /// Stops the renderer after all submitted renders have finished. Nothing can be rendered afterwards.
    func shutdown() async
}

extension Rendering {
    package var libraries: RenderLibraries? { nil }
    package func loadLibraries() async -> RenderLibraries? { libraries }
    package func shutdown() async {}
}
