/// Multiplies alpha with a picture from the mask folder. `mask:NAME[:fit=stretch|cover]`.
struct NamedMask: VariantOperation {
    static let token = "mask"
    static let grammar = "mask:NAME[:fit=stretch|cover]"
    static let ranges = "NAME letters, digits, `_`, `-`, at most 64; fit `stretch`"
    static let summary = "Multiplies alpha with a named mask, scaled to the picture."
    static let example = "mask:star:fit=cover"

    enum Fit: String, Sendable, CaseIterable { case stretch, cover }
    var name: String
    var fit: Fit

    init(_ arguments: inout StepArguments) throws(RecipeError) {
        name = try arguments.name(try arguments.next("the name of a mask"), "the name of a mask")
        let options = try arguments.options(keys: ["fit"])
        fit = .stretch
        if let text = options.values["fit"] { fit = try arguments.word(text, "`fit=`") }
    }

    var canonicalArguments: [String] { [name] + (fit == .stretch ? [] : ["fit=\(fit.rawValue)"]) }

    var explanation: String {
        fit == .cover
            ? "Masks with `\(name)`, scaled to cover the picture." : "Masks with `\(name)`, stretched to the picture."
    }

    var alphaEffect: AlphaEffect { .adds }
}
