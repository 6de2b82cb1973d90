struct Flip: VariantOperation {
    static let token = "flip"
    static let grammar = "flip:h|v|hv"
    static let ranges = "`h` left and right, `v` top and bottom, `hv` both"
    static let summary = "Mirrors the picture."
    static let example = "flip:h"

    private enum Axes: String, CaseIterable { case h, v, hv }

    var horizontally: Bool
    var vertically: Bool

    init(_ arguments: inout StepArguments) throws(RecipeError) {
        let axes: Axes = try arguments.word(try arguments.next("`h`, `v` or `hv`"), "the direction")
        horizontally = axes != .v
        vertically = axes != .h
    }

    var canonicalArguments: [String] { [(horizontally ? "h" : "") + (vertically ? "v" : "")] }

    var explanation: String {
        horizontally && vertically
            ? "Mirrors left and right, top and bottom."
            : horizontally ? "Mirrors left and right." : "Mirrors top and bottom."
    }

    var heldPictures: Double { vertically ? 2 : 0 }

    func apply(to picture: Picture, in context: RenderContext) throws(RenderError) -> Picture {
        var result = vertically ? try picture.inMemory(context) : try picture.normalized(context)
        if vertically { result.image = try result.image.flipped("vertical") }
        if horizontally { result.image = try result.image.flipped("horizontal") }
        return result
    }
}
