/// BMP files and icons put together byte by byte.
struct HandmadeBMP {
    typealias Make = HandmadeImages

    var width = 5
    var height = 3
    /// Bytes of the bitmap's header.
    var header = 40
    var bits = 24
    var compression = 0
    /// Red, green, blue and, if there are four, alpha.
    var masks: [Int] = []
    /// Red, green and blue of each colour.
    var palette: [[UInt8]] = []
    /// The number of colours as stored; nil for 0, which means all.
    var used: Int?
    var isTopDown = false
    var profile: [UInt8] = []
    /// The declared offset of the pixels; nil for the true one.
    var offset: Int?
    /// nil for the lines of `pixel`.
    var data: [UInt8]?
    /// A pixel as stored: palette index, or samples at their masks.
    var pixel: (_ x: Int, _ y: Int) -> Int = { x, y in (x * 40) << 16 | (y * 60) << 8 | x * y }

    /// Everything but the file header.
    func bitmap(isIcon: Bool = false) -> [UInt8] {
        let stored = height * (isIcon ? 2 : 1)
        var bytes = Make.little(header, 4)
        if header == 12 {
            bytes += Make.little(width, 2) + Make.little(stored, 2) + Make.little(1, 2) + Make.little(bits, 2)
        } else {
            bytes += Make.little(width, 4) + Make.little(isTopDown ? -stored : stored, 4) + Make.little(1, 2)
            bytes += Make.little(bits, 2) + Make.little(compression, 4) + [UInt8](repeating: 0, count: 12)
            bytes += Make.little(used ?? 0, 4) + Make.little(0, 4) + masks.flatMap { Make.little($0, 4) }
            let end = max(header, 40 + masks.count * 4)
            bytes = Array((bytes + [UInt8](repeating: 0, count: 128)).prefix(header == 40 ? end : header))
        }
        let colors: [UInt8] = palette.flatMap {
            Array($0.reversed()) + Array(repeating: 0, count: header == 12 ? 0 : 1)
        }
        let lines = data ?? lines
        if !profile.isEmpty {
            bytes.replaceSubrange(56..<60, with: Make.ascii("DEBM"))
            bytes.replaceSubrange(
                112..<120,
                with: Make.little(bytes.count + colors.count + lines.count, 4) + Make.little(profile.count, 4))
        }
        return bytes + colors + lines + profile
    }

    var file: [UInt8] {
        let bitmap = bitmap()
        let begin = 14 + bitmap.count - (data ?? lines).count - profile.count
        return Make.ascii("BM") + Make.little(14 + bitmap.count, 4) + Make.little(0, 4)
            + Make.little(offset ?? begin, 4) + bitmap
    }

    private var lines: [UInt8] {
        (0..<height).flatMap { line -> [UInt8] in
            let y = isTopDown ? line : height - 1 - line
            var bytes = [UInt8](repeating: 0, count: (width * bits + 31) / 32 * 4)
            for x in 0..<width {
                let value = pixel(x, y)
                if bits < 8 {
                    bytes[x * bits / 8] |= UInt8(value << (8 - bits - x * bits % 8))
                } else {
                    bytes.replaceSubrange(x * bits / 8..<(x + 1) * bits / 8, with: Make.little(value, bits / 8))
                }
            }
            return bytes
        }
    }

    /// An icon, or a cursor, of pictures that are bitmaps or PNGs. The directory declares 16 × 16 pixels for each,
    /// `bits` bits a pixel, and `missing` bytes fewer than it has.
    static func icon(
        _ pictures: [[UInt8]], isCursor: Bool = false, bits: [Int] = [], missing: Int = 0
    ) -> [UInt8] {
        var directory = [0, 0, isCursor ? 2 : 1, 0] + Make.little(pictures.count, 2)
        var at = 6 + 16 * pictures.count
        for (index, picture) in pictures.enumerated() {
            directory += [16, 16, 0, 0, 1, 0] + Make.little(bits.isEmpty ? 32 : bits[index], 2)
            directory += Make.little(picture.count - missing, 4) + Make.little(at, 4)
            at += picture.count
        }
        return directory + pictures.joined()
    }
}
