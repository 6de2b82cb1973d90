import Variants

/// A format in the URLs of the Image API.
enum IIIFFormat: String, Sendable {
    case jpg, png, webp, gif, tif, avif, jxl

    /// The format as the output of a recipe.
    var output: String {
        switch self {
        case .jpg: "jpeg"
        case .tif: "tiff"
        default: rawValue
        }
    }
}

/// The parameters of an image request. They are independent of the image.
struct IIIFParameters: Sendable {
    enum Region: Sendable {
        case full, square
        case pixels(x: Int, y: Int, width: Int, height: Int)
        /// The position and the size in millionths of a percent.
        case percent(x: Int, y: Int, width: Int, height: Int)
    }

    enum Size: Sendable {
        case max
        /// An edge that is nil follows from the other edge.
        case pixels(width: Int?, height: Int?)
        case fitted(width: Int, height: Int)
        /// Millionths of a percent.
        case percent(Int)
    }

    enum Quality: String, Sendable {
        case `default`, color, gray, bitonal

        var steps: [String] {
            switch self {
            case .default, .color: []
            case .gray: ["grayscale"]
            // After five steps, even values next to the middle are black or white.
            case .bitonal: ["grayscale"] + Array(repeating: "contrast:4", count: 5)
            }
        }
    }

    let version: IIIFVersion
    let region: Region
    let size: Size
    /// Whether the size begins with `^`.
    let hasCaret: Bool
    let isMirrored: Bool
    /// Degrees, clockwise, at least 0 and less than 360.
    let rotation: Double
    let quality: Quality
    let format: IIIFFormat

    /// Whether the result may be larger than the region.
    var mayEnlarge: Bool { version == .two || hasCaret }

    /// - Parameters:
    ///   - texts: The region, size, rotation, and quality with format, decoded.
    ///   - formats: The formats that the server offers.
    /// - Throws: a `Problem` with status 400 if a parameter is malformed.
    init(_ texts: [String], _ version: IIIFVersion, _ formats: [IIIFFormat]) throws(Problem) {
        self.version = version
        guard let region = Self.region(texts[0]) else {
            throw Problem(.malformedRequest, "the region must be full, square, x,y,w,h or pct:x,y,w,h")
        }
        self.region = region
        hasCaret = texts[1].hasPrefix("^")
        guard !hasCaret || version == .three, let size = Self.size(texts[1].dropFirst(hasCaret ? 1 : 0), version) else {
            let forms = version == .two ? "full, max" : "max"
            let caret = version == .two ? "" : ", after ^ if the result may be larger than the region"
            throw Problem(.malformedRequest, "the size must be \(forms), w, or ,h or w,h or !w,h or pct:n\(caret)")
        }
        self.size = size
        isMirrored = texts[2].hasPrefix("!")
        guard let degrees = Self.decimal(texts[2].dropFirst(isMirrored ? 1 : 0)), degrees <= 360 else {
            throw Problem(.malformedRequest, "the rotation must be a number from 0 to 360, after ! if mirrored")
        }
        rotation = degrees == 360 ? 0 : degrees
        let parts = texts[3].split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
        guard let quality = Quality(rawValue: String(parts[0])) else {
            throw Problem(.malformedRequest, "the quality must be default, color, gray or bitonal")
        }
        guard parts.count == 2, let format = IIIFFormat(rawValue: String(parts[1])), formats.contains(format) else {
            let names = formats.map(\.rawValue).joined(separator: ", ")
            throw Problem(.malformedRequest, "the format must be one of \(names)")
        }
        (self.quality, self.format) = (quality, format)
    }

    private static func region(_ text: String) -> Region? {
        if text == "full" { return .full }
        if text == "square" { return .square }
        let isPercent = text.hasPrefix("pct:")
        let numbers = list(text.dropFirst(isPercent ? 4 : 0)).compactMap { isPercent ? millionths($0) : whole($0) }
        guard numbers.count == 4, text.utf8.count(where: { $0 == UInt8(ascii: ",") }) == 3 else { return nil }
        return isPercent
            ? .percent(x: numbers[0], y: numbers[1], width: numbers[2], height: numbers[3])
            : .pixels(x: numbers[0], y: numbers[1], width: numbers[2], height: numbers[3])
    }

    private static func size(_ text: Substring, _ version: IIIFVersion) -> Size? {
        if text == "max" || text == "full" && version == .two { return .max }
        if text.hasPrefix("pct:") { return millionths(text.dropFirst(4)).map(Size.percent) }
        let isFitted = text.hasPrefix("!")
        let parts = list(text.dropFirst(isFitted ? 1 : 0))
        guard parts.count == 2 else { return nil }
        let (width, height) = (whole(parts[0]), whole(parts[1]))
        guard width != nil || parts[0].isEmpty, height != nil || parts[1].isEmpty else { return nil }
        guard isFitted else { return width == nil && height == nil ? nil : .pixels(width: width, height: height) }
        guard let width, let height else { return nil }
        return .fitted(width: width, height: height)
    }

    private static func list(_ text: Substring) -> [Substring] {
        text.split(separator: ",", omittingEmptySubsequences: false)
    }

    /// Parses digits. A value that is too large for any image is reduced, so that sums and products do not overflow.
    private static func whole(_ text: Substring) -> Int? { PlainNumber.parseWhole(text).map { min($0, 1 << 30) } }

    /// Parses digits, optionally followed by a fraction. The digits before the fraction may be missing.
    private static func decimal(_ text: Substring) -> Double? {
        PlainNumber.parse(text.hasPrefix(".") ? "0" + text : String(text))
    }

    private static func millionths(_ text: Substring) -> Int? {
        decimal(text).map { Int((min($0, 1_000_000) * 1_000_000).rounded()) }
    }
}
