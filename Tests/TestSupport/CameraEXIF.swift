/// Builds EXIF blocks as cameras write them.
public struct CameraEXIF: Sendable {
    /// One entry of an image file directory (IFD).
    public struct Entry: Sendable {
        var tag: Int
        var type: Int
        var count: Int
        /// The bytes of the values.
        public var data: [UInt8]
    }

    private let isBigEndian: Bool

    /// - Parameter isBigEndian: Whether numbers are big-endian. Default true.
    public init(isBigEndian: Bool = true) { self.isBigEndian = isBigEndian }

    private func number(_ value: Int, _ bytes: Int) -> [UInt8] {
        let big = (0..<bytes).reversed().map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
        return isBigEndian ? big : big.reversed()
    }

    /// Returns an ASCII entry.
    public func text(_ tag: Int, _ text: String) -> Entry {
        Entry(tag: tag, type: 2, count: text.utf8.count + 1, data: Array(text.utf8) + [0])
    }

    /// Returns a SHORT entry.
    public func short(_ tag: Int, _ value: Int) -> Entry { Entry(tag: tag, type: 3, count: 1, data: number(value, 2)) }

    /// Returns a RATIONAL entry with numerators and denominators.
    public func rationals(_ tag: Int, _ values: [(Int, Int)]) -> Entry {
        Entry(tag: tag, type: 5, count: values.count, data: values.flatMap { number($0.0, 4) + number($0.1, 4) })
    }

    /// Returns a directory located at `offset`, followed by the values that do not fit in its entries.
    private func directory(_ entries: [Entry], at offset: Int) -> [UInt8] {
        var place = offset + 2 + entries.count * 12 + 4
        var (head, tail) = (number(entries.count, 2), [UInt8]())
        for entry in entries {
            head += number(entry.tag, 2) + number(entry.type, 2) + number(entry.count, 4)
            if entry.data.count <= 4 {
                head += entry.data + [UInt8](repeating: 0, count: 4 - entry.data.count)
            } else {
                head += number(place, 4)
                tail += entry.data
                place += entry.data.count
            }
        }
        return head + number(0, 4) + tail
    }

    /// Returns the block, beginning with its TIFF header: the first directory, then the directories of exposure and
    /// position.
    public func block(_ first: [Entry], photo: [Entry] = [], position: [Entry] = []) -> [UInt8] {
        // Lay out the first directory once to learn its size, and again with the real offsets.
        func layout(_ photoPlace: Int, _ positionPlace: Int) -> [UInt8] {
            let entries =
                first + [
                    Entry(tag: 0x8769, type: 4, count: 1, data: number(photoPlace, 4)),
                    Entry(tag: 0x8825, type: 4, count: 1, data: number(positionPlace, 4)),
                ]
            return directory(entries, at: 8)
        }
        let photoPlace = 8 + layout(0, 0).count
        let photoBytes = directory(photo, at: photoPlace)
        let positionPlace = photoPlace + photoBytes.count
        return Array((isBigEndian ? "MM" : "II").utf8) + number(42, 2) + number(8, 4)
            + layout(photoPlace, positionPlace) + photoBytes + directory(position, at: positionPlace)
    }

    /// The EXIF block of a picture with a known position and time.
    public var complete: [UInt8] {
        block(
            [
                text(0x010F, "Canon"), text(0x0110, "Canon EOS R5"), short(0x0112, 6),
                text(0x0132, "2024:06:02 08:00:00"),
            ],
            photo: [
                rationals(0x829A, [(1, 250)]), rationals(0x829D, [(28, 10)]), short(0x8827, 400),
                text(0x9003, "2024:05:01 12:30:07"), text(0x9011, "+02:00"), rationals(0x920A, [(50, 1)]),
                text(0xA434, "RF50mm F1.8 STM"),
            ],
            position: [
                text(1, "S"), rationals(2, [(33, 1), (51, 1), (3030, 100)]), text(3, "E"),
                rationals(4, [(151, 1), (12, 1), (0, 1)]),
            ])
    }

    /// Returns the JPEG with the EXIF block inserted as its first segment.
    public static func inserted(_ block: [UInt8], into jpeg: [UInt8]) -> [UInt8] {
        let length = block.count + 8
        return jpeg[..<2] + [0xFF, 0xE1, UInt8(length >> 8), UInt8(length & 255)] + Array("Exif\0\0".utf8) + block
            + jpeg[2...]
    }
}
