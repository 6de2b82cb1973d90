import TestSupport

@testable import Variants

/// Files that say or hold more than a picture should, put together byte by byte.
enum HostileFiles {
    private typealias Make = HandmadeImages

    /// A file's expected result. No file may end a worker.
    enum Outcome {
        /// Refused for a limit; the message has its setting and value.
        case over(String, Int)
        /// Refused for more parts than are read, which the message counts.
        case tooMany(String)
        /// Refused with one of these.
        case refused([RenderError.Code])
        case picture
        /// A picture, or an error that says the decoder or a limit refused it.
        case either
    }

    struct File: Sendable, CustomStringConvertible {
        var description: String
        var bytes: @Sendable () throws -> [UInt8]
        var recipe = "thumbnail:20x20,png"
        var outcome: Outcome
        /// For decoding: less where a file must not take long.
        var seconds = 10.0

        init(
            _ description: String, _ outcome: Outcome, recipe: String = "thumbnail:20x20,png", seconds: Double = 10,
            bytes: @escaping @Sendable () throws -> [UInt8]
        ) {
            self.description = description
            self.outcome = outcome
            self.recipe = recipe
            self.seconds = seconds
            self.bytes = bytes
        }
    }

    // MARK: Parts

    /// zlib around zeros (RFC 1950, RFC 1951 with fixed codes): 13 bits for each 258 of them.
    static func zlib(zeros: Int) -> [UInt8] {
        var bytes: [UInt8] = [0x78, 0x01]
        var (held, count): (UInt32, UInt32) = (0, 0)
        func put(_ value: UInt32, _ bits: UInt32) {
            held |= value << count
            count += bits
            while count >= 8 {
                bytes.append(UInt8(truncatingIfNeeded: held))
                held >>= 8
                count -= 8
            }
        }
        put(0b011, 3)  // last block, fixed codes
        put(0b0000_1100, 8)  // a zero: 0x30, most significant bit first
        for _ in 0..<(zeros - 1) / 258 { put(0b101_00011, 8 + 5) }  // length 258, distance 1
        put(0, 7)  // the end
        put(0, 7)
        let left = (zeros - 1) % 258
        precondition(left == 0, "a whole number of matches and one literal")
        // Adler-32 of zeros: the first sum stays 1, the second counts the bytes.
        return bytes + Make.big(zeros % 65_521 << 16 | 1, 4)
    }

    private static let crcTable: [UInt32] = (0..<256).map { index in
        (0..<8).reduce(UInt32(index)) { value, _ in value & 1 == 1 ? 0xEDB8_8320 ^ value >> 1 : value >> 1 }
    }

    /// A chunk with a true checksum, as decoders want of those they take seriously.
    static func chunk(_ type: String, _ data: [UInt8]) -> [UInt8] {
        let covered = Make.ascii(type) + data
        var crc = UInt32.max
        for byte in covered { crc = crcTable[Int((crc ^ UInt32(byte)) & 0xFF)] ^ crc >> 8 }
        return Make.big(data.count, 4) + covered + Make.big(Int(~crc), 4)
    }

    /// A gray 8-bit PNG with pixels that inflate to `zeros` bytes, which need not fit its size.
    static func png(_ width: Int, _ height: Int, zeros: Int? = nil, extra: [UInt8] = []) -> [UInt8] {
        let needed = (width + 1) * height
        // The next number that `zlib` can write; decoders leave what is too much.
        let filled = zeros ?? (needed + 256) / 258 * 258 + 1
        return [0x89, 0x50, 0x4E, 0x47, 13, 10, 26, 10]
            + chunk("IHDR", Make.big(width, 4) + Make.big(height, 4) + [8, 0, 0, 0, 0]) + extra
            + chunk("IDAT", zlib(zeros: filled)) + chunk("IEND", [])
    }

    /// A small JPEG that decodes, with segments after its first marker.
    static func jpeg(_ extra: [UInt8] = [], width: Int = 48, height: Int = 32) throws -> [UInt8] {
        let bytes = try RenderFixture.jpeg(RenderFixture.gradientImage(width, height))
        return Array(bytes[..<2]) + extra + bytes[2...]
    }

    /// A progressive version of the file, with its last scan written again and again.
    static func scans(_ count: Int, between: [UInt8] = []) throws -> [UInt8] {
        let image = try RenderFixture.gradientImage(64, 64)
        let bytes = try VipsCall("jpegsave_buffer", ["in": .image(image), "interlace": true]).bytes()
        var last = bytes.count - 2
        while last > 0, !(bytes[last] == 0xFF && bytes[last + 1] == 0xDA) { last -= 1 }
        let scan = Array(bytes[last..<bytes.count - 2])
        return Array(bytes[..<last]) + Array(repeating: between + scan, count: count).joined() + [0xFF, 0xD9]
    }

    static func repeated(_ bytes: [UInt8], _ count: Int) -> [UInt8] {
        Array(Array(repeating: bytes, count: count).joined())
    }

    static func gif(_ width: Int, _ height: Int, frames: Int = 1, x: Int = 0, comment: [UInt8] = []) -> [UInt8] {
        let pixels = Array(repeating: [UInt8](arrayLiteral: 9, 8, 7, 255), count: 4)
        let frame = HandmadeAnimation.Frame(x: x, width: 2, height: 2, delay: 50, pixels: pixels)
        var bytes = HandmadeAnimation(width: width, height: height, frames: [frame]).gif
        let start = 13 + 19  // header and the loop count
        let one = Array(bytes[start..<bytes.count - 1])
        var blocks: [UInt8] = []
        for at in stride(from: 0, to: comment.count, by: 255) {
            let part = comment[at..<min(at + 255, comment.count)]
            blocks += [UInt8(part.count)] + part
        }
        let said = comment.isEmpty ? [] : [0x21, 0xFE] + blocks + [0]
        bytes = Array(bytes[..<start]) + said
        for _ in 0..<frames { bytes += one }
        return bytes + [0x3B]
    }

    /// An uncompressed grey TIFF of one strip, which says it holds `stripBytes`.
    static func tiff(_ width: Int, _ height: Int, stripBytes: Int, held: Int) -> [UInt8] {
        let entries = [
            (256, 4, width), (257, 4, height), (258, 3, 8), (259, 3, 1), (262, 3, 1), (273, 4, 8 + 2 + 9 * 12 + 4),
            (277, 3, 1), (278, 4, height), (279, 4, stripBytes),
        ]
        var bytes = Make.ascii("II") + Make.little(42, 2) + Make.little(8, 4) + Make.little(entries.count, 2)
        for (tag, type, value) in entries {
            bytes += Make.little(tag, 2) + Make.little(type, 2) + Make.little(1, 4) + Make.little(value, 4)
        }
        return bytes + Make.little(0, 4) + [UInt8](repeating: 7, count: held)
    }
}
