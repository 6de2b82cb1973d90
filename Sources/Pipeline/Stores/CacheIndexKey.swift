/// A key of a `CacheIndex`: what it needs beside equality is a hash that is quick and that nobody outside can aim at.
protocol CacheIndexKey: Equatable, Sendable {
    /// The same for equal keys in one process; all 64 bits are evenly spread.
    var indexHash: UInt64 { get }
}

/// Differs from process to process: sources are text from outside, and a table must not degrade by design of a stranger.
private let seed = (UInt64.random(in: 0 ... .max) | 1, UInt64.random(in: 0 ... .max) | 1)

/// Both halves of the product, folded: every bit of either factor reaches every bit of the result.
@inline(__always)
private func folded(_ left: UInt64, _ right: UInt64) -> UInt64 {
    let product = left.multipliedFullWidth(by: right)
    return product.high ^ product.low
}

extension UInt64: CacheIndexKey {
    var indexHash: UInt64 { folded(self ^ seed.0, seed.1) }
}

/// Sixteen bytes a step, each step a full multiplication by a seeded factor: a fifth of the time that `Hasher` takes for
/// the 64 digits of a key. After wyhash (Wang Yi, 2019).
extension String: CacheIndexKey {
    var indexHash: UInt64 {
        utf8.withContiguousStorageIfAvailable { Self.hash(UnsafeRawBufferPointer($0)) }
            ?? Array(utf8).withUnsafeBytes { Self.hash($0) }
    }

    private static func hash(_ text: UnsafeRawBufferPointer) -> UInt64 {
        func word(_ at: Int) -> UInt64 { text.loadUnaligned(fromByteOffset: at, as: UInt64.self) }
        let (first, second) = seed
        var hash = first ^ UInt64(text.count)
        var at = 0
        while at + 16 <= text.count {
            hash = folded(word(at) ^ second, word(at + 8) ^ hash)
            at += 16
        }
        var tail: (UInt64, UInt64) = (0, 0)
        let rest = text.count - at
        if rest >= 8 {
            // The words overlap, so that all bytes left are in one of them.
            tail = (word(at), word(text.count - 8))
        } else if text.count >= 8 {
            tail.0 = rest == 0 ? 0 : word(text.count - 8)
        } else {
            for byte in text { tail.0 = tail.0 << 8 | UInt64(byte) }
        }
        return folded(tail.0 ^ second ^ hash, folded(tail.1 ^ first, hash | 1) ^ second)
    }
}
