/// One step of a recipe: parsed from text, written back canonically, applied to a picture.
///
/// Each step has a file in this folder, a line in `Catalogue`, and tests.
package protocol VariantOperation: Sendable {
    /// The step's name in recipe text.
    static var token: String { get }
    /// How the step is written, for example `blur:S`.
    static var grammar: String { get }
    /// What the letters of the grammar stand for, with ranges and defaults; empty if the step takes no arguments.
    static var ranges: String { get }
    /// The words that a keyed argument takes where the grammar has a letter, by key.
    static var words: [String: [String]] { get }
    /// What the step does, in one sentence.
    static var summary: String { get }
    /// A step that parses, canonically written.
    static var example: String { get }
    /// Parses what follows the name.
    init(_ arguments: inout StepArguments) throws(RecipeError)
    /// Arguments in canonical form, defaults dropped: what follows the name, without the colons.
    var canonicalArguments: [String] { get }
    /// What this step does, in one plain sentence with its numbers.
    var explanation: String { get }
    /// How the step changes whether the picture has alpha.
    var alphaEffect: AlphaEffect { get }
    /// How much the step can amplify a slight difference between two pictures, at most: 1 unless it amplifies any,
    /// `infinity` if it chooses by looking at the pixels (what to trim, where to crop), because pictures that look the
    /// same may then give different results, even in size. Decides which renders may share a decode.
    var differenceGain: Double { get }
    /// Roughly the CPU time it takes, in nanoseconds for each pixel of the larger of the pictures before and after it.
    /// Decides which renders count as long (`RenderWork`).
    var nanosecondsPerPixel: Double { get }
    /// How many pictures of the larger size before and after it the step has in memory at most; 0 if rows pass through it.
    /// Decides whether a render fits in a worker (`RenderJob.memory`).
    var heldPictures: Double { get }
    /// The step with its pixel quantities multiplied (`dpr`), integers rounded half up, at least 1.
    func multiplied(by ratio: Double) -> Self
    /// Applies the step.
    func apply(to picture: Picture, in context: RenderContext) throws(RenderError) -> Picture
}

/// A step that changes the picture's size.
protocol ResizingOperation: VariantOperation {
    /// The size after the step; nil if it depends on the pixels. Throws `notApplicable` if the step cannot be applied
    /// to `size`.
    func resultSize(of size: PixelSize) throws(RenderError) -> PixelSize?
}

/// A step that multiplies what it is named after, such as the brightness: `NAME:F`.
protocol FactorOperation: VariantOperation {
    /// 0…4; 1 leaves the picture as it is.
    var factor: Double { get }
    init(factor: Double)
}

extension FactorOperation {
    static var ranges: String { "F 0…4, 1 = unchanged" }
    var canonicalArguments: [String] { [PlainNumber.text(factor)] }
    var differenceGain: Double { max(1, factor) }
    var nanosecondsPerPixel: Double { 15 }
    var heldPictures: Double { 0 }
    var explanation: String { "Multiplies the \(Self.token) by \(PlainNumber.text(factor))." }

    init(_ arguments: inout StepArguments) throws(RecipeError) {
        self.init(factor: try arguments.decimal(try arguments.next("a factor"), "the factor", 0...4))
    }
}

/// How a step changes whether the picture has alpha.
package enum AlphaEffect: Sendable, Hashable {
    case keeps
    /// Adds partial alpha, as a mask does.
    case adds
    case removes
    /// Uncovers areas that show the background: the colour of the last `background` step, else transparent. If it is
    /// not opaque, antialiased edges are partly transparent.
    case uncovers(antialiased: Bool)
    /// Sets the background and flattens existing alpha onto it, which leaves none if the background is opaque.
    case flattens(isOpaque: Bool)
}

extension VariantOperation {
    package static var ranges: String { "" }
    package static var words: [String: [String]] { [:] }
    package var explanation: String { Self.summary }
    package var alphaEffect: AlphaEffect { .keeps }
    package var differenceGain: Double { 1 }
    package var nanosecondsPerPixel: Double { 5 }
    package var heldPictures: Double { 3 }
    package func multiplied(by ratio: Double) -> Self { self }

    /// The step with one of its values replaced.
    func setting<Value>(_ property: WritableKeyPath<Self, Value>, to value: Value) -> Self {
        var result = self
        result[keyPath: property] = value
        return result
    }

    /// The whole step in canonical form.
    var canonicalText: String { ([Self.token] + canonicalArguments).joined(separator: ":") }
}
