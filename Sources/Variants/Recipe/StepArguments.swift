/// Reads the arguments of a step from left to right. Each error names the step and the expected text.
package struct StepArguments: Sendable {
    /// The place where a step was written: the position and text in the caller's recipe, and the path through presets.
    struct Location: Sendable {
        var step: Int
        var text: String
        /// The path through presets. Empty outside presets, otherwise text such as ``in preset `card`, step 2,
        /// `blur:0`: ``.
        var trail = ""

        func error(_ expected: String, suggestion: String? = nil) -> RecipeError {
            RecipeError(step: step, text: text, expected: trail + expected, suggestion: suggestion)
        }
    }

    /// The flags and keyed values after the positional arguments.
    struct Options {
        var flags: Set<String> = []
        var values: [String: Substring] = [:]
    }

    let location: Location
    let token: String
    /// The current device pixel ratio (`dpr`). The ranges of pixel quantities apply after multiplication by the ratio.
    let ratio: Double
    private var rest: ArraySlice<Substring>

    init(_ text: Substring, location: Location, ratio: Double = 1) {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        self.location = location
        self.ratio = ratio
        token = String(parts[0])
        rest = parts.dropFirst()
    }

    var isAtEnd: Bool { rest.isEmpty }

    func error(_ expected: String, suggestion: String? = nil) -> RecipeError {
        location.error(expected, suggestion: suggestion)
    }

    func finish() throws(RecipeError) {
        guard let extra = rest.first else { return }
        throw error("unexpected argument `\(RecipeError.shown(extra))`; `\(token)` has no further arguments")
    }

    // MARK: Positional arguments

    /// Returns the next positional argument. `what` completes the message "expected …".
    mutating func next(_ what: String) throws(RecipeError) -> Substring {
        guard let first = rest.first, !first.isEmpty else { throw error("expected \(what) after `\(token):`") }
        guard !first.contains("=") else {
            throw error("expected \(what) before `\(RecipeError.shown(first))`: arguments with a key must come last")
        }
        rest.removeFirst()
        return first
    }

    /// Returns the next argument. Returns nil if no argument is left, or if the argument has a key or is similar to one
    /// of `flags`.
    mutating func nextIfPositional(unlike flags: [String]) -> Substring? {
        guard let first = rest.first, !first.contains("="), Spelling.nearest(to: first, in: flags) == nil else {
            return nil
        }
        rest.removeFirst()
        return first
    }

    /// Returns four arguments. A single argument is repeated four times.
    mutating func oneOrFour(_ what: String) throws(RecipeError) -> [Substring] {
        var found: [Substring] = []
        repeat { found.append(try next(what)) } while !rest.isEmpty && found.count < 5
        switch found.count {
        case 1: return Array(repeating: found[0], count: 4)
        case 4: return found
        default:
            throw error(
                "expected one or four values after `\(token):`, not \(found.count == 5 ? "more" : String(found.count))")
        }
    }

    // MARK: Flags and keyed arguments

    /// Reads all remaining arguments as flags and `key=value` pairs, in any order. Each may appear once.
    mutating func options(flags: [String] = [], keys: [String] = []) throws(RecipeError) -> Options {
        var options = Options()
        while let argument = rest.popFirst() {
            if let equals = argument.firstIndex(of: "=") {
                let key = String(argument[..<equals])
                let value = argument[argument.index(after: equals)...]
                guard keys.contains(key) else { throw unknown(argument, flags: flags, keys: keys) }
                guard !value.isEmpty else { throw error("expected a value after `\(key)=`") }
                guard options.values.updateValue(value, forKey: key) == nil else {
                    throw error("`\(key)=` is given twice")
                }
            } else {
                guard flags.contains(String(argument)) else { throw unknown(argument, flags: flags, keys: keys) }
                guard options.flags.insert(String(argument)).inserted else {
                    throw error("`\(argument)` is given twice")
                }
            }
        }
        return options
    }

    private func unknown(_ argument: Substring, flags: [String], keys: [String]) -> RecipeError {
        let known = flags + keys.map { $0 + "=" }
        let word = argument.firstIndex(of: "=").map { argument[...$0] } ?? argument
        let nearest = Spelling.nearest(to: word, in: known)
        let shown = RecipeError.shown(argument)
        if known.isEmpty { return error("unexpected argument `\(shown)`; `\(token)` has no further arguments") }
        let list = known.map { "`\($0)`" }.joined(separator: ", ")
        return error("unknown argument `\(shown)`; expected one of \(list)", suggestion: nearest)
    }

    // MARK: Values

    func decimal(
        _ text: some StringProtocol, _ what: String, _ range: ClosedRange<Double>, inPixels: Bool = false
    ) throws(RecipeError) -> Double {
        guard let value = PlainNumber.parse(text) else {
            throw error("\(what) must be a plain decimal number such as `1.5`, not `\(RecipeError.shown(text))`")
        }
        let final = inPixels ? PlainNumber.scaled(value, by: ratio) : value
        guard range.contains(final) else {
            throw outOfRange(
                text, what, PlainNumber.text(range.lowerBound), PlainNumber.text(range.upperBound),
                isScaled: inPixels && ratio != 1)
        }
        return value
    }

    func whole(_ text: some StringProtocol, _ what: String, _ range: ClosedRange<Int>) throws(RecipeError) -> Int {
        guard let value = PlainNumber.parseWhole(text) else {
            throw error("\(what) must be a whole number, not `\(RecipeError.shown(text))`")
        }
        guard range.contains(value) else {
            throw outOfRange(text, what, "\(range.lowerBound)", "\(range.upperBound)", isScaled: false)
        }
        return value
    }

    /// Parses a whole number of pixels. The written number must be at least `least`, and at most `most` after
    /// multiplication by `dpr`.
    func pixels(
        _ text: some StringProtocol, _ what: String, least: Int = 1, most: Int
    ) throws(RecipeError) -> Int {
        guard let value = PlainNumber.parseWhole(text) else {
            throw error("\(what) must be a whole number of pixels, not `\(RecipeError.shown(text))`")
        }
        guard value >= least, PlainNumber.scaled(value, by: ratio, least: least) <= most else {
            throw outOfRange(text, what, "\(least)", "\(most)", isScaled: ratio != 1)
        }
        return value
    }

    private func outOfRange(
        _ text: some StringProtocol, _ what: String, _ low: String, _ high: String, isScaled: Bool
    ) -> RecipeError {
        let after = isScaled ? " after `dpr:\(PlainNumber.text(ratio))`" : ""
        return error("\(what) must be \(low)…\(high)\(after), not `\(RecipeError.shown(text))`")
    }

    /// Parses a percentage such as `50%` or `50pct`. Returns nil if the text is not a percentage.
    func percent(
        _ text: some StringProtocol, _ what: String, _ range: ClosedRange<Double>
    ) throws(RecipeError) -> Double? {
        let suffix = ["%", "pct"].first { text.hasSuffix($0) }
        guard let suffix else { return nil }
        return try decimal(text.dropLast(suffix.count), "\(what) in percent", range)
    }

    /// Parses a factor as a decimal or a percentage (`0.5`, `50%`, `50pct`), rounded to six decimal places.
    func factor(
        _ text: some StringProtocol, _ what: String, _ range: ClosedRange<Double>
    ) throws(RecipeError) -> Double {
        let inPercent = range.lowerBound * 100...range.upperBound * 100
        guard let percent = try percent(text, what, inPercent) else { return try decimal(text, what, range) }
        return PlainNumber.rounded(percent / 100)
    }

    func word<Word: RawRepresentable & CaseIterable>(
        _ text: some StringProtocol, _ what: String, _ words: [Word] = Array(Word.allCases)
    ) throws(RecipeError) -> Word where Word.RawValue == String {
        if let word = words.first(where: { $0.rawValue == text }) { return word }
        let known = words.map(\.rawValue)
        let list = known.map { "`\($0)`" }.joined(separator: ", ")
        throw error(
            "\(what) must be one of \(list), not `\(RecipeError.shown(text))`",
            suggestion: Spelling.nearest(to: text, in: known))
    }

    /// Parses the name of a file or preset: `[A-Za-z0-9][A-Za-z0-9_-]{0,63}`.
    func name(_ text: some StringProtocol, _ what: String) throws(RecipeError) -> String {
        guard RecipeName.isValid(text) else {
            throw error("\(what) must be \(RecipeName.rule), not `\(RecipeError.shown(text))`")
        }
        return String(text)
    }
}

enum RecipeName {
    static let rule = "a letter or digit followed by at most 63 letters, digits, `_` or `-`"

    static func isValid(_ text: some StringProtocol) -> Bool {
        let bytes = text.utf8
        guard let first = bytes.first, bytes.count <= 64, isAlphanumeric(first) else { return false }
        return bytes.allSatisfy { isAlphanumeric($0) || $0 == UInt8(ascii: "_") || $0 == UInt8(ascii: "-") }
    }

    private static func isAlphanumeric(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "a")...UInt8(ascii: "z"):
            true
        default: false
        }
    }
}
