import CChecksum

/// CRC-32C (Castagnoli polynomial, reflected), eight bytes a step: finds damaged bytes, proves nothing about intent.
///
/// By the processor where it can, some ten times as fast as by tables.
///
/// Source: RFC 3720 appendix B.4 for the polynomial and the test values; "slicing by 8" after Kounavis and Berry (2005).
struct CRC32C {
    /// Table `t[k * 256 + b]`: the remainder of byte `b` followed by `k` zero bytes.
    private static let table: [UInt32] = {
        var table = [UInt32](repeating: 0, count: 8 * 256)
        for byte in 0..<256 {
            var remainder = UInt32(byte)
            for _ in 0..<8 { remainder = remainder & 1 == 1 ? remainder >> 1 ^ 0x82F6_3B78 : remainder >> 1 }
            table[byte] = remainder
        }
        for byte in 256..<8 * 256 {
            let before = table[byte - 256]
            table[byte] = before >> 8 ^ table[Int(before & 0xFF)]
        }
        return table
    }()

    static func checksum(_ bytes: [UInt8]) -> UInt32 {
        var running = CRC32C()
        bytes.withUnsafeBytes { running.update($0) }
        return running.value
    }

    private var remainder: UInt32 = .max

    init() {}

    /// The checksum of everything taken in so far.
    var value: UInt32 { ~remainder }

    /// Takes further bytes in.
    mutating func update(_ data: UnsafeRawBufferPointer) {
        if Self.isInstruction {
            remainder = crc32c_continued(remainder, data.baseAddress, data.count)
        } else {
            updateByTable(data)
        }
    }

    private static let isInstruction = crc32c_is_supported()

    /// The same without the instruction.
    mutating func updateByTable(_ data: UnsafeRawBufferPointer) {
        remainder = Self.table.withUnsafeBufferPointer { Self.continued(remainder, over: data, $0) }
    }

    private static func continued(
        _ start: UInt32, over data: UnsafeRawBufferPointer, _ table: UnsafeBufferPointer<UInt32>
    ) -> UInt32 {
        var crc = start
        var at = 0
        while at + 8 <= data.count {
            let word = UInt64(littleEndian: data.loadUnaligned(fromByteOffset: at, as: UInt64.self)) ^ UInt64(crc)
            crc = table[Int(7 * 256 + (word & 0xFF))] ^ table[Int(6 * 256 + (word >> 8 & 0xFF))]
            crc ^= table[Int(5 * 256 + (word >> 16 & 0xFF))] ^ table[Int(4 * 256 + (word >> 24 & 0xFF))]
            crc ^= table[Int(3 * 256 + (word >> 32 & 0xFF))] ^ table[Int(2 * 256 + (word >> 40 & 0xFF))]
            crc ^= table[Int(256 + (word >> 48 & 0xFF))] ^ table[Int(word >> 56)]
            at += 8
        }
        while at < data.count {
            crc = crc >> 8 ^ table[Int((crc ^ UInt32(data[at])) & 0xFF)]
            at += 1
        }
        return crc
    }
}
