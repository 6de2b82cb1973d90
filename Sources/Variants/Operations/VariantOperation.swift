/// One step of a recipe: parsed from text, written back canonically, applied to a picture.
///
/// A member is one file here, one line in `Catalogue`, and one test file.
public protocol VariantOperation: Sendable {
    /// The step's name in recipe text.
    static var token: String { get }
    /// Parses what follows the name.
    init(_ arguments: inout StepArguments) throws(RecipeError)
    /// Arguments in canonical form, defaults dropped: what follows the name, without the colons.
    var canonicalArguments: [String] { get }
    /// How the step changes whether the picture has alpha.
    var alphaEffect: AlphaEffect { get }
    /// The step with its pixel quantities multiplied (`dpr`), integers rounded half up, at least 1.
    func multiplied(by ratio: Double) -> Self
    /// Applies the step. The default refuses with `notAvailable`.
    func apply(to picture: Picture, in context: RenderContext) throws(RenderError) -> Picture
}

public enum AlphaEffect: Sendable { case keeps, adds, removes }

extension VariantOperation {
    public var alphaEffect: AlphaEffect { .keeps }
    public func multiplied(by ratio: Double) -> Self { self }
    public func apply(to picture: Picture, in context: RenderContext) throws(RenderError) -> Picture {
        throw RenderError(.notAvailable, "step `\(Self.token)` is not available yet; leave it out")
    }
}
