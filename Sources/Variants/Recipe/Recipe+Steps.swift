import PipelineSupport

// Type-safe recipes, with one method for each step and output.
//
// Each method writes its step as recipe text and parses the result, so that ranges, errors and canonical text are
// defined only once.

/// The text of a typed recipe, and the first error in it.
final class WrittenRecipe: Sendable {
    let text: String
    let error: RecipeError?

    init(_ text: String, _ error: RecipeError? = nil) { (self.text, self.error) = (text, error) }
}

extension Recipe {
    /// The first error in a recipe that was built with typed steps, such as a value outside its range, a step after the
    /// output, or too many steps. This is nil if the recipe is valid. Requests with an invalid recipe fail with
    /// `invalidRecipe`.
    public var error: RecipeError? { written?.error }

    /// How `thumbnail` fits the picture to the box: scaled to fit inside, cropped to fill it, scaled and padded, or
    /// stretched.
    public enum Mode: String, Sendable, CaseIterable { case fit, fill, pad, stretch }

    /// A radius or distance, in pixels or as a percentage of the picture's smaller edge: `24`, `.pixels(24)` or
    /// `.percent(3)`.
    public struct Length: Sendable, ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral {
        let text: String

        /// A length in pixels, 0…8192. Offsets of overlays may be negative.
        public static func pixels(_ value: Double) -> Length { Length(text: signed(value)) }
        /// A percentage of the smaller edge, 0…100. Offsets of overlays may be negative.
        public static func percent(_ value: Double) -> Length { Length(text: signed(value) + "pct") }
        private static func signed(_ value: Double) -> String { value < 0 ? "-" + number(-value) : number(value) }
        init(text: String) { self.text = text }
        /// Creates a length in pixels.
        public init(integerLiteral value: Int) { self = .pixels(Double(value)) }
        /// Creates a length in pixels.
        public init(floatLiteral value: Double) { self = .pixels(value) }
    }

    /// The size at which `overlay` draws a picture: `.percent(20)`, `.factor(0.5)` or `.box(200, nil)`.
    public struct OverlaySize: Sendable {
        let text: String

        /// A multiple of the overlay's own size, 0.01…100.
        public static func factor(_ value: Double) -> OverlaySize { OverlaySize(text: "scale=" + number(value)) }
        /// A percentage of the picture's width and height that the overlay fits into, 0.01…100.
        public static func percent(_ value: Double) -> OverlaySize {
            OverlaySize(text: "scale=" + number(value) + "pct")
        }
        /// A box in pixels that the overlay fits into. Edges are 1…8192. If one edge is nil, only the other edge limits
        /// the size.
        public static func box(_ width: Int?, _ height: Int?) -> OverlaySize {
            OverlaySize(text: "fit=" + Recipe.box(width, height))
        }
    }

    /// An option of an output. An integer literal is a quality, 1…100: `.webp(80, .maxBytes(20_000))`.
    public struct OutputOption: Sendable, ExpressibleByIntegerLiteral {
        var text: String?

        /// Preserves every visible pixel.
        public static let lossless = OutputOption(text: "lossless")
        /// Keeps the data of a JPEG original in a JPEG XL file, from which the JPEG can be restored. The recipe must have
        /// no other steps. The pixels of other originals are encoded.
        public static let transcode = OutputOption(text: "transcode")
        /// Writes a progressive JPEG or an interlaced PNG.
        public static let progressive = OutputOption(text: "progressive")
        /// Sets the quality, 1…100. Must be the first option.
        public static func quality(_ value: Int) -> OutputOption { OutputOption(text: "\(value)") }
        /// Limits the size of the file in bytes, 1…1,000,000,000.
        public static func maxBytes(_ count: Int) -> OutputOption { OutputOption(text: "max=\(count)") }
        /// Chooses the smallest file that reaches this SSIMULACRA2 score, 10…95. Cannot be combined with a quality or
        /// `lossless`.
        public static func score(_ value: Int) -> OutputOption { OutputOption(text: "score=\(value)") }
        /// Stores chroma at the resolution of luma. By default, the encoder chooses.
        public static let fullChroma = OutputOption(text: "chroma=full")
        /// Stores chroma at half the resolution of luma.
        public static let halfChroma = OutputOption(text: "chroma=half")
        /// Sets how much CPU time the encoder spends to save bytes, 0…9.
        public static func effort(_ value: Int) -> OutputOption { OutputOption(text: "effort=\(value)") }
        /// Keeps the given kinds of metadata and the credits (`KeptMetadata.copyright`), which are the default. An empty
        /// set keeps nothing.
        public static func keep(_ kinds: KeptMetadata) -> OutputOption {
            OutputOption(text: "keep=" + (kinds.isEmpty ? "none" : kinds.text))
        }
        init(text: String?) { self.text = text }
        /// Creates a quality option.
        public init(integerLiteral value: Int) { self = .quality(value) }
    }

    /// Returns a number as recipe text. Parsing rejects the text if the number is negative, infinite or too large.
    fileprivate static func number(_ value: Double) -> String {
        value >= 0 && value < 1e9 ? PlainNumber.text(value) : "\(value)"
    }

    fileprivate static func box(_ width: Int?, _ height: Int?) -> String {
        (width.map(String.init) ?? "") + "x" + (height.map(String.init) ?? "")
    }

    private static func color(_ value: UInt32, alpha: UInt8 = 255) -> String {
        let digits = String(value, radix: 16)
        let padding = String(repeating: "0", count: max(0, 6 - digits.count))
        // Values above 24 bits have too many digits for a color, whether or not alpha is appended.
        return padding + digits + (alpha < 255 || digits.count > 6 ? hex([alpha]) : "")
    }

    private func adding(_ arguments: String?...) -> Recipe { adding(arguments) }

    private func adding(_ arguments: [String?]) -> Recipe {
        let before = written?.text ?? description
        let text = (before.isEmpty ? "" : before + ",") + arguments.compactMap(\.self).joined(separator: ":")
        var result = self
        do throws(RecipeError) {
            result = try Recipe(text)
            result.written = WrittenRecipe(text)
        } catch {
            result.written = WrittenRecipe(text, error)
        }
        return result
    }
}

extension Recipe {
    /// Ignores the EXIF orientation, which is otherwise applied first.
    public func unoriented() -> Recipe { adding("orient", "off") }
    /// Keeps the color space and stores its profile in the output. Otherwise colors are converted to sRGB.
    public func keepingProfile() -> Recipe { adding("profile", "keep") }

    /// Decodes this page of a TIFF, 1…500. By default, the first page is decoded.
    public func page(_ number: Int) -> Recipe { adding("page", "\(number)") }

    /// Decodes at most this many frames of an animation, 1…100,000. By default, only the first frame is decoded.
    public func frames(_ count: Int) -> Recipe { adding("frames", "\(count)") }
    /// Decodes all frames of an animation.
    public func allFrames() -> Recipe { adding("frames", "all") }

    /// Multiplies the sizes of the following steps by a factor of 0.1…8.
    public func dpr(_ ratio: Double) -> Recipe { adding("dpr", Self.number(ratio)) }

    /// Resizes to a box with edges of 1…8192 pixels. If one edge is nil, only the other edge determines the size. Never
    /// enlarges unless `up` is true.
    public func thumbnail(
        _ width: Int?, _ height: Int?, _ mode: Mode = .fit, up: Bool = false, gravity: Gravity? = nil,
        focus: (x: Double, y: Double)? = nil, resample: RenderQuality? = nil, light: RenderLight? = nil
    ) -> Recipe {
        adding(
            "thumbnail", Self.box(width, height),
            mode == .fit ? nil : mode.rawValue, up ? "up" : nil, gravity.map { "gravity=" + $0.rawValue },
            focus.map { "focus=\(Self.number($0.x))x\(Self.number($0.y))" },
            resample.map { "resample=" + $0.rawValue }, light.map { "light=" + $0.rawValue })
    }

    /// Resizes to a square box.
    public func thumbnail(_ edge: Int, _ mode: Mode = .fit, up: Bool = false, gravity: Gravity? = nil) -> Recipe {
        thumbnail(edge, edge, mode, up: up, gravity: gravity)
    }

    /// Scales both edges by a factor of 0.0001…100. May enlarge.
    public func scaled(_ factor: Double, light: RenderLight? = nil) -> Recipe {
        adding("scaled", Self.number(factor), light.map { "light=" + $0.rawValue })
    }

    /// Rounds the corners. Takes one radius for all corners, or four radii clockwise from the top left.
    public func roundedMask(_ radii: Length...) -> Recipe {
        adding("rounded-mask", radii.map(\.text).joined(separator: ":"))
    }

    /// Makes all pixels outside the inscribed ellipse transparent.
    public func circle() -> Recipe { adding("circle") }

    /// Multiplies alpha by a mask from the mask folder. The mask is scaled to cover the picture, or stretched to its
    /// size.
    public func mask(_ name: String, covers: Bool = false) -> Recipe {
        adding("mask", name, covers ? "fit=cover" : nil)
    }

    /// Crops to a rectangle, either at an offset from the top left or positioned by `gravity`.
    public func crop(
        _ width: Int, _ height: Int, at offset: (x: Int, y: Int)? = nil, gravity: Gravity? = nil
    ) -> Recipe {
        adding(
            "crop", "\(width)x\(height)" + (offset.map { "+\($0.x)+\($0.y)" } ?? ""),
            gravity.map { "gravity=" + $0.rawValue })
    }

    /// Removes a border of uniform color. The threshold for color differences is 0…255.
    public func trim(_ threshold: Int = 10) -> Recipe { adding("trim", "\(threshold)") }
    /// Rotates clockwise by 0…360 degrees.
    public func rotate(_ degrees: Double) -> Recipe { adding("rotate", Self.number(degrees)) }
    /// Mirrors the picture horizontally, vertically or both.
    public func flip(horizontally: Bool = false, vertically: Bool = false) -> Recipe {
        adding("flip", (horizontally ? "h" : "") + (vertically ? "v" : ""))
    }
    /// Applies a Gaussian blur with a sigma of 0.3…100 output pixels.
    public func blur(_ sigma: Double) -> Recipe { adding("blur", Self.number(sigma)) }
    /// Applies an unsharp mask with a sigma of 0.3…100 output pixels.
    public func sharpen(_ sigma: Double = 1) -> Recipe { adding("sharpen", Self.number(sigma)) }
    /// Replaces each block with its mean color. The edge of a block is 1…8192 pixels long.
    public func pixelate(_ edge: Int) -> Recipe { adding("pixelate", "\(edge)") }
    /// Converts colors to shades of gray.
    public func grayscale() -> Recipe { adding("grayscale") }
    /// Converts colors to shades of a single color, such as `0x704214`.
    public func tint(_ color: UInt32) -> Recipe { adding("tint", Self.color(color)) }
    /// Multiplies the brightness by a factor of 0…4.
    public func brightness(_ factor: Double) -> Recipe { adding("brightness", Self.number(factor)) }
    /// Multiplies the contrast by a factor of 0…4.
    public func contrast(_ factor: Double) -> Recipe { adding("contrast", Self.number(factor)) }
    /// Multiplies the saturation by a factor of 0…4.
    public func saturation(_ factor: Double) -> Recipe { adding("saturation", Self.number(factor)) }

    /// Flattens alpha onto a color, such as `0xffffff`. Later steps use the color as their background.
    public func background(_ color: UInt32, alpha: UInt8 = 255) -> Recipe {
        adding("background", Self.color(color, alpha: alpha))
    }

    /// Adds margins that show the background. Takes one width for all sides, or four widths for the top, right, bottom
    /// and left.
    public func extend(_ margins: Int...) -> Recipe { adding("extend", margins.map { "\($0)" }.joined(separator: ":")) }
    /// Adds a frame of 1…8192 pixels around the picture, which enlarges the picture.
    public func border(_ width: Int, _ color: UInt32) -> Recipe { adding("border", "\(width)", Self.color(color)) }

    /// Draws a picture from the overlay folder over this picture.
    ///
    /// ```swift
    /// let watermarked = Recipe.thumbnail(800, 600)
    ///     .overlay("logo", gravity: .southEast, size: .percent(20), offset: (.percent(3), .percent(3)))
    /// ```
    ///
    /// - Parameters:
    ///   - offset: the distance from the sides that `gravity` names. Along an axis without a named side, the overlay
    ///     moves right or down.
    ///   - least: the minimum width and height in pixels, 1…8192, of the pictures on which the overlay is drawn, or nil
    ///     if there is no minimum.
    public func overlay(
        _ name: String, gravity: Gravity = .center, opacity: Double = 1, size: OverlaySize = .factor(1),
        offset: (x: Length, y: Length)? = nil, from least: (width: Int?, height: Int?)? = nil
    ) -> Recipe {
        adding(
            "overlay", name, "gravity=" + gravity.rawValue, "opacity=" + Self.number(opacity), size.text,
            offset.map { "offset=\($0.x.text)x\($0.y.text)" }, least.map { "from=" + Self.box($0.width, $0.height) })
    }

    /// Covers this picture with copies of a picture from the overlay folder.
    ///
    /// - Parameters:
    ///   - gap: the space between the copies.
    ///   - least: the minimum width and height in pixels, 1…8192, of the pictures on which the overlay is drawn, or nil
    ///     if there is no minimum.
    public func tiledOverlay(
        _ name: String, opacity: Double = 1, size: OverlaySize = .factor(1), gap: (x: Length, y: Length)? = nil,
        from least: (width: Int?, height: Int?)? = nil
    ) -> Recipe {
        adding(
            "overlay", name, "tile", "opacity=" + Self.number(opacity), size.text,
            gap.map { "gap=\($0.x.text)x\($0.y.text)" }, least.map { "from=" + Self.box($0.width, $0.height) })
    }

    /// Encodes the result as JPEG.
    public func jpeg(_ options: OutputOption...) -> Recipe { adding(["jpeg"] + options.map(\.text)) }
    /// Encodes the result as PNG. `.lossless` preserves colors that a palette would lose.
    public func png(_ options: OutputOption...) -> Recipe { adding(["png"] + options.map(\.text)) }
    /// Encodes the result as WebP.
    public func webp(_ options: OutputOption...) -> Recipe { adding(["webp"] + options.map(\.text)) }
    /// Encodes the result as AVIF.
    public func avif(_ options: OutputOption...) -> Recipe { adding(["avif"] + options.map(\.text)) }
    /// Encodes the result as GIF.
    public func gif(_ options: OutputOption...) -> Recipe { adding(["gif"] + options.map(\.text)) }
    /// Encodes the result as JPEG XL.
    public func jxl(_ options: OutputOption...) -> Recipe { adding(["jxl"] + options.map(\.text)) }
    /// Encodes the result as TIFF.
    public func tiff(_ options: OutputOption...) -> Recipe { adding(["tiff"] + options.map(\.text)) }
    /// Encodes the result in the best format that the client accepts.
    public func auto(_ options: OutputOption...) -> Recipe { adding(["auto"] + options.map(\.text)) }
    /// Encodes the result in the original's format if that format can be encoded.
    public func original(_ options: OutputOption...) -> Recipe { adding(["original"] + options.map(\.text)) }
}

// The step that most recipes begin with. All other steps start from `Recipe()`.
extension Recipe {
    /// Creates a recipe that begins with `thumbnail`.
    public static func thumbnail(
        _ width: Int?, _ height: Int?, _ mode: Mode = .fit, up: Bool = false, gravity: Gravity? = nil,
        focus: (x: Double, y: Double)? = nil, resample: RenderQuality? = nil, light: RenderLight? = nil
    ) -> Recipe {
        Recipe().thumbnail(
            width, height, mode, up: up, gravity: gravity, focus: focus, resample: resample, light: light)
    }

    /// Creates a recipe that begins with `thumbnail` for a square box.
    public static func thumbnail(_ edge: Int, _ mode: Mode = .fit, up: Bool = false, gravity: Gravity? = nil) -> Recipe
    {
        Recipe().thumbnail(edge, mode, up: up, gravity: gravity)
    }
}
