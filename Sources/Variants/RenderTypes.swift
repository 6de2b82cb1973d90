public import PipelineSupport

/// What our own parsers (never libvips) read from an original without decoding pixels.
public struct ImageHeader: Sendable, Hashable {
    /// The container format.
    public var format: ImageFormat
    /// Stored pixels, before EXIF orientation; ≥ 1.
    public var width: Int
    /// Stored pixels, like `width`.
    public var height: Int
    /// Frames of an animation or pages of a document; ≥ 1.
    public var pages: Int
    /// Whether the file carries an alpha channel or a transparent colour (tRNS, GIF transparency).
    public var hasAlpha: Bool
    /// EXIF orientation, 1…8; 1 when absent or invalid.
    public var orientation: Int
    /// SOS markers of a JPEG; 1 for other formats.
    public var scans: Int
    /// Bytes of the embedded ICC profile; 0 if there is none.
    public var profileBytes: Int
    /// Whether the file can hold no more than 256 colours: a GIF, a PNG with a palette or less than 8 bits a sample.
    public var hasFewColours: Bool
    /// Bytes that a decoder keeps for the whole picture, however much it shrinks: the coefficients of a progressive JPEG,
    /// the rows of an interlaced PNG, the canvas of a GIF; 0 if it decodes row by row.
    public var heldBytes: Int

    package init(
        format: ImageFormat, width: Int, height: Int, pages: Int = 1, hasAlpha: Bool = false, orientation: Int = 1,
        scans: Int = 1, profileBytes: Int = 0, hasFewColours: Bool = false, heldBytes: Int = 0
    ) {
        self.format = format
        self.width = width
        self.height = height
        self.pages = pages
        self.hasAlpha = hasAlpha
        self.orientation = orientation
        self.scans = scans
        self.profileBytes = profileBytes
        self.hasFewColours = hasFewColours
        self.heldBytes = heldBytes
    }

    /// The width of the picture as it is meant to be seen, turned by its orientation.
    public var uprightWidth: Int { orientation >= 5 ? height : width }
    /// The height of the picture as it is meant to be seen.
    public var uprightHeight: Int { orientation >= 5 ? width : height }

    /// Describes which of several pages variants show; nil if there is one, or they may show all.
    package var shownPage: String? {
        guard pages > 1, !format.holdsFrames else { return nil }
        return switch format {
        case .ico: "the largest picture"
        case .png: "the first picture of the animation"
        default: "the first page"
        }
    }
}

/// How resizing trades CPU for fidelity: how much of the reduction is left to the resampler if a JPEG or WebP decoder
/// shrinks first (`RenderPlan`).
public enum RenderQuality: String, Sendable, Hashable, CaseIterable {
    /// Leaves 1.5×, for the least CPU.
    case fast
    /// Leaves 4×. The default.
    case balanced
    /// Decodes in full.
    case best
}

/// What is added up where resizing mixes pixels: light, or the stored values. A decoder that shrinks always mixes stored
/// values.
public enum RenderLight: String, Sendable, Hashable, CaseIterable {
    /// Shrinks mostly in linear light, but drawings, screenshots and text mostly in gamma (`RenderJob.isDrawn`), and
    /// enlarges in gamma. The default.
    case auto
    /// Linear light, by the sRGB curve: fine patterns keep their brightness. Thin dark lines turn pale.
    case linear
    /// The stored values, as browsers scale: dark lines and coloured text on white keep their weight.
    case gamma
}

/// What becomes of a JPEG or PNG of which pixels are missing, such as an upload that was cut off.
public enum DamagedOriginals: String, Sendable, Hashable, CaseIterable {
    /// It is undecodable. The default.
    case refuse
    /// What is there is rendered. Such a variant is marked as damaged and never stored.
    case accept
}

/// How hard encoders try to save bytes if a recipe does not say (`effort=`).
public enum RenderEffort: String, Sendable, Hashable, CaseIterable {
    /// What a request can wait for. The default.
    case quick
    /// For what is made once and sent often: fewer bytes for several times the CPU.
    case thorough
}

/// An encoder's efforts, 0…9, for recipes that give none.
struct DefaultEfforts: Sendable {
    var quick: Int
    var thorough: Int
}

/// The resolution of chroma in a lossy file, in relation to luma's.
public enum ChromaResolution: String, Sendable, Hashable, CaseIterable {
    case auto, full, half
}

/// Metadata kept in an output; everything else is stripped.
public struct KeptMetadata: OptionSet, Sendable, Hashable {
    /// One bit per kind of metadata.
    public let rawValue: Int
    /// Metadata by its bits.
    public init(rawValue: Int) { self.rawValue = rawValue }
    /// EXIF, as far as it describes the variant: without the thumbnail, and upright. Without the position, too.
    public static let exif = KeptMetadata(rawValue: 1)
    /// The ICC profile.
    public static let icc = KeptMetadata(rawValue: 2)
    /// XMP, as far as it describes the variant, without positions.
    public static let xmp = KeptMetadata(rawValue: 4)
    /// Copyright, artist and credit line alone, as EXIF and XMP; all formats hold the latter.
    public static let copyright = KeptMetadata(rawValue: 8)
    /// The position within EXIF and XMP that are kept: where the picture was taken, and what it shows.
    public static let position = KeptMetadata(rawValue: 16)
}

/// An output with its format decided and every default written out; part of the variant key.
package struct ResolvedOutput: Sendable, Hashable {
    package var format: ImageFormat
    /// 1…100; ignored by lossless outputs.
    package var quality: Int
    /// Whether every pixel survives encoding.
    package var isLossless: Bool
    /// Whether the encoder may choose to be lossless.
    package var mayBeLossless: Bool
    /// Largest size in bytes; nil without a budget.
    package var maxBytes: Int?
    /// Progressive JPEG or interlaced PNG.
    package var isProgressive: Bool
    package var chroma: ChromaResolution
    /// 0…9; 0 if the encoder has none to choose.
    package var effort: Int
    /// Whether the recipe gives the effort. If it does not, the effort is not part of the variant's key: what a batch
    /// made with more of it answers a server's request.
    package var isEffortGiven: Bool
    package var keep: KeptMetadata

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

/// Limits checked before and while rendering; every error names the limit, its value and the value found.
public struct RenderLimits: Sendable, Hashable {
    /// Pixels over all frames the recipe decodes; default 100 million. What a render needs of a worker's memory is
    /// limited by `WorkerConfiguration.memory`.
    public var pixels = 100_000_000
    /// Bytes of the original; default 100 MB.
    public var bytes = 100_000_000
    /// Frames; default 256.
    public var frames = 256
    /// Scans of a JPEG; default 64 (real encoders write 3–12).
    public var scans = 64
    /// Each edge of the output; default 8192.
    public var outputEdge = 8192
    /// Bytes of an ICC profile; default 4 MiB.
    public var profileBytes = 4 << 20
    /// Formats of originals, masks and overlays that are decoded; default
    /// `ImageFormat.decodedByDefault`.
    public var formats = Set(ImageFormat.decodedByDefault)
    /// What becomes of an original that lacks pixels; masks and overlays are refused. Default `refuse`.
    public var damaged = DamagedOriginals.refuse
    /// Wall seconds for opening, decoding and the steps; default 10.
    public var seconds = 10.0
    /// Wall seconds for encoding; default 10.
    public var encodeSeconds = 10.0
    public init() {}
}

/// Encoded bytes, either in memory or read when a render begins, so that queued renders take no memory.
package struct EncodedBytes: Sendable {
    /// The number of bytes.
    package let count: Int
    private let read: @Sendable () -> [UInt8]?
    private let openFile: (@Sendable () -> Int32?)?

    package init(_ bytes: [UInt8]) { self.init(count: bytes.count, read: { bytes }) }

    /// Bytes that are read when they are needed.
    ///
    /// - Parameters:
    ///   - count: the number of bytes.
    ///   - read: reads them, or returns nil if that fails; called on the rendering thread, which it may block.
    ///   - open: if they are a whole file that is never modified, opens it again, for reading only; the caller closes
    ///     the descriptor. A worker process then reads the file itself.
    package init(
        count: Int, read: @escaping @Sendable () -> [UInt8]?, open: (@Sendable () -> Int32?)? = nil
    ) {
        self.count = count
        self.read = read
        openFile = open
    }

    /// A read-only descriptor of the file that holds exactly these bytes; nil if there is no such file.
    func openedFile() -> Int32? { openFile?() }

    /// The bytes; may block. Throws `undecodable` if they cannot be read.
    package func bytes() throws(RenderError) -> [UInt8] {
        if let bytes = read(), bytes.count == count { return bytes }
        throw RenderError(
            .undecodable, "the original's \(count) bytes cannot be read back from disk; check the disk for errors")
    }
}

/// One render: encoded bytes and a recipe in, encoded bytes out.
public struct RenderJob: Sendable {
    /// The encoded original; a renderer reads it when the render's turn comes.
    package var original: EncodedBytes
    /// The original's header, from `ImageHeader.probe`.
    public var header: ImageHeader
    /// The recipe to apply.
    public var recipe: Recipe
    package var output: ResolvedOutput
    /// How resizing trades CPU for fidelity.
    public var quality: RenderQuality
    /// What is added up where resizing mixes pixels, unless a step says otherwise.
    public var light = RenderLight.auto
    /// The limits the render must stay within.
    public var limits: RenderLimits
    /// Encoded bytes of the named masks and overlays that the recipe uses: masks under their names, overlays under
    /// `Recipe.overlayKey(_:)`, because a mask of the same name may be another picture.
    public var masks: [String: [UInt8]]
    /// The digest of the original's bytes. Renders of one digest that wait at the same time share a decode if they can;
    /// nil, the default, for a decode of its own.
    package var digest: String?
    /// The decode that it shares, decided when it is taken up together with the others; nil if it is rendered alone.
    var shared: SharedDecode?

    /// A render of bytes in memory. For an `auto` output, `negotiated` has the formats that the client accepts, best
    /// first; after them comes the original's format.
    public init(
        original: [UInt8], header: ImageHeader, recipe: Recipe, negotiated: [ImageFormat] = [],
        quality: RenderQuality = .balanced, limits: RenderLimits = RenderLimits(), masks: [String: [UInt8]] = [:]
    ) {
        self.init(
            original: EncodedBytes(original), header: header, recipe: recipe,
            output: recipe.resolvedOutput(for: header, negotiated: negotiated), quality: quality, limits: limits,
            masks: masks)
    }

    package init(
        original: EncodedBytes, header: ImageHeader, recipe: Recipe, output: ResolvedOutput,
        quality: RenderQuality = .balanced, limits: RenderLimits = RenderLimits(), masks: [String: [UInt8]] = [:]
    ) {
        self.original = original
        self.header = header
        self.recipe = header.format.decoder?.isDrawing == true ? recipe.enlarging : recipe
        self.output = output
        self.quality = quality
        self.limits = limits
        self.masks = masks
    }
}

/// What a render returns.
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
    /// Whether pixels are missing, because the original lacks them.
    public var isDamaged = false
    /// Time spent decoding, in operations, and encoding. libvips evaluates lazily, so decoding covers opening and any
    /// eager decoding; lazy work counts in the phase that pulls the pixels.
    public var milliseconds: Timings
    /// Thread CPU milliseconds of the whole render: the cost of rendering it again.
    public var cpuMilliseconds: Double
    /// The libraries that made it; nil if the renderer does not say.
    package var libraries: RenderLibraries?

    public init(
        bytes: [UInt8], format: ImageFormat, width: Int, height: Int, hasAlpha: Bool,
        milliseconds: Timings, cpuMilliseconds: Double
    ) {
        self.bytes = bytes
        self.format = format
        self.width = width
        self.height = height
        self.hasAlpha = hasAlpha
        self.milliseconds = milliseconds
        self.cpuMilliseconds = cpuMilliseconds
    }
}

/// Decoded pixels: sRGB, 8 bits, 4 bands (red, green, blue, alpha; not premultiplied), rows without padding,
/// so `pixels.count == width × height × 4`.
public struct PixelBuffer: Sendable, Hashable {
    /// The width in pixels.
    public var width: Int
    /// The height in pixels.
    public var height: Int
    /// Rows from the top, four bytes per pixel.
    public var pixels: [UInt8]
    /// Bytes of one row.
    public var bytesPerRow: Int { width * 4 }

    public init(width: Int, height: Int, pixels: [UInt8]) {
        precondition(pixels.count == width * height * 4)
        self.width = width
        self.height = height
        self.pixels = pixels
    }
}

/// Why a render failed.
public struct RenderError: Error, Sendable, Hashable, CustomStringConvertible {
    /// What went wrong, stable across versions. New codes may be added.
    public struct Code: RawRepresentable, Sendable, Hashable {
        /// The name, as in `notAnImage`.
        public let rawValue: String

        private init(_ name: String) { rawValue = name }

        /// nil for a name that is not in `all`: a worker process may send any.
        public init?(rawValue: String) {
            guard Self.all.contains(where: { $0.rawValue == rawValue }) else { return nil }
            self.init(rawValue)
        }

        /// The magic bytes match no known image format, or there are no bytes.
        public static let notAnImage = Code("notAnImage")
        /// The format is known, but not enabled or not built in.
        public static let unsupportedFormat = Code("unsupportedFormat")
        /// The original or the output exceeds a limit.
        public static let overLimit = Code("overLimit")
        /// The decoder refused the bytes.
        public static let undecodable = Code("undecodable")
        /// The installed libvips cannot write the output format, or the format is not one that is written at all.
        public static let notAvailable = Code("notAvailable")
        /// The step cannot be applied to this picture (for example a crop that leaves nothing).
        public static let notApplicable = Code("notApplicable")
        /// No quality meets the byte budget.
        public static let overBudget = Code("overBudget")
        /// A named mask or overlay is missing or cannot be decoded.
        public static let maskUnavailable = Code("maskUnavailable")
        public static let encodingFailed = Code("encodingFailed")
        public static let cancelled = Code("cancelled")
        /// A phase exceeded `limits.seconds` or `limits.encodeSeconds`, or did so recently and is not retried yet.
        public static let deadline = Code("deadline")
        /// libvips is missing or too old; the message names the package to install.
        public static let libraryUnavailable = Code("libraryUnavailable")
        /// The worker process was killed by a signal, or exited by itself, while rendering.
        public static let crashed = Code("crashed")
        /// The worker process sent an invalid answer and was killed.
        public static let workerProtocol = Code("workerProtocol")
        /// Something else killed two worker processes in a row, such as the kernel when memory runs out.
        public static let workerKilled = Code("workerKilled")
        /// The original, or this variant of it, crashed a worker recently and is not retried yet.
        public static let quarantined = Code("quarantined")
        /// Worker processes cannot be started.
        public static let workerUnavailable = Code("workerUnavailable")

        /// Every code.
        package static let all: [Code] = [
            .notAnImage, .unsupportedFormat, .overLimit, .undecodable, .notAvailable, .notApplicable, .overBudget,
            .maskUnavailable, .encodingFailed, .cancelled, .deadline, .libraryUnavailable, .crashed, .workerProtocol,
            .workerKilled, .quarantined, .workerUnavailable,
        ]
    }

    /// What went wrong.
    public var code: Code
    /// What happened, and what would help.
    public var message: String
    public var description: String { message }

    public init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }
}

/// The interface between the pipeline and its renderers, in this process or in workers.
package protocol Rendering: Sendable {
    /// Runs off the cooperative pool; cancelling the calling task stops the render.
    func render(_ job: RenderJob) async throws(RenderError) -> RenderedVariant
    /// Decodes to sRGB RGBA for display, after the recipe's steps; `job.output` is ignored.
    func pixels(_ job: RenderJob) async throws(RenderError) -> PixelBuffer
    /// The libraries it renders with; nil if they are not loaded yet, or it does not say.
    var libraries: RenderLibraries? { get }
    /// Loads the libraries if that has not happened yet. Returns nil if that is not possible now.
    func loadLibraries() async -> RenderLibraries?
    /// Stops the renderer once it has finished the renders it was given. Nothing is rendered afterwards.
    func shutdown() async
}

extension Rendering {
    package var libraries: RenderLibraries? { nil }
    package func loadLibraries() async -> RenderLibraries? { libraries }
    package func shutdown() async {}
}
