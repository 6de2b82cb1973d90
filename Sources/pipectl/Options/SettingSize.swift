import PipelineSupport

/// A size in bytes, or a percentage of the total memory or disk space (`10%`).
enum SettingSize: Sendable, Hashable {
    case bytes(Int)
    case share(Double)

    /// Units by lowercase name. Units with an `i` are powers of 1024, and the others are powers of 1000.
    private static let units: [(name: String, factor: Double)] = [
        ("", 1), ("b", 1), ("k", 1e3), ("kb", 1e3), ("m", 1e6), ("mb", 1e6), ("g", 1e9), ("gb", 1e9), ("t", 1e12),
        ("tb", 1e12), ("kib", 1024), ("mib", 1_048_576), ("gib", 1_073_741_824), ("tib", 1_099_511_627_776),
    ]

    /// Parses `512MB`, `1.5 GiB`, `4096` or `10%`. Returns nil if the string is not a size, or if the size is negative,
    /// above 100% or above 2⁶² bytes.
    init?(_ text: String) {
        let digits = text.prefix { $0.isASCII && ($0.isNumber || $0 == ".") }
        guard let first = digits.first, first != ".", digits.last != ".", let number = Double(digits) else {
            return nil
        }
        var unit = text.dropFirst(digits.count)
        while unit.first == " " { unit = unit.dropFirst() }
        if unit == "%" {
            guard number <= 100 else { return nil }
            self = .share(number / 100)
            return
        }
        guard let factor = Self.units.first(where: { $0.name == unit.lowercased() })?.factor,
            number * factor <= 0x1p62
        else { return nil }
        self = .bytes(Int((number * factor).rounded()))
    }

    /// Returns the size in bytes. `total` is evaluated only if the size is a percentage.
    func bytes(of total: @autoclosure () -> Int) -> Int {
        switch self {
        case .bytes(let count): count
        case .share(let share): Int(Double(total()) * share)
        }
    }

    /// Returns a number of bytes as a setting, in the largest unit that divides it.
    static func text(_ bytes: Int) -> String {
        let units = [
            ("GB", 1_000_000_000), ("GiB", 1 << 30), ("MB", 1_000_000), ("MiB", 1 << 20), ("KiB", 1024), ("kB", 1000),
        ]
        let unit = units.first { bytes > 0 && bytes.isMultiple(of: $0.1) } ?? ("", 1)
        return "\(bytes / unit.1)\(unit.0)"
    }

    static func value(_ bytes: Int) -> SettingValue { bytes == 0 ? .int(0) : .string(text(bytes)) }
}
