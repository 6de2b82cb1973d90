/// Rotates the picture clockwise. `rotate:90|180|270|DEG`.
struct Rotate: VariantOperation {
    static let token = "rotate"
    static let grammar = "rotate:90|180|270|DEG"
    static let ranges = "DEG 0…360, clockwise (360 is 0)"
    static let summary = "Rotates clockwise; angles other than quarter turns leave corners that show the background."
    static let example = "rotate:90"

    /// Clockwise.
    var degrees: Double

    init(_ arguments: inout StepArguments) throws(RecipeError) {
        let value = try arguments.decimal(try arguments.next("an angle in degrees"), "the angle", 0...360)
        degrees = value == 360 ? 0 : value
    }

    var canonicalArguments: [String] { [PlainNumber.text(degrees)] }
    var explanation: String { "Turns \(PlainNumber.text(degrees))° clockwise." }

    var alphaEffect: AlphaEffect {
        degrees.truncatingRemainder(dividingBy: 90) == 0 ? .keeps : .uncovers(antialiased: true)
    }
}
