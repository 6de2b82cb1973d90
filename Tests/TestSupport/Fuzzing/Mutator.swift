/// Turns valid parser input into almost valid input.
///
/// The mutator gets no feedback from the parser, so the seeds and the dictionary must cover the important cases.
public struct Mutator: Sendable {
    private let seeds: [[UInt8]]
    private let words: [[UInt8]]
    private let limit: Int

    /// - Parameters:
    ///   - seeds: Examples, always in the same order.
    ///   - words: Meaningful byte sequences, which are inserted into inputs or overwrite parts of them.
    ///   - limit: The maximum length of an input, in bytes.
    public init(seeds: [[UInt8]], words: [[UInt8]] = [], limit: Int) {
        self.seeds = seeds.isEmpty ? [[]] : seeds
        self.words = words.isEmpty ? [[0], [0xFF]] : words
        self.limit = limit
    }

    /// Returns an input. One in sixteen inputs is an unchanged seed. The others have one to eight changes.
    public func input(_ random: inout FuzzRandom) -> [UInt8] {
        var bytes = seeds[random.below(seeds.count)]
        guard random.below(16) > 0 else { return bytes }
        for _ in 0...random.below(8) { change(&bytes, &random) }
        return bytes.count > limit ? Array(bytes[..<limit]) : bytes
    }

    /// Makes one change: flips a bit, replaces a byte, writes boundary values, inserts a word or overwrites a part with
    /// it, or removes, truncates, repeats, moves or splices a part from another seed.
    public func change(_ bytes: inout [UInt8], _ random: inout FuzzRandom) {
        let at = random.below(bytes.count + 1)
        let length = min(bytes.count - at, 1 + random.below(random.below(4) == 0 ? 256 : 8))
        switch random.below(11) {
        case 0, 1:
            if at < bytes.count { bytes[at] ^= 1 << UInt8(random.below(8)) }
        case 2:
            if at < bytes.count { bytes[at] = UInt8(truncatingIfNeeded: random.next()) }
        case 3:
            let bounds: [UInt8] = [0, 1, 0x7F, 0x80, 0xFE, 0xFF]
            let value = bounds[random.below(bounds.count)]
            for index in at..<min(bytes.count, at + (1 << random.below(4))) { bytes[index] = value }
        case 4:
            bytes.insert(contentsOf: words[random.below(words.count)], at: at)
        case 5:
            let word = words[random.below(words.count)]
            bytes.replaceSubrange(at..<min(bytes.count, at + word.count), with: word)
        case 6:
            bytes.removeSubrange(at..<at + length)
        case 7:
            bytes.removeSubrange(at...)
        case 8:
            let part = Array(bytes[at..<at + length])
            let most = max(1, (limit - bytes.count) / max(1, part.count))
            let times = 1 + random.below(min(most, random.below(8) == 0 ? 1000 : 4))
            bytes.insert(contentsOf: Array(repeating: part, count: times).joined(), at: at)
        case 9:
            let other = seeds[random.below(seeds.count)]
            let start = random.below(other.count + 1)
            bytes.replaceSubrange(at..<bytes.count, with: other[start...])
        default:
            let part = bytes[at..<at + length]
            bytes.removeSubrange(at..<at + length)
            bytes.insert(contentsOf: part, at: random.below(bytes.count + 1))
        }
    }
}
