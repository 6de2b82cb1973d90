/// The order in which people expect names: `a2` before `a10`, `B` between `a` and `c`.
package enum NaturalOrder {
    /// Whether the first name comes before the second.
    ///
    /// Runs of digits are compared by value, ASCII letters without regard to case, everything else by its bytes. Names that
    /// are equal so far are ordered by their bytes, so that two different names always have an order.
    package static func precedes(_ first: some Collection<UInt8>, _ second: some Collection<UInt8>) -> Bool {
        var (a, b) = (first[...], second[...])
        while let x = a.first, let y = b.first {
            if isDigit(x), isDigit(y) {
                let (left, right) = (a.prefix(while: isDigit), b.prefix(while: isDigit))
                let (m, n) = (left.drop { $0 == UInt8(ascii: "0") }, right.drop { $0 == UInt8(ascii: "0") })
                if m.count != n.count { return m.count < n.count }
                if !m.elementsEqual(n) { return m.lexicographicallyPrecedes(n) }
                (a, b) = (a.dropFirst(left.count), b.dropFirst(right.count))
            } else {
                if lowercase(x) != lowercase(y) { return lowercase(x) < lowercase(y) }
                (a, b) = (a.dropFirst(), b.dropFirst())
            }
        }
        return a.isEmpty == b.isEmpty ? first.lexicographicallyPrecedes(second) : a.isEmpty
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }

    private static func lowercase(_ byte: UInt8) -> UInt8 {
        (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
    }
}
