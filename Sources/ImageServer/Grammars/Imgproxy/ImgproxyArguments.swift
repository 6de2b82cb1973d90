import PipelineSupport
import Variants

/// The arguments of one option as written. An empty argument leaves the value unchanged.
struct ImgproxyArguments {
    let option: Substring
    var values: ArraySlice<Substring>

    /// Returns the argument at a position, or nil if it is missing or empty.
    subscript(_ index: Int) -> Substring? {
        guard values.indices.contains(values.startIndex + index) else { return nil }
        let value = values[values.startIndex + index]
        return value.isEmpty ? nil : value
    }

    func problem(_ value: Substring, _ expected: String) -> ImgproxyProblem {
        .invalidURL("`\(option)`: expected \(expected), not `\(value.prefix(40))`")
    }

    func read(flag index: Int, into value: inout Bool) {
        if let text = self[index] { value = ["1", "t", "T", "true", "True", "TRUE"].contains(text) }
    }

    /// Reads a plain decimal number: no exponent, and a sign only if `range` contains negative numbers.
    func read(
        _ index: Int, into value: inout Double, _ range: ClosedRange<Double> = 0...999_999_999, isWhole: Bool = false
    ) throws(ImgproxyProblem) {
        guard let text = self[index] else { return }
        let digits = text.utf8.first == UInt8(ascii: "-") && range.lowerBound < 0 ? text.dropFirst() : text
        let parts = ImgproxyReader.split(digits, ".")
        let isPlain =
            parts.count <= (isWhole ? 1 : 2) && parts.last?.isEmpty == false && text.utf8.count <= 24
            && parts.allSatisfy { $0.utf8.allSatisfy(\.isDigit) }
        guard isPlain, let number = Double(parts[0].isEmpty ? "0" + digits : String(digits)),
            case let signed = digits.startIndex == text.startIndex ? number : -number, range.contains(signed)
        else {
            let limit = range.upperBound < 1e8 ? "\(range.lowerBound)…\(range.upperBound)" : "plain, without exponent"
            throw problem(text, "a\(isWhole ? " whole" : "") number (\(limit))")
        }
        value = signed
    }

    /// Reads `type:x:y`. Ranges of the numbers depend on the type.
    ///
    /// - Parameter smart: whether the type may be `sm`.
    func read(gravity value: inout ImgproxyOptions.Gravity, smart: Bool) throws(ImgproxyProblem) {
        let hasNumbers = (self[1] != nil, self[2] != nil)
        if let text = self[0] {
            guard !["obj", "objw"].contains(text) else { throw ImgproxyOptionTable.commercial("\(option):\(text)") }
            guard let kind = ImgproxyOptions.Gravity.Kind(rawValue: String(text)), smart || kind != .sm else {
                throw problem(text, "ce, no, so, ea, we, noea, nowe, soea, sowe\(smart ? ", sm" : "") or fp")
            }
            guard kind != .fp || hasNumbers == (true, true) else {
                throw .invalidURL("`\(option)`: the gravity `fp` needs two numbers, 0…1")
            }
            value.kind = kind
        }
        guard value.kind != .sm || hasNumbers == (false, false) else {
            throw .invalidURL("`\(option)`: the gravity `sm` has no offsets")
        }
        let isPoint = value.kind == .fp
        let path = isPoint ? \ImgproxyOptions.Gravity.focus : \.offset
        let range = isPoint ? 0...1 : -999_999_999...999_999_999.0
        try read(1, into: &value[keyPath: path].x, range)
        try read(2, into: &value[keyPath: path].y, range)
        if self[0] != nil || hasNumbers != (false, false) { value.isGiven = true }
    }

    func color(_ text: Substring) throws(ImgproxyProblem) -> String {
        let digits = text.utf8.count == 3 ? String(text.flatMap { [$0, $0] }) : String(text)
        guard digits.utf8.count == 6, digits.utf8.allSatisfy({ hexValue($0) != nil }) else {
            throw problem(text, "three or six hexadecimal digits")
        }
        return digits.lowercased()
    }
}
