/// An image container format, such as `.jpeg` or `.webp`. Use it to restrict which formats are decoded
/// (`RenderLimits.formats`) or negotiated (`ImageRequest.negotiated`).
///
/// ```swift
/// let pipeline = try ImagePipeline()
/// var request = ImageRequest(.url("https://example.org/photo.jpg"), recipe: .thumbnail(300).auto())
/// request.negotiated = [.avif, .webp]
/// let image = try await pipeline.respond(to: request)
/// print(image.format.mediaType, image.format.fileExtension)
/// ```
///
/// The format of a picture is identified by its magic bytes, never by a file name or a media type.
public struct ImageFormat: RawRepresentable, Sendable, Hashable, CaseIterable, CustomStringConvertible {
    /// The name in recipes, settings and messages, such as `jpeg`.
    public let rawValue: String
    /// The name in prose, such as `JPEG`.
    let title: String
    /// The registered media type, such as `image/jpeg`.
    public let mediaType: String
    /// All file extensions of the format, in lowercase and without a dot. The usual extension comes first.
    package let fileExtensions: [String]
    /// The kind of alpha that the format can store.
    let alpha: Alpha
    /// Whether animations in this format are decoded and encoded.
    let holdsFrames: Bool
    /// Whether the format can store an ICC profile. If it cannot, pictures are converted to sRGB before encoding.
    package let holdsProfile: Bool

    /// The kind of alpha that a picture contains or a format can store.
    enum Alpha: Comparable {
        case none
        /// Each pixel is either fully transparent or fully opaque.
        case binary
        case partial
    }

    init(
        _ name: String, _ title: String, mediaType: String? = nil, extensions: [String]? = nil,
        alpha: Alpha = .partial, holdsFrames: Bool = false, holdsProfile: Bool = true
    ) {
        rawValue = name
        self.title = title
        self.mediaType = mediaType ?? "image/" + name
        fileExtensions = extensions ?? [name]
        self.alpha = alpha
        self.holdsFrames = holdsFrames
        self.holdsProfile = holdsProfile
    }

    public static let jpeg = ImageFormat("jpeg", "JPEG", extensions: ["jpg", "jpeg", "jpe", "jfif"], alpha: .none)
    public static let png = ImageFormat("png", "PNG")
    public static let webp = ImageFormat("webp", "WebP", holdsFrames: true)
    public static let gif = ImageFormat("gif", "GIF", alpha: .binary, holdsFrames: true, holdsProfile: false)
    public static let avif = ImageFormat("avif", "AVIF")
    public static let heif = ImageFormat("heif", "HEIF", mediaType: "image/heic", extensions: ["heic", "heif"])
    public static let tiff = ImageFormat("tiff", "TIFF", extensions: ["tiff", "tif"])
    public static let jxl = ImageFormat("jxl", "JPEG XL")
    public static let bmp = ImageFormat("bmp", "BMP", extensions: ["bmp", "dib"])
    public static let ico = ImageFormat(
        "ico", "ICO", mediaType: "image/vnd.microsoft.icon", extensions: ["ico", "cur"])
    public static let svg = ImageFormat("svg", "SVG", mediaType: "image/svg+xml", holdsProfile: false)
    public static let jp2 = ImageFormat("jp2", "JPEG 2000", extensions: ["jp2", "j2k", "j2c", "jpc", "jpx", "jpf"])

    /// All formats. Formats that can be decoded come first.
    public static let allCases: [ImageFormat] =
        decodable + Catalog.outputs.map { $0.format }.filter { !decodable.contains($0) }
}

extension ImageFormat {
    /// Creates the format with the given name. Returns nil if the name is unknown.
    public init?(rawValue: String) { self.init { $0.rawValue == rawValue } }

    /// Creates the format that uses the given file extension, in lowercase and without a dot. Returns nil if no format
    /// uses the extension.
    public init?(fileExtension: String) { self.init { $0.fileExtensions.contains(fileExtension) } }

    private init?(where matches: (ImageFormat) -> Bool) {
        guard let format = Self.allCases.first(where: matches) else { return nil }
        self = format
    }

    public static func == (first: ImageFormat, second: ImageFormat) -> Bool { first.rawValue == second.rawValue }
    public func hash(into hasher: inout Hasher) { hasher.combine(rawValue) }
    public var description: String { rawValue }

    /// The usual file extension without a dot, such as `jpg` for JPEG.
    public var fileExtension: String { fileExtensions[0] }

    /// Whether the format can store alpha. GIF stores only fully transparent and fully opaque pixels.
    package var holdsAlpha: Bool { alpha != .none }

    /// The decoder for this format, or nil if the format cannot be decoded.
    var decoder: (any OriginalDecoder.Type)? { Catalog.decoders.first { $0.format == self } }

    /// The encoder for this format, or nil if the format cannot be encoded.
    var encoder: (any OutputEncoder.Type)? { Catalog.outputs.first { $0.format == self } }

    /// The formats that can be decoded.
    public static let decodable: [ImageFormat] = Catalog.decoders.map { $0.format }

    /// The formats that are decoded by default: all except JPEG XL, SVG and JPEG 2000.
    public static let decodedByDefault: [ImageFormat] =
        Catalog.decoders.filter { $0.isOnByDefault }.map { $0.format }

    /// The formats that are decoded only in render workers, unless the caller lists them explicitly.
    public static let decodedInWorkersOnly: Set<ImageFormat> =
        Set(Catalog.decoders.filter { $0.isForWorkersOnly }.map { $0.format })
}
