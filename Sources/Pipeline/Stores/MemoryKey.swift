import struct Crypto.SHA256

/// The key of an entry in memory: 24 bytes, compared where they lie, without a look at text elsewhere.
///
/// A digest stands for itself; any other text for its SHA-256 with every bit turned, so that no text has the key of a
/// digest that somebody could know. Of either the first 192 bits are kept: two that agree in them take 2⁹⁶ tries to find.
struct MemoryKey: Sendable {
    let words: (UInt64, UInt64, UInt64)

    init(_ text: String) {
        let parsed = text.utf8.withContiguousStorageIfAvailable { Self.words(ofDigits: UnsafeRawBufferPointer($0)) }
        if let parsed, let words = parsed {
            self.words = words
        } else {
            var text = text
            let hash = text.withUTF8 { Self.hash(UnsafeRawBufferPointer($0)) }
            words = (~hash.0, ~hash.1, ~hash.2)
        }
    }

    private static func hash(_ text: UnsafeRawBufferPointer) -> (UInt64, UInt64, UInt64, UInt64) {
        var hash = SHA256()
        hash.update(bufferPointer: text)
        return hash.finalize().withUnsafeBytes { $0.loadUnaligned(as: (UInt64, UInt64, UInt64, UInt64).self) }
    }

    /// What 64 lower-case hexadecimal digits stand for; nil for any other text.
    private static func words(ofDigits text: UnsafeRawBufferPointer) -> (UInt64, UInt64, UInt64)? {
        guard text.count == 64 else { return nil }
        var wrong: UInt64 = 0
        /// Sixteen digits as the number whose bytes in memory they spell.
        func word(_ at: Int) -> UInt64 {
            packed(text.loadUnaligned(fromByteOffset: at, as: UInt64.self), &wrong)
                | packed(text.loadUnaligned(fromByteOffset: at + 8, as: UInt64.self), &wrong) << 32
        }
        let words = (word(0), word(16), word(32), word(48))
        return wrong == 0 ? (words.0, words.1, words.2) : nil
    }

    /// Eight digits as 32 bits, all at once; `wrong` gets bits where one is no digit.
    @inline(__always)
    private static func packed(_ digits: UInt64, _ wrong: inout UInt64) -> UInt64 {
        let ones: UInt64 = 0x0101_0101_0101_0101
        let nibbles: UInt64 = 0x0F0F_0F0F_0F0F_0F0F
        let isLetter = digits >> 6 & ones
        let values = ((digits & nibbles) &+ 9 &* isLetter) & nibbles
        // Whatever is a digit is the one that its value is written as.
        let written = values &+ 0x30 &* ones &+ ((values &+ 6 &* ones) >> 4 & ones) &* 0x27
        wrong |= written ^ digits
        var bytes = (values << 4 | values >> 8) & 0x00FF_00FF_00FF_00FF
        bytes = (bytes | bytes >> 8) & 0x0000_FFFF_0000_FFFF
        return (bytes | bytes >> 16) & 0xFFFF_FFFF
    }
}

extension MemoryKey: Equatable {
    @inline(__always)
    static func == (left: MemoryKey, right: MemoryKey) -> Bool {
        (left.words.0 ^ right.words.0) | (left.words.1 ^ right.words.1) | (left.words.2 ^ right.words.2) == 0
    }
}
