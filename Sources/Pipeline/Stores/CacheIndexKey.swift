/// A key of a `CacheIndex`: what it needs beside equality is a hash that is quick and that nobody outside can aim at.
protocol CacheIndexKey: BitwiseCopyable, Equatable, Sendable {
    /// The same for equal keys in one process; all 64 bits are evenly spread.
    var indexHash: UInt64 { get }
}

/// Differs from process to process: sources are text from outside, and a table must not degrade by design of a stranger.
private let seed = (UInt64.random(in: 0 ... .max) | 1, UInt64.random(in: 0 ... .max) | 1)

/// Both halves of the product, folded: every bit of either factor reaches every bit of the result. After wyhash (Wang Yi,
/// 2019).
@inline(__always)
private func folded(_ left: UInt64, _ right: UInt64) -> UInt64 {
    let product = left.multipliedFullWidth(by: right)
    return product.high ^ product.low
}

extension UInt64: CacheIndexKey {
    var indexHash: UInt64 { folded(self ^ seed.0, seed.1) }
}

extension MemoryKey: CacheIndexKey {
    /// Half of a digest says which it is.
    var indexHash: UInt64 { folded(words.0 ^ seed.0, words.1 ^ seed.1) }
}
