/// An entry as a `CacheIndex` holds it: the key, and what the policy knows. What is kept under the key is a subclass's.
///
/// One object with all that a hit looks at, since a hit is mostly waiting for lines of memory.
///
/// @unchecked Sendable because what changes is touched by the index alone, under its owner's lock.
class CacheNode<Key: CacheIndexKey>: @unchecked Sendable {
    final let key: Key
    private final var cost = 0.0
    private final var since = 0.0
    /// Bytes above, whether it has a name, and uses in the lowest eight bits.
    private final var rest: UInt64 = 0

    init(_ key: Key) { self.key = key }

    final var size: Int { Int(rest >> 9) }

    @inline(__always) final var entry: EvictionEntry {
        get { EvictionEntry(size: size, cost: cost, uses: UInt8(truncatingIfNeeded: rest), since: since) }
        set {
            (cost, since) = (newValue.cost, newValue.since)
            rest = UInt64(min(newValue.size, 1 << 54)) << 9 | rest & 0x100 | UInt64(newValue.uses)
        }
    }

    final var isNamed: Bool {
        get { rest & 0x100 != 0 }
        set { rest = rest & ~0x100 | (newValue ? 0x100 : 0) }
    }

    /// Bytes of an object of this class without a subclass's own part, its allocation's header included.
    static var bytes: Int { 16 + MemoryLayout<Key>.size + 3 * 8 + 8 }
}
