/// Finds small numbers by a hash: an open-addressing table with linear probing, 8 bytes a cell, at most ¾ full.
///
/// Cells hold 32 bits of the hash and the number, so growing and deleting need no look at what the numbers stand for.
/// Several numbers may share a hash: the caller says which one it means.
struct SlotTable: Sendable {
    private var cells: [UInt64] = []
    private(set) var count = 0

    /// No hash and number together look like this: numbers stay below `UInt32.max`.
    private static let empty = UInt64.max

    /// Bytes of memory the table takes.
    var memory: Int { cells.capacity * MemoryLayout<UInt64>.stride }

    private var mask: Int { cells.count - 1 }

    private func home(_ hash: UInt32) -> Int { Int(hash) & mask }

    private static func hash(_ cell: UInt64) -> UInt32 { UInt32(truncatingIfNeeded: cell >> 32) }
    private static func number(_ cell: UInt64) -> UInt32 { UInt32(truncatingIfNeeded: cell) }

    /// The number under `hash` for which `matches` holds.
    @inline(__always)
    func find(_ hash: UInt32, where matches: (UInt32) -> Bool) -> UInt32? {
        if count == 0 { return nil }
        var at = home(hash)
        while cells[at] != Self.empty {
            if Self.hash(cells[at]) == hash, matches(Self.number(cells[at])) { return Self.number(cells[at]) }
            at = (at + 1) & mask
        }
        return nil
    }

    /// Adds a number below `UInt32.max` that is not there under this hash.
    mutating func insert(_ number: UInt32, hash: UInt32) {
        if (count + 1) * 4 > cells.count * 3 { grow() }
        place(UInt64(hash) << 32 | UInt64(number))
        count += 1
    }

    private mutating func place(_ cell: UInt64) {
        var at = home(Self.hash(cell))
        while cells[at] != Self.empty { at = (at + 1) & mask }
        cells[at] = cell
    }

    private mutating func grow() {
        let before = cells
        cells = [UInt64](repeating: Self.empty, count: max(8, before.count * 2))
        for cell in before where cell != Self.empty { place(cell) }
    }

    /// Removes a number, if it is there; later cells of its run move up so that no run has a hole.
    mutating func remove(_ number: UInt32, hash: UInt32) {
        if count == 0 { return }
        let cell = UInt64(hash) << 32 | UInt64(number)
        var hole = home(hash)
        while cells[hole] != cell {
            if cells[hole] == Self.empty { return }
            hole = (hole + 1) & mask
        }
        count -= 1
        var next = (hole + 1) & mask
        while cells[next] != Self.empty {
            // Moves unless its home lies behind the hole, within the run.
            let distance = (next - home(Self.hash(cells[next]))) & mask
            if distance >= (next - hole) & mask {
                cells[hole] = cells[next]
                hole = next
            }
            next = (next + 1) & mask
        }
        cells[hole] = Self.empty
    }
}
