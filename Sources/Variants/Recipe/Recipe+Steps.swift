import PipelineSupport

// Recipes that the compiler checks, one method for each step and output.
//
// A method writes its step as recipe text and parses the text again, so that ranges, errors and canonical text have one
// source.

/// The text of a typed recipe, and its first error.
final class WrittenRecipe: Sendable {
    let text: String
    let error: RecipeError?

    init(_ text: String, _ error: RecipeError? = nil) { (self.text, self.error) = (text, error) }
}

extension Recipe {
    /// The first error of a recipe that was made of typed steps, such as a value outside its range, a step after the output
    /// or too many steps; nil if the recipe is valid. Requests with such a recipe fail with `invalidRecipe`.
    public var error: RecipeError? { written?.error }

    /// How `thumbnail` fills its box: within it, covering it, within it with margins, or distorted.
    public enum Mode: String, Sendable, CaseIterable { case fit, fill, pad, stretch }

    /// How a mask is scaled to the picture: distorted, or covering it.
    public enum MaskFit: String, Sendable, CaseIterable { case stretch, cover }

    /// The directions of `flip`.
    public enum Axes: String, Sendable, CaseIterable { case horizontal = "h", vertical = "v", both = "hv" }

    /// A radius or distance in pixels (a literal, or `.pixels`), or in percent of the picture's smaller edge.
    public struct Length: Sendable, ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral {
        let text: String

        /// Pixels, 0…8192; the offset of an overlay may be negative.
        public static func pixels(_ value: Double) -> Length { Length(text: signed(value)) }
        /// Percent of the smaller edge, 0…100; the offset of an overlay may be negative.
        public static func percent(_ value: Double) -> Length { Length(text: signed(value) + "pct") }
        private static func signed(_ value: Double) -> String { value < 0 ? "-" + number(-value) : number(value) }
        init(text: String) { self.text = text }
        /// Pixels, as a literal.
        public init(integerLiteral value: Int) { self = .pixels(Double(value)) }
        /// Pixels, as a literal.
        public init(floatLiteral value: Double) { self = .pixels(value) }
    }

    /// How large an overlay is drawn.
    public struct OverlaySize: Sendable {
        let text: String

        /// A factor of the overlay's own size, 0.01…100.
        public static func factor(_ value: Double) -> OverlaySize { OverlaySize(text: "scale=" + number(value)) }
        /// Percent of the picture's width and height into which the overlay is fitted, 0.01…100.
        public static func percent(_ value: Double) -> OverlaySize {
            OverlaySize(text: "scale=" + number(value) + "pct")
        }
        /// A box in pixels into which the overlay is fitted, edges 1…8192; with one edge nil, only the other counts.
        public static func box(_ width: Int?, _ height: Int?) -> OverlaySize {
            OverlaySize(text: "fit=" + Recipe.box(width, height))
        }
    }

    /// An option of an output. A literal is a quality, 1…100: `.webp(80, .maxBytes(20_000))`.
    public struct OutputOption: Sendable, ExpressibleByIntegerLiteral {
        var text: String?

        /// Keeps every pixel that can be seen.
        public static let lossless = OutputOption(text: "lossless")
        /// Progressive JPEG, interlaced PNG.
        public static let progressive = OutputOption(text: "progressive")
        /// A quality of 1…100, which comes before other options.
        public static func quality(_ value: Int) -> OutputOption { OutputOption(text: "\(value)") }
        /// The most bytes of the file, 1…1,000,000,000.
        public static func maxBytes(_ count: Int) -> OutputOption { OutputOption(text: "max=\(count)") }
        /// The resolution of chroma.
        public static func chroma(_ value: ChromaResolution) -> OutputOption {
            OutputOption(text: "chroma=" + value.rawValue)
        }
        /// How hard the encoder tries to save bytes, 0…9.
        public static func effort(_ value: Int) -> OutputOption { OutputOption(text: "effort=\(value)") }
        /// Metadata that is kept.
        public static func keep(_ kinds: KeptMetadata) -> OutputOption {
            OutputOption(text: kinds.isEmpty ? nil : "keep=" + kinds.text)
        }
        init(text: String?) { self.text = text }
        /// A quality, as a literal.
        public init(integerLiteral value: Int) { self = .quality(value) }
    }

    /// A number as recipe text. Parsing refuses the text of a negative or infinite number, or of one that is too large.
    fileprivate static func number(_ value: Double) -> String {
        value >= 0 && value < 1e9 ? PlainNumber.text(value) : "\(value)"
    }

    fileprivate static func box(_ width: Int?, _ height: Int?) -> String {
        (width.map(String.init) ?? "") + "x" + (height.map(String.init) ?? "")
    }

    private static func colour(_ value: UInt32, alpha: UInt8 = 255) -> String {
        let digits = String(value, radix: 16)
        let padding = String(repeating: "0", count: max(0, 6 - digits.count))
        // Longer values have too many digits for a colour, with alpha in any case.
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
    /// Leaves the picture as stored; otherwise its EXIF orientation is applied first.
    public func unoriented() -> Recipe { adding("orient", "off") }
    /// Keeps the colour space, and its profile in the output; otherwise colours become sRGB.
    public func keepingProfile() -> Recipe { adding("profile", "keep") }

    /// Decodes more frames of an animation than the first.
    public func frames(_ frames: Frames) -> Recipe {
        switch frames {
        case .first: adding("frames", "first")
        case .all: adding("frames", "all")
        case .count(let count): adding("frames", "\(count)")
        }
    }

    /// Multiplies the sizes of the steps after it, 0.1…8.
    public func dpr(_ ratio: Double) -> Recipe { adding("dpr", Self.number(ratio)) }

    /// Resizes to a box, edges 1…8192; with one edge nil, to the other. Never enlarges unless `up` is true.
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

    /// Scales both edges by a factor, 0.0001…100; may enlarge.
    public func scaled(_ factor: Double, light: RenderLight? = nil) -> Recipe {
        adding("scaled", Self.number(factor), light.map { "light=" + $0.rawValue })
    }

    /// Rounds the corners: one radius for all, or four clockwise from top left.
    public func roundedMask(_ radii: Length...) -> Recipe {
        adding("rounded-mask", radii.map(\.text).joined(separator: ":"))
    }

    /// Makes everything outside the inscribed ellipse transparent.
    public func circle() -> Recipe { adding("circle") }

    /// Multiplies alpha with a mask of the mask folder.
    public func mask(_ name: String, _ fit: MaskFit = .stretch) -> Recipe {
        adding("mask", name, "fit=" + fit.rawValue)
    }

    /// Cuts out a rectangle: at an offset from the top left, or where `gravity` says.
    public func crop(
        _ width: Int, _ height: Int, at offset: (x: Int, y: Int)? = nil, gravity: Gravity? = nil
    ) -> Recipe {
        adding(
            "crop", "\(width)x\(height)" + (offset.map { "+\($0.x)+\($0.y)" } ?? ""),
            gravity.map { "gravity=" + $0.rawValue })
    }

    /// Cuts off a border of uniform colour, within a threshold of 0…255.
    public func trim(_ threshold: Int = 10) -> Recipe { adding("trim", "\(threshold)") }
    /// Rotates clockwise, 0…360.
    public func rotate(_ degrees: Double) -> Recipe { adding("rotate", Self.number(degrees)) }
    /// Mirrors the picture.
    public func flip(_ axes: Axes) -> Recipe { adding("flip", axes.rawValue) }
    /// Blurs (Gaussian), sigma 0.3…100 output pixels.
    public func blur(_ sigma: Double) -> Recipe { adding("blur", Self.number(sigma)) }
    /// Sharpens (unsharp mask), sigma 0.3…100 output pixels.
    public func sharpen(_ sigma: Double = 1) -> Recipe { adding("sharpen", Self.number(sigma)) }
    /// Replaces blocks of 1…8192 pixels with their mean colour.
    public func pixelate(_ edge: Int) -> Recipe { adding("pixelate", "\(edge)") }
    /// Turns colours into shades of grey.
    public func grayscale() -> Recipe { adding("grayscale") }
    /// Turns colours into shades of one: `0x704214`.
    public func tint(_ colour: UInt32) -> Recipe { adding("tint", Self.colour(colour)) }
    /// Multiplies the brightness, 0…4.
    public func brightness(_ factor: Double) -> Recipe { adding("brightness", Self.number(factor)) }
    /// Multiplies the contrast, 0…4.
    public func contrast(_ factor: Double) -> Recipe { adding("contrast", Self.number(factor)) }
    /// Multiplies the saturation, 0…4.
    public func saturation(_ factor: Double) -> Recipe { adding("saturation", Self.number(factor)) }

    /// Flattens alpha onto a colour, `0xffffff`, which later steps use as their background.
    public func background(_ colour: UInt32, alpha: UInt8 = 255) -> Recipe {
        adding("background", Self.colour(colour, alpha: alpha))
    }

    /// Adds a margin that shows the background: one width for all sides, or top, right, bottom, left.
    public func extend(_ margins: Int...) -> Recipe { adding("extend", margins.map { "\($0)" }.joined(separator: ":")) }
    /// Adds a frame of 1…8192 pixels around the picture, which grows.
    public func border(_ width: Int, _ colour: UInt32) -> Recipe { adding("border", "\(width)", Self.colour(colour)) }

    /// Lays a picture of the overlay folder over this one.
    ///
    /// `Recipe.thumbnail(800, 600).overlay("logo", gravity: .southEast, size: .percent(20), offset: (.percent(3), .percent(3)))`
    ///
    /// - Parameters:
    ///   - offset: how far the overlay is moved inwards from the sides that `gravity` names; right and down along other axes.
    ///   - least: the least width and height of a picture that gets the overlay, 1…8192 pixels; nil for any.
    public func overlay(
        _ name: String, gravity: Gravity = .centre, opacity: Double = 1, size: OverlaySize = .factor(1),
        offset: (x: Length, y: Length)? = nil, from least: (width: Int?, height: Int?)? = nil
    ) -> Recipe {
        adding(
            "overlay", name, "gravity=" + gravity.rawValue, "opacity=" + Self.number(opacity), size.text,
            offset.map { "offset=\($0.x.text)x\($0.y.text)" }, least.map { "from=" + Self.box($0.width, $0.height) })
    }

    /// Covers this picture with copies of a picture of the overlay folder.
    ///
    /// - Parameters:
    ///   - gap: the space between copies.
    ///   - least: the least width and height of a picture that gets the overlay, 1…8192 pixels; nil for any.
    public func tiledOverlay(
        _ name: String, opacity: Double = 1, size: OverlaySize = .factor(1), gap: (x: Length, y: Length)? = nil,
        from least: (width: Int?, height: Int?)? = nil
    ) -> Recipe {
        adding(
            "overlay", name, "tile", "opacity=" + Self.number(opacity), size.text,
            gap.map { "gap=\($0.x.text)x\($0.y.text)" }, least.map { "from=" + Self.box($0.width, $0.height) })
    }

    /// Ends as JPEG.
    public func jpeg(_ options: OutputOption...) -> Recipe { adding(["jpeg"] + options.map(\.text)) }
    /// Ends as PNG; `.lossless` keeps colours that a palette would lose.
    public func png(_ options: OutputOption...) -> Recipe { adding(["png"] + options.map(\.text)) }
    /// Ends as WebP.
    public func webp(_ options: OutputOption...) -> Recipe { adding(["webp"] + options.map(\.text)) }
    /// Ends as AVIF.
    public func avif(_ options: OutputOption...) -> Recipe { adding(["avif"] + options.map(\.text)) }
    /// Ends as GIF.
    public func gif(_ options: OutputOption...) -> Recipe { adding(["gif"] + options.map(\.text)) }
    /// Ends as JPEG XL.
    public func jxl(_ options: OutputOption...) -> Recipe { adding(["jxl"] + options.map(\.text)) }
    /// Ends as TIFF.
    public func tiff(_ options: OutputOption...) -> Recipe { adding(["tiff"] + options.map(\.text)) }
    /// Ends in the best format that the client accepts.
    public func auto(_ options: OutputOption...) -> Recipe { adding(["auto"] + options.map(\.text)) }
    /// Ends in the original's format, if it can be written.
    public func original(_ options: OutputOption...) -> Recipe { adding(["original"] + options.map(\.text)) }
}

// The step that most recipes begin with; others follow `Recipe()`.
extension Recipe {
    /// Begins a recipe with `thumbnail`.
    public static func thumbnail(
        _ width: Int?, _ height: Int?, _ mode: Mode = .fit, up: Bool = false, gravity: Gravity? = nil,
        focus: (x: Double, y: Double)? = nil, resample: RenderQuality? = nil, light: RenderLight? = nil
    ) -> Recipe {
        Recipe().thumbnail(
            width, height, mode, up: up, gravity: gravity, focus: focus, resample: resample, light: light)
    }

    /// Begins a recipe with `thumbnail`, for a square box.
    public static func thumbnail(_ edge: Int, _ mode: Mode = .fit, up: Bool = false, gravity: Gravity? = nil) -> Recipe
    {
        Recipe().thumbnail(edge, mode, up: up, gravity: gravity)
    }
}
