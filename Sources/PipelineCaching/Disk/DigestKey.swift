import PipelineSupport

/// A digest or key of 64 hexadecimal digits, in the form of the 32 bytes that the index stores.
struct DigestKey: Hashable, Sendable {
    private var words: (UInt64, UInt64, UInt64, UInt64)

    /// Parses 64 lower-case hexadecimal digits. Returns nil if `text` has a different form.
    init?(_ text: String) {
        var text = text
        let words = text.withUTF8 { digits -> (UInt64, UInt64, UInt64, UInt64)? in
            guard digits.count == 64 else { return nil }
            var isValid = true
            func word(_ start: Int) -> UInt64 {
                var word: UInt64 = 0
                for digit in digits[start..<start + 16] {
                    guard let value = hexValue(digit), !(0x41...0x46).contains(digit) else {
                        isValid = false
                        return 0
                    }
                    word = word << 4 | UInt64(value)
                }
                return word
            }
            let words = (word(0), word(16), word(32), word(48))
            return isValid ? words : nil
        }
        guard let words else { return nil }
        self.words = words
    }

    /// Copies 32 bytes. Returns nil if the length differs.
    init?(bytes: UnsafeRawBufferPointer) {
        guard bytes.count == 32 else { return nil }
        func word(_ at: Int) -> UInt64 { UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: at, as: UInt64.self)) }
        words = (word(0), word(8), word(16), word(24))
    }

    /// The first 64 bits.
    var prefix: Int { Int(bitPattern: UInt(words.0)) }

    /// The digest as 64 lower-case hexadecimal digits.
    var text: String { withBytes { hex($0) } }

    /// Calls `body` with the 32 bytes.
    func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        var bytes = (words.0.bigEndian, words.1.bigEndian, words.2.bigEndian, words.3.bigEndian)
        return withUnsafeBytes(of: &bytes, body)
    }

    /// Returns the first and last of all digests that begin with `digits`. Returns nil unless `digits` consists of 1…64
    /// hexadecimal digits.
    static func range(beginning digits: String) -> (first: DigestKey, last: DigestKey)? {
        guard (1...64).contains(digits.utf8.count) else { return nil }
        let missing = 64 - digits.utf8.count
        guard let first = DigestKey(digits + String(repeating: "0", count: missing)),
            let last = DigestKey(digits + String(repeating: "f", count: missing))
        else { return nil }
        return (first, last)
    }

    static func == (one: DigestKey, other: DigestKey) -> Bool { one.words == other.words }

    func hash(into hasher: inout Hasher) { hasher.combine(words.0) }
}
