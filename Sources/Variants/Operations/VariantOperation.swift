/// A step of a recipe. A step is parsed from text, formatted as canonical text, and applied to a picture.
///
/// Each step has a file in this folder, a line in `Catalog`, and tests.
package protocol VariantOperation: Sendable {
    /// The name of the step in recipe text.
    static var token: String { get }
    /// The syntax of the step, such as `blur:S`.
    static var grammar: String { get }
    /// The meaning of the letters in the grammar, with ranges and defaults. Empty for a step without arguments.
    static var ranges: String { get }
    /// The words that a keyed argument accepts in place of a letter of the grammar, indexed by key.
    static var words: [String: [String]] { get }
    /// A one-sentence description of the step.
    static var summary: String { get }
    /// An example of the step in canonical form.
    static var example: String { get }
    /// Parses the arguments after the name.
    init(_ arguments: inout StepArguments) throws(RecipeError)
    /// The arguments in canonical form without the separating colons. Defaults are dropped.
    var canonicalArguments: [String] { get }
    /// A plain sentence that describes this step with its values.
    var explanation: String { get }
    /// How the step affects the alpha of the picture.
    var alphaEffect: AlphaEffect { get }
    /// The maximum factor by which the step can amplify a slight difference between two pictures. 1 if the step does
    /// not amplify differences. `infinity` if the step depends on the content (where to trim or crop), because pictures
    /// that look the same could then produce different results or even sizes. Determines which renders may share a
    /// decode.
    var differenceGain: Double { get }
    /// The approximate CPU time in nanoseconds per pixel of the larger of the two pictures before and after the step.
    /// Determines which renders are treated as long (`RenderWork`).
    var nanosecondsPerPixel: Double { get }
    /// The maximum memory of the step, in multiples of the larger of the two pictures before and after the step. 0 if
    /// the step processes the picture row by row. Determines whether a render fits in a worker (`RenderJob.memory`).
    var heldPictures: Double { get }
    /// Returns the step with its pixel quantities multiplied by the `dpr`. Integers are rounded half up and are at
    /// least 1.
    func multiplied(by ratio: Double) -> Self
    /// Returns the picture with the step applied.
    func apply(to picture: Picture, in context: RenderContext) throws(RenderError) -> Picture
}

/// A step that changes the picture's size.
protocol ResizingOperation: VariantOperation {
    /// Returns the size after the step. Returns nil if the size depends on the pixels. Throws `notApplicable` if the
    /// step cannot be applied to `size`.
    func resultSize(of size: PixelSize) throws(RenderError) -> PixelSize?
}

/// A step that multiplies the property that it is named after, such as the brightness: `NAME:F`.
protocol FactorOperation: VariantOperation {
    /// The factor, 0…4. 1 leaves the picture unchanged.
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

/// How a step affects the alpha of the picture.
package enum AlphaEffect: Sendable, Hashable {
    case keeps
    /// Adds partial alpha, as a mask does.
    case adds
    case removes
    /// Uncovers areas that show the background, which is the color of the last `background` step or transparent. If the
    /// background is not opaque, antialiased edges are partly transparent.
    case uncovers(antialiased: Bool)
    /// Sets the background and flattens existing alpha onto it. No alpha is left if the background is opaque.
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

    /// Returns the step with one value replaced.
    func setting<Value>(_ property: WritableKeyPath<Self, Value>, to value: Value) -> Self {
        var result = self
        result[keyPath: property] = value
        return result
    }

    /// The complete step in canonical form.
    var canonicalText: String { ([Self.token] + canonicalArguments).joined(separator: ":") }
}
