/// An image container format, identified by magic bytes (never by a name or a media type).
public enum ImageFormat: String, Sendable, Hashable, CaseIterable {
    case jpeg, png, webp, gif, avif, heif, tiff, jxl, svg

    /// The registered media type, for example `image/jpeg`.
    public var mediaType: String {
        switch self {
        case .svg: "image/svg+xml"
        case .heif: "image/heic"
        default: "image/" + rawValue
        }
    }

    /// The usual file extension without a dot; `jpg` for JPEG.
    public var fileExtension: String {
        switch self {
        case .jpeg: "jpg"
        case .heif: "heic"
        default: rawValue
        }
    }

    /// All file extensions in use for the format, in lower case, the usual one first.
    public var fileExtensions: [String] {
        switch self {
        case .jpeg: ["jpg", "jpeg", "jpe", "jfif"]
        case .heif: ["heic", "heif"]
        case .tiff: ["tiff", "tif"]
        default: [rawValue]
        }
    }

    /// The formats whose originals can be decoded.
    public static let decodable: [ImageFormat] = [.jpeg, .png, .webp, .gif, .avif, .heif, .tiff, .jxl]

    /// The formats decoded by default: all but JPEG XL, which few originals use and whose decoder does not check its
    /// allocations.
    public static let decodedByDefault = decodable.filter { $0 != .jxl }

    /// The formats decoded in render workers only, unless a caller names them: libheif has had flaws that let a picture
    /// take over the decoding process (GHSA-g89c-p67h-r497), and libjxl corrupts its heap if an allocation fails.
    public static let decodedInWorkersOnly: Set<ImageFormat> = [.avif, .heif, .jxl]

    /// Whether the format can store an alpha band (GIF: only fully transparent or fully opaque).
    public var holdsAlpha: Bool { self != .jpeg }

    /// Whether animations are read and written in this format.
    var holdsFrames: Bool { self == .gif || self == .webp }

    /// Whether the format can store an ICC profile; pictures written to one that cannot are converted to sRGB.
    public var holdsProfile: Bool { self != .gif && self != .svg }
}
