/// Orders names as people expect: `a2` before `a10`, and `B` between `a` and `c`.
package enum NaturalOrder {
    /// Whether the first name comes before the second.
    ///
    /// Runs of digits are compared by value, ASCII letters case-insensitively, and everything else by its bytes. Names
    /// that are equal by these rules are ordered by their bytes, so that two different names always have an order.
    package static func precedes(_ first: some Collection<UInt8>, _ second: some Collection<UInt8>) -> Bool {
        let result = first.withContiguousStorageIfAvailable { first in
            second.withContiguousStorageIfAvailable { precedes(first, $0) }
        }
        return (result ?? nil) ?? precedes(Array(first), Array(second))
    }

    /// This method is not generic, because sorting a folder with 100,000 names calls it 1.7 million times.
    package static func precedes(_ first: UnsafeBufferPointer<UInt8>, _ second: UnsafeBufferPointer<UInt8>) -> Bool {
        var (a, b) = (0, 0)
        while a < first.count, b < second.count {
            if first[a].isDigit, second[b].isDigit {
                let (left, right) = (number(in: first, at: a), number(in: second, at: b))
                if left.count != right.count { return left.count < right.count }
                for (x, y) in zip(left, right) where first[x] != second[y] { return first[x] < second[y] }
                (a, b) = (left.upperBound, right.upperBound)
            } else {
                let (x, y) = (lowercase(first[a]), lowercase(second[b]))
                if x != y { return x < y }
                (a, b) = (a + 1, b + 1)
            }
        }
        let isOver = (a == first.count, b == second.count)
        return isOver.0 == isOver.1 ? first.lexicographicallyPrecedes(second) : isOver.0
    }

    /// Returns the range of the digits of the number at `start`, without leading zeros.
    private static func number(in name: UnsafeBufferPointer<UInt8>, at start: Int) -> Range<Int> {
        var first = start
        while first < name.count, name[first] == UInt8(ascii: "0") { first += 1 }
        var end = first
        while end < name.count, name[end].isDigit { end += 1 }
        return first..<end
    }

    private static func lowercase(_ byte: UInt8) -> UInt8 {
        (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
    }
}
