/// One step of a recipe: parsed from text, written back canonically, applied to a picture.
///
/// A member is one file here, one line in `Catalogue`, and one test file.
public protocol VariantOperation: Sendable {
    /// The step's name in recipe text.
    static var token: String { get }
    /// How the step is written, for example `blur:S`.
    static var grammar: String { get }
    /// What the letters of the grammar stand for, with ranges and defaults; empty without arguments.
    static var ranges: String { get }
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
    /// How many times stronger the step makes a slight difference between two pictures, at most; 1 unless it strengthens
    /// any, `infinity` where it chooses by looking at the pixels (what to trim, where to crop), so that pictures which
    /// look the same may come out of it different, even in size. Decides what may share a decode.
    var differenceGain: Double { get }
    /// The step with its pixel quantities multiplied (`dpr`), integers rounded half up, at least 1.
    func multiplied(by ratio: Double) -> Self
    /// Applies the step.
    func apply(to picture: Picture, in context: RenderContext) throws(RenderError) -> Picture
}

/// A step that changes the picture's size.
protocol ResizingOperation: VariantOperation {
    /// The size after the step; nil if it depends on the pixels. Throws `notApplicable` for a size that the step cannot be
    /// applied to.
    func resultSize(of size: PixelSize) throws(RenderError) -> PixelSize?
}

/// How a step changes whether the picture has alpha.
public enum AlphaEffect: Sendable, Hashable {
    case keeps
    /// Partial alpha, as a mask leaves it.
    case adds
    case removes
    /// Shows the background where the picture does not reach: that of the last `background` step, else transparent.
    /// Antialiased edges are partly transparent then.
    case uncovers(antialiased: Bool)
    /// Sets the background; alpha present is flattened onto it when it is opaque.
    case flattens(isOpaque: Bool)
}

extension VariantOperation {
    public static var ranges: String { "" }
    public var explanation: String { Self.summary }
    public var alphaEffect: AlphaEffect { .keeps }
    public var differenceGain: Double { 1 }
    public func multiplied(by ratio: Double) -> Self { self }

    /// The whole step in canonical form.
    var canonicalText: String { ([Self.token] + canonicalArguments).joined(separator: ":") }
}
