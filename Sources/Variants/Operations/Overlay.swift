/// Lays a named picture over this one. `overlay:NAME[:gravity=G][:opacity=F][:scale=F]`.
struct Overlay: VariantOperation {
    static let token = "overlay"
    static let grammar = "overlay:NAME[:gravity=G][:opacity=F][:scale=F]"
    static let ranges =
        "NAME as for masks; G `centre`, one of the nine places; opacity 0…1 (1); scale 0.01…100 (1), times its own size"
    static let summary = "Lays a named picture from the overlay folder over this one."
    static let example = "overlay:logo:gravity=south-east:opacity=0.8"

    var name: String
    /// Where it is placed; never `attention` or `entropy`.
    var gravity: Gravity
    /// 0…1.
    var opacity: Double
    /// A factor for the overlay's own size.
    var scale: Double

    init(_ arguments: inout StepArguments) throws(RecipeError) {
        name = try arguments.name(try arguments.next("the name of an overlay"), "the name of an overlay")
        let values = try arguments.options(keys: ["gravity", "opacity", "scale"]).values
        gravity = .centre
        opacity = 1
        scale = 1
        if let text = values["gravity"] { gravity = try arguments.word(text, "the gravity", Gravity.places) }
        if let text = values["opacity"] { opacity = try arguments.factor(text, "the opacity", 0...1) }
        if let text = values["scale"] { scale = try arguments.factor(text, "the scale", 0.01...100) }
    }

    var canonicalArguments: [String] {
        [name] + (gravity == .centre ? [] : ["gravity=\(gravity.rawValue)"])
            + (opacity == 1 ? [] : ["opacity=\(PlainNumber.text(opacity))"])
            + (scale == 1 ? [] : ["scale=\(PlainNumber.text(scale))"])
    }

    var explanation: String { "Lays `\(name)` over the picture at \(gravity.spoken)." }
}
