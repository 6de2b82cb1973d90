import CChecksum

/// CRC-32C (Castagnoli polynomial, reflected; RFC 3720 appendix B.4): finds damaged bytes, proves nothing about intent.
struct CRC32C {
    private var remainder: UInt32 = .max

    /// The checksum of everything taken in so far.
    var value: UInt32 { ~remainder }

    /// Takes further bytes in.
    mutating func update(_ data: UnsafeRawBufferPointer) {
        remainder = crc32c_continued(remainder, data.baseAddress, data.count)
    }

    static func checksum(_ bytes: [UInt8]) -> UInt32 {
        var running = CRC32C()
        bytes.withUnsafeBytes { running.update($0) }
        return running.value
    }
}
