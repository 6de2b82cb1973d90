/// A set of distinct colors in insertion order, up to a limit. Uses a hash table with open addressing.
struct ColorTable {
    /// The index of the color in each slot, or -1 if the slot is empty. At most half of the slots are used, so that
    /// searches are short.
    private var slots: [Int32]
    private let shift: UInt32
    private let limit: Int
    private(set) var colors: [UInt32] = []

    init(limit: Int) {
        let bits = Int.bitWidth - (2 * limit).leadingZeroBitCount
        slots = Array(repeating: -1, count: 1 << bits)
        shift = UInt32(32 - bits)
        self.limit = limit
    }

    /// Inserts a color. Returns false if the color is new and the table is full.
    @discardableResult mutating func insert(_ color: UInt32) -> Bool {
        let slot = slot(of: color)
        if slots[slot] >= 0 { return true }
        guard colors.count < limit else { return false }
        slots[slot] = Int32(colors.count)
        colors.append(color)
        return true
    }

    /// Returns the index of a color that has been inserted.
    func index(of color: UInt32) -> Int { Int(slots[slot(of: color)]) }

    private func slot(of color: UInt32) -> Int {
        // Use Fibonacci hashing.
        var slot = Int((color &* 0x9E37_79B9) >> shift)
        while slots[slot] >= 0, colors[Int(slots[slot])] != color { slot = (slot + 1) & (slots.count - 1) }
        return slot
    }
}
