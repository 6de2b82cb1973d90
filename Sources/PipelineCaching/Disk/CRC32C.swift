import CChecksum

/// CRC-32C (Castagnoli polynomial, reflected; RFC 3720 appendix B.4). It detects accidental damage, not tampering.
struct CRC32C {
    private var remainder: UInt32 = .max

    /// The checksum of all bytes added so far.
    var value: UInt32 { ~remainder }

    /// Adds bytes to the checksum.
    mutating func update(_ data: UnsafeRawBufferPointer) {
        remainder = crc32c_continued(remainder, data.baseAddress, data.count)
    }

    static func checksum(_ bytes: [UInt8]) -> UInt32 {
        var running = CRC32C()
        bytes.withUnsafeBytes { running.update($0) }
        return running.value
    }
}
