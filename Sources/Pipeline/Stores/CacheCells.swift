import CFiles

/// The entries of a `CacheIndex`: a table in which a key is found with one wait for memory.
///
/// All that a look-up compares and changes lies in one cell of a line of the processor's cache; with the keys of the
/// memory tiers that is 64 bytes. Cells lie in the order of their hashes, the next free one where that is taken, and are
/// 57 to 85 % full: the lines that a key may be in are fetched together. As they move when others come and go, an entry
/// is known to the queue and to the names by the number of a slot, which stays.
///
/// @unchecked Sendable because nodes are, and the memory is this table's own.
struct CacheCells<Key: CacheIndexKey>: ~Copyable, @unchecked Sendable {
    struct Cell: BitwiseCopyable {
        fileprivate(set) var key: Key
        /// nil: the cell is free, and the rest of it means nothing.
        fileprivate(set) var node: Unmanaged<CacheNode>?
        private var cost: Double
        private var since: Double
        /// Bytes above, whether it has a name, and uses in the lowest eight bits.
        private var rest: UInt64
        fileprivate var hash: UInt32
        /// Below `UInt32.max`.
        fileprivate(set) var slot: UInt32

        fileprivate init(key: Key, node: Unmanaged<CacheNode>, hash: UInt32, slot: UInt32) {
            (self.key, self.node, self.hash, self.slot) = (key, node, hash, slot)
            (cost, since, rest) = (0, 0, 0)
        }

        var size: Int { Int(rest >> 9) }

        var entry: EvictionEntry {
            @inline(__always) get {
                EvictionEntry(size: size, cost: cost, uses: UInt8(truncatingIfNeeded: rest), since: since)
            }
            set {
                (cost, since) = (newValue.cost, newValue.since)
                rest = UInt64(min(newValue.size, 1 << 54)) << 9 | rest & 0x100 | UInt64(newValue.uses)
            }
        }

        var isNamed: Bool {
            get { rest & 0x100 != 0 }
            set { rest = rest & ~0x100 | (newValue ? 0x100 : 0) }
        }
    }

    private struct Slot {
        /// Of the one element of the queue that counts; 0: the slot is free.
        var stamp: UInt32
        /// Where to look for its cell; of a free slot the next one that is free.
        var hash: UInt32
    }

    private var memoryOfCells: LineMemory?
    private var cells: UnsafeMutablePointer<Cell>?
    private var capacity = 0
    private(set) var count = 0
    private var slots: [Slot] = []
    private var lastStamp: UInt32 = 0
    private var firstFree = UInt32.max
    private var leases = CacheLeases()

    init() {}

    deinit {
        leases.settleAll()
        for at in 0..<capacity { cells?[at].node?.release() }
    }

    /// Slots that have been taken at some time: the numbers below this.
    var used: Int { slots.count }
    /// Bytes of memory as allocated now, nodes included.
    var memory: Int {
        capacity * MemoryLayout<Cell>.stride + slots.capacity * MemoryLayout<Slot>.stride + count * CacheNode.bytes
    }

    // MARK: Looking up

    /// A cell; where it lies holds until an entry comes or goes.
    subscript(at: Int) -> Cell {
        get { cells.unsafelyUnwrapped[at] }
        nonmutating _modify { yield &cells.unsafelyUnwrapped[at] }
    }

    private func home(_ hash: UInt32) -> Int { Int(truncatingIfNeeded: (UInt64(hash) &* UInt64(capacity)) >> 32) }

    private func after(_ at: Int) -> Int { at + 1 == capacity ? 0 : at + 1 }

    /// Has the lines fetched in which a key may be.
    @inline(__always)
    func prefetch(_ hash: UInt32) {
        guard let cells else { return }
        let at = home(hash)
        // Beyond the end is no harm: it is only a hint.
        for next in 0..<4 { prefetch_line(cells + at + next) }
    }

    /// The cell of a key.
    @inline(__always)
    func find(_ key: Key, _ hash: UInt32) -> Int? {
        guard let cells else { return nil }
        var at = home(hash)
        while cells[at].node != nil {
            if cells[at].hash == hash, cells[at].key == key { return at }
            at = after(at)
        }
        return nil
    }

    /// The cell of a slot that is taken.
    func cell(of slot: UInt32) -> Int {
        let cells = cells.unsafelyUnwrapped
        var at = home(slots[Int(slot)].hash)
        while cells[at].slot != slot || cells[at].node == nil { at = after(at) }
        return at
    }

    func stamp(of slot: UInt32) -> UInt32 { slots[Int(slot)].stamp }

    func node(_ at: Int) -> CacheNode { self[at].node.unsafelyUnwrapped.takeUnretainedValue() }

    /// The cell of a key, and its node for somebody who has it longer than this table may.
    ///
    /// The lease is made ready while the cell is fetched: what counts references waits for all that was read before it.
    @inline(__always)
    mutating func lease(_ key: Key, _ hash: UInt32) -> (at: Int, lease: CacheLease)? {
        prefetch(hash)
        let lease = leases.next()
        guard let at = find(key, hash) else { return nil }
        leases.stand(for: self[at].node.unsafelyUnwrapped)
        return (at, lease)
    }

    // MARK: Changing

    /// Adds an entry under a key that has none; `place` has to follow.
    /// - Returns: its cell.
    mutating func insert(_ key: Key, _ node: CacheNode, hash: UInt32) -> Int {
        if (count + 1) * 20 > capacity * 17 { grow() }
        let slot: UInt32
        if firstFree == .max {
            if slots.count == slots.capacity { slots.reserveCapacity(slots.count + slots.count / 4 + 8) }
            slot = UInt32(slots.count)
            slots.append(Slot(stamp: 0, hash: hash))
        } else {
            slot = firstFree
            firstFree = slots[Int(slot)].hash
            slots[Int(slot)].hash = hash
        }
        count += 1
        return put(Cell(key: key, node: .passRetained(node), hash: hash, slot: slot))
    }

    private mutating func put(_ cell: Cell) -> Int {
        var at = home(cell.hash)
        while self[at].node != nil { at = after(at) }
        self[at] = cell
        return at
    }

    /// A quarter more at a time, or as much as pages of 2 MB hold where there are several. The order stays, so that both are
    /// gone through from the beginning to the end.
    private mutating func grow() {
        let (before, old, length) = (cells, memoryOfCells, capacity)
        let bytes = LineMemory.wholePages(max(16, length + length / 4) * MemoryLayout<Cell>.stride)
        capacity = bytes / MemoryLayout<Cell>.stride
        let memory = LineMemory(bytes: bytes)
        cells = memory.start.bindMemory(to: Cell.self, capacity: capacity)
        memoryOfCells = memory
        for at in 0..<length {
            if let cell = before?[at], cell.node != nil { _ = put(cell) }
        }
        withExtendedLifetime(old) {}
    }

    /// Puts a node in the place of another.
    mutating func replace(_ at: Int, with node: CacheNode) {
        let before = self[at].node.unsafelyUnwrapped
        leases.settle(before)
        self[at].node = .passRetained(node)
        before.release()
    }

    /// A stamp that no element of the queue has for this slot: it counts for those pushed from now on.
    mutating func place(_ slot: UInt32) -> UInt32 {
        lastStamp = max(1, lastStamp &+ 1)
        slots[Int(slot)].stamp = lastStamp
        return lastStamp
    }

    /// Removes an entry; later cells of its run move up so that no run has a hole.
    mutating func remove(_ at: Int) {
        let gone = self[at]
        slots[Int(gone.slot)] = Slot(stamp: 0, hash: firstFree)
        firstFree = gone.slot
        count -= 1
        var hole = at
        var next = after(at)
        while self[next].node != nil {
            // Moves unless its home lies behind the hole, within the run.
            if distance(home(self[next].hash), next) >= distance(hole, next) {
                self[hole] = self[next]
                hole = next
            }
            next = after(next)
        }
        self[hole].node = nil
        let node = gone.node.unsafelyUnwrapped
        leases.settle(node)
        node.release()
    }

    /// Cells from one to a later one.
    private func distance(_ from: Int, _ to: Int) -> Int { to >= from ? to - from : to - from + capacity }
}
