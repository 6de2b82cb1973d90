import PipelineSupport

/// Replaces colours with shades of one colour. `tint:RRGGBB`.
struct Tint: VariantOperation {
    static let token = "tint"
    static let grammar = "tint:RRGGBB"
    static let ranges = "hex digits"
    static let summary = "Turns colours into shades of one colour, from black through it to white."
    static let example = "tint:704214"

    var colour: Colour

    init(_ arguments: inout StepArguments) throws(RecipeError) {
        colour = try Colour(try arguments.next("a colour such as `704214`"), arguments)
    }

    var canonicalArguments: [String] { [colour.text] }
    var explanation: String { "Turns colours into shades of #\(colour.text)." }
}
