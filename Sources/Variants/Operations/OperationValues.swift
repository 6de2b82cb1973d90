import PipelineSupport

/// A box in pixels that a picture fits into. At least one edge is set.
struct PixelBox: Sendable, Hashable {
    var width: Int?
    var height: Int?
}

extension Recipe {
    /// The part of a picture that `crop` and `thumbnail` keep, or the position of an overlay: one of nine fixed places,
    /// or a choice based on the content.
    public enum Gravity: String, Sendable, Hashable, CaseIterable {
        case center = "centre", north, northEast = "north-east", east, southEast = "south-east", south, southWest =
            "south-west"
        case west, northWest = "north-west", attention, entropy
    }
}
typealias Gravity = Recipe.Gravity

/// The part of a picture that stays visible when the rest is cropped.
enum Anchor: Sendable, Hashable {
    case gravity(Gravity)
    /// A point, expressed as fractions of the width and height, each 0…1.
    case focus(x: Double, y: Double)
}

/// A length in pixels or as a fraction (1 = 100%) of the smaller edge.
enum EdgeLength: Sendable, Hashable {
    case pixels(Double)
    case share(Double)
}

/// An sRGB color with alpha. Each component is 0…255.
struct Color: Sendable, Hashable {
    var red: UInt8
    var green: UInt8
    var blue: UInt8
    var alpha: UInt8 = 255
}

/// Formats the values of the four sides or corners of a rectangle. Equal values are written as a single value.
enum FourSides {
    static func text(_ values: [String]) -> [String] {
        values.allSatisfy { $0 == values.first } ? Array(values.prefix(1)) : values
    }
}

// MARK: Recipe text

extension PixelBox {
    /// The maximum length of an output's edge.
    static let edgeLimit = 8192

    /// Parses `WxH`, `Wx`, `xH`, or `N` for a square.
    init(_ text: Substring, _ arguments: StepArguments, most: Int = edgeLimit) throws(RecipeError) {
        guard let cross = text.firstIndex(of: "x") else {
            let edge = try arguments.pixels(text, "the edge", most: most)
            self.init(width: edge, height: edge)
            return
        }
        let (left, right) = (text[..<cross], text[text.index(after: cross)...])
        guard !left.isEmpty || !right.isEmpty else {
            throw arguments.error("expected a size such as `300x200`, `300x`, `x200` or `300`, not `x`")
        }
        self.init(
            width: left.isEmpty ? nil : try arguments.pixels(left, "the width", most: most),
            height: right.isEmpty ? nil : try arguments.pixels(right, "the height", most: most))
    }

    /// The canonical text, which always contains the `x`: `300x300`, `300x`, `x200`.
    var text: String { "\(width.map(String.init) ?? "")x\(height.map(String.init) ?? "")" }

    /// The text in explanations, such as `300 × 200 px` or `width 300 px`.
    var spoken: String {
        switch (width, height) {
        case (let width?, let height?): "\(width) × \(height) px"
        case (let width?, nil): "width \(width) px"
        case (nil, let height?): "height \(height) px"
        case (nil, nil): "its size"
        }
    }

    init(_ size: PixelSize) { self.init(width: size.width, height: size.height) }

    func multiplied(by ratio: Double) -> PixelBox {
        PixelBox(
            width: width.map { PlainNumber.scaled($0, by: ratio) },
            height: height.map { PlainNumber.scaled($0, by: ratio) })
    }
}

extension Gravity {
    /// The nine places that do not depend on the content of the picture.
    static let places = allCases.filter { $0 != .attention && $0 != .entropy }

    /// The sides that the place touches: −1 for left or top, 1 for right or bottom, and 0 for neither.
    var sides: (x: Int, y: Int) {
        (
            x: rawValue.hasSuffix("west") ? -1 : rawValue.hasSuffix("east") ? 1 : 0,
            y: rawValue.hasPrefix("north") ? -1 : rawValue.hasPrefix("south") ? 1 : 0
        )
    }

    /// The text in explanations.
    var spoken: String {
        switch self {
        case .attention: "the most salient part"
        case .entropy: "the busiest part"
        case .center: "the center"
        default: "the \(rawValue)"
        }
    }
}

extension Anchor {
    static let center = Anchor.gravity(.center)

    /// Reads `gravity=` or `focus=` from the options. Uses the center if both are missing.
    init(_ options: StepArguments.Options, _ arguments: StepArguments) throws(RecipeError) {
        switch (options.values["gravity"], options.values["focus"]) {
        case (nil, nil): self = .center
        case (let gravity?, nil): self = .gravity(try arguments.word(gravity, "the gravity"))
        case (nil, let focus?):
            let parts = focus.split(separator: "x", omittingEmptySubsequences: false)
            guard parts.count == 2 else {
                throw arguments.error(
                    "`focus=` must be two fractions such as `0.5x0.3`, not `\(RecipeError.shown(focus))`")
            }
            self = .focus(
                x: try arguments.decimal(parts[0], "the horizontal focus", 0...1),
                y: try arguments.decimal(parts[1], "the vertical focus", 0...1))
        case (_?, _?): throw arguments.error("`gravity=` and `focus=` cannot be combined")
        }
    }

    var looksAtPixels: Bool {
        if case .gravity(let gravity) = self { !Gravity.places.contains(gravity) } else { false }
    }

    /// The canonical arguments. Empty for the center.
    var arguments: [String] {
        switch self {
        case .center: []
        case .gravity(let gravity): ["gravity=\(gravity.rawValue)"]
        case .focus(let x, let y): ["focus=\(PlainNumber.text(x))x\(PlainNumber.text(y))"]
        }
    }

    /// The text in explanations.
    var spoken: String {
        switch self {
        case .gravity(let gravity): gravity.spoken
        case .focus(let x, let y): "the point \(PlainNumber.text(x)) across and \(PlainNumber.text(y)) down"
        }
    }
}

extension EdgeLength {
    /// Parses pixels, 0…8192, or a percentage, 0…100, followed by `%` or `pct`.
    init(_ text: Substring, _ what: String, _ arguments: StepArguments) throws(RecipeError) {
        if let percent = try arguments.percent(text, what, 0...100) {
            self = .share(percent / 100)
        } else {
            self = .pixels(try arguments.decimal(text, what, 0...Double(PixelBox.edgeLimit), inPixels: true))
        }
    }

    var text: String {
        switch self {
        case .pixels(let pixels): PlainNumber.text(pixels)
        case .share(let share): PlainNumber.text(share * 100) + "pct"
        }
    }

    /// The text in explanations.
    var spoken: String {
        switch self {
        case .pixels(let pixels): PlainNumber.text(pixels) + " px"
        case .share(let share): PlainNumber.text(share * 100) + " % of the smaller edge"
        }
    }

    /// Returns the length in pixels for a picture whose smaller edge has `edge` pixels.
    func pixels(of edge: Int) -> Double {
        switch self {
        case .pixels(let pixels): pixels
        case .share(let share): share * Double(edge)
        }
    }

    func multiplied(by ratio: Double) -> EdgeLength {
        switch self {
        case .pixels(let pixels): .pixels(PlainNumber.scaled(pixels, by: ratio))
        case .share: self
        }
    }
}

extension Color {
    /// The red, green and blue values, as libvips operations expect them.
    var bands: [Double] { [Double(red), Double(green), Double(blue)] }

    /// Parses `RRGGBB`, `RGB` (each digit is doubled), or `RRGGBBAA` if alpha is allowed. Accepts uppercase and
    /// lowercase.
    init(_ text: Substring, _ arguments: StepArguments, allowsAlpha: Bool = false) throws(RecipeError) {
        var digits = text.utf8.compactMap(hexValue)
        if digits.count == 3, text.utf8.count == 3 { digits = digits.flatMap { [$0, $0] } }
        let isWhole = digits.count >= text.utf8.count && (digits.count == 6 || allowsAlpha && digits.count == 8)
        guard isWhole else {
            let form =
                allowsAlpha
                ? "three, six or eight hex digits (RGB, RRGGBB or RRGGBBAA)" : "three or six hex digits (RGB or RRGGBB)"
            throw arguments.error("the color must be \(form), not `\(RecipeError.shown(text))`")
        }
        let bytes = stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
        self.init(red: bytes[0], green: bytes[1], blue: bytes[2], alpha: bytes.count == 4 ? bytes[3] : 255)
    }

    /// The lowercase canonical text. Includes alpha only if it is not `ff`.
    var text: String {
        hex(alpha == 255 ? [red, green, blue] : [red, green, blue, alpha])
    }
}
