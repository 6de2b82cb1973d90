/// Parses and formats the numbers in recipes: plain decimals without a sign or exponent, with up to six decimal places.
///
/// The limit of six places makes the text form exact. Each parsed value is a whole number of millionths, so formatting
/// and parsing it again returns the same value.
package enum PlainNumber {
    private static let unit = 1_000_000.0

    /// Parses numbers such as `12`, `0.5` or `080`. Returns nil if the text has a different form. Rounds half up to six
    /// places. Returns infinity, which is outside every range, if there are more than nine digits before the decimal
    /// point.
    package static func parse(_ text: some StringProtocol) -> Double? {
        let parts = text.utf8.split(separator: UInt8(ascii: "."), maxSplits: 1, omittingEmptySubsequences: false)
        guard let whole = parts.first, isDigits(whole) else { return nil }
        let significant = whole.drop { $0 == UInt8(ascii: "0") }
        guard parts.count == 1 || isDigits(parts[1]) else { return nil }
        guard significant.count <= 9 else { return .infinity }
        var millionths = significant.reduce(0) { $0 * 10 + Int($1 - 48) } * 1_000_000
        if parts.count == 2 {
            var place = 100_000
            for digit in parts[1].prefix(6) {
                millionths += Int(digit - 48) * place
                place /= 10
            }
            if let seventh = parts[1].dropFirst(6).first, seventh >= UInt8(ascii: "5") { millionths += 1 }
        }
        return Double(millionths) / unit
    }

    /// Parses a whole number. Returns nil if the text does not consist of digits, and `Int.max` if there are more than
    /// nine digits.
    package static func parseWhole(_ text: some StringProtocol) -> Int? {
        guard isDigits(text.utf8) else { return nil }
        let significant = text.utf8.drop { $0 == UInt8(ascii: "0") }
        return significant.count <= 9 ? significant.reduce(0) { $0 * 10 + Int($1 - 48) } : .max
    }

    /// Returns the shortest plain decimal, such as `80` or `0.5`. The value must be in the range −10⁹…10⁹.
    package static func text(_ value: Double) -> String {
        guard value >= 0 else { return "-" + text(-value) }
        let millionths = Int((value * unit).rounded())
        let (whole, rest) = millionths.quotientAndRemainder(dividingBy: 1_000_000)
        guard rest > 0 else { return String(whole) }
        let digits = String(rest)
        var places = String(repeating: "0", count: 6 - digits.count) + digits
        while places.hasSuffix("0") { places.removeLast() }
        return "\(whole).\(places)"
    }

    /// Rounds to six decimal places.
    static func rounded(_ value: Double) -> Double { (value * unit).rounded() / unit }

    /// Returns `value` × `ratio`, rounded half up and computed exactly in integers. The result is at least `least`.
    static func scaled(_ value: Int, by ratio: Double, least: Int = 1) -> Int {
        guard value <= 999_999_999 else { return .max }
        let millionths = value * Int((ratio * unit).rounded())
        return max(least, (millionths + 500_000) / 1_000_000)
    }

    /// Returns `value` × `ratio`, rounded to six decimal places.
    static func scaled(_ value: Double, by ratio: Double) -> Double { rounded(value * ratio) }

    private static func isDigits(_ bytes: some Collection<UInt8>) -> Bool {
        !bytes.isEmpty && bytes.allSatisfy { $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }
    }
}
