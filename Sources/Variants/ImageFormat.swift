/// An image container format, identified by magic bytes (never by a name or a media type).
///
/// A format is declared once: here, or beside its decoder or encoder in their file. `Catalogue` says which are read and
/// which are written.
public struct ImageFormat: RawRepresentable, Sendable, Hashable, CaseIterable, CustomStringConvertible {
    /// The name in recipes, settings and messages, for example `jpeg`.
    public let rawValue: String
    /// The name in a sentence, for example `JPEG`.
    let title: String
    /// The registered media type, for example `image/jpeg`.
    public let mediaType: String
    /// All file extensions in use for the format, without a dot and in lower case, the usual one first.
    package let fileExtensions: [String]
    /// How much of an alpha band the format can store.
    let alpha: Alpha
    /// Whether animations are read and written in this format.
    let holdsFrames: Bool
    /// Whether the format can store an ICC profile; pictures written to one that cannot are converted to sRGB.
    package let holdsProfile: Bool

    /// How much of an alpha band a picture has, or a format can store.
    enum Alpha: Comparable {
        case none
        /// Pixels are fully transparent or fully opaque.
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

    /// Every format, those that are read first.
    public static let allCases: [ImageFormat] =
        decodable + Catalogue.outputs.map { $0.format }.filter { !decodable.contains($0) }
}

extension ImageFormat {
    /// The format of this name; nil if there is none.
    public init?(rawValue: String) { self.init { $0.rawValue == rawValue } }

    /// The format that uses this file extension, given without its dot and in lower case; nil if none does.
    public init?(fileExtension: String) { self.init { $0.fileExtensions.contains(fileExtension) } }

    private init?(where matches: (ImageFormat) -> Bool) {
        guard let format = Self.allCases.first(where: matches) else { return nil }
        self = format
    }

    public static func == (first: ImageFormat, second: ImageFormat) -> Bool { first.rawValue == second.rawValue }
    public func hash(into hasher: inout Hasher) { hasher.combine(rawValue) }
    public var description: String { rawValue }

    /// The usual file extension without a dot; `jpg` for JPEG.
    public var fileExtension: String { fileExtensions[0] }

    /// Whether the format can store an alpha band (GIF: only fully transparent or fully opaque).
    package var holdsAlpha: Bool { alpha != .none }

    /// Reads originals of this format; nil if they are not read.
    var decoder: (any OriginalDecoder.Type)? { Catalogue.decoders.first { $0.format == self } }

    /// Writes this format; nil if it is only read.
    var encoder: (any OutputEncoder.Type)? { Catalogue.outputs.first { $0.format == self } }

    /// The formats whose originals can be decoded.
    public static let decodable: [ImageFormat] = Catalogue.decoders.map { $0.format }

    /// The formats decoded by default: all but JPEG XL and SVG.
    public static let decodedByDefault: [ImageFormat] =
        Catalogue.decoders.filter { $0.isOnByDefault }.map { $0.format }

    /// The formats decoded in render workers only, unless a caller names them.
    public static let decodedInWorkersOnly: Set<ImageFormat> =
        Set(Catalogue.decoders.filter { $0.isForWorkersOnly }.map { $0.format })
}
