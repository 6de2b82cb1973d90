/// A reproducible pseudorandom number generator (SplitMix64, Steele, Lea and Flood 2014). Equal seeds produce equal
/// inputs.
public struct FuzzRandom: RandomNumberGenerator, Sendable {
    private var state: UInt64

    public init(seed: UInt64) { state = seed }

    public mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }

    /// Returns a number from 0 up to but excluding `limit`. Returns 0 if `limit` is 1 or less.
    public mutating func below(_ limit: Int) -> Int { limit > 1 ? Int.random(in: 0..<limit, using: &self) : 0 }
}
