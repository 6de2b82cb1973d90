/// Adapts EXIF data to a variant. EXIF describes the original picture (CIPA DC-008, Exif 3.0 §4.6), and a variant is a
/// different picture.
extension KeptBlobs {
    /// Returns EXIF for a variant of this size. If `isUpright` is true, the orientation is reset. Returns nil if the
    /// data is damaged.
    ///
    /// The orientation and sizes are replaced with the variant's orientation and sizes. Parts that show or locate areas
    /// of the original are removed: the thumbnail directory (IFD1), further directories, the positions of subjects, and
    /// every JPEG stream in the block, because cameras store previews in maker notes. Removed parts are overwritten in
    /// place, because maker notes may refer to offsets in the block. Unused bytes at the end are truncated. The
    /// position (GPS) is also overwritten, unless it is kept.
    static func exif(
        _ exif: [UInt8], of size: PixelSize, isUpright: Bool, keepsPosition: Bool = false
    ) -> [UInt8]? {
        let block = exif.starts(with: exifPrefix) ? Array(exif.dropFirst(exifPrefix.count)) : exif
        var edit = EXIFEdit(bytes: block)
        let isRead = block.withUnsafeBytes { bytes in
            guard let tiff = TIFFHeader(ByteReader(bytes)), !tiff.isBig else { return false }
            edit.read(tiff, size, isUpright: isUpright)
            if !keepsPosition { edit.endPosition(tiff) }
            return true
        }
        guard isRead else { return nil }
        let edited = edit.applied()
        let isIntact = edited.withUnsafeBytes { bytes in
            TIFFHeader(ByteReader(bytes)).flatMap { $0.entries($0.first) } != nil
        }
        return isIntact ? edited : nil
    }
}

private struct EXIFEdit {
    let bytes: [UInt8]
    private var holes: [Range<Int>] = []
    private var writes: [(at: Int, bytes: [UInt8])] = []
    /// The entries to remove. Each element contains the offsets of an entry, of its directory, and of the end of the
    /// directory.
    private var removed: [(entry: Int, directory: Int, end: Int)] = []

    init(bytes: [UInt8]) { self.bytes = bytes }

    mutating func read(_ tiff: TIFFHeader, _ size: PixelSize, isUpright: Bool) {
        let photo = tiff.value(0x8769)
        let directories: [(offset: Int?, numbers: [Int: Int], ended: [Int])] = [
            // XMLPacket, IPTC, Photoshop's resources and SubIFDs can also contain pictures.
            (tiff.first, [0x0100: size.width, 0x0101: size.height], [0x014A, 0x02BC, 0x83BB, 0x8649]),
            (photo, [0xA002: size.width, 0xA003: size.height], [0x9214, 0xA214]),
            (photo.flatMap { tiff.value(0xA005, in: $0) }, [0x1001: size.width, 0x1002: size.height], []),
        ]
        for case (let directory?, let numbers, let ended) in directories {
            guard let (count, start) = tiff.entries(directory) else { continue }
            for entry in stride(from: start, to: start + count * 12, by: 12) {
                guard let tag = tiff.reader.uint16(entry, tiff.order) else { break }
                // A valid directory contains a tag at most once. Ignore further duplicates, which occur only in damaged
                // directories, to save time.
                if removed.count == 16 { break }
                if ended.contains(tag) {
                    removed.append((entry, directory, start + count * 12))
                    if let length = tiff.count(entry), length > 4, let place = tiff.place(entry, bytes: length) {
                        addHole(place, length)
                    }
                } else if let number = numbers[tag] ?? (tag == 0x0112 && isUpright ? 1 : nil) {
                    let bytes = [3: 2, 4: 4][tiff.reader.uint16(entry + 2, tiff.order) ?? 0] ?? 0
                    if number < 1 << (8 * bytes), tiff.count(entry) == 1 {
                        writes.append((entry + 8, tiff.bytes(number, bytes)))
                    } else {
                        removed.append((entry, directory, start + count * 12))
                    }
                }
            }
        }
        for (index, directory) in tiff.chain.prefix(8).enumerated() {
            guard let (count, start) = tiff.entries(directory) else { continue }
            if index == 0 {
                writes.append((start + count * 12, [0, 0, 0, 0]))  // There is no next directory.
                continue
            }
            addHole(directory, 2 + count * 12 + 4)
            // Remove the thumbnail, which is a JPEG stream or strips.
            for (offsets, lengths) in [(0x0201, 0x0202), (0x0111, 0x0117)] {
                let starts = tiff.numbers(offsets, in: directory, limit: 256)
                for (at, length) in zip(starts, tiff.numbers(lengths, in: directory, limit: 256)) {
                    addHole(at, length)
                }
            }
        }
        for stream in JPEGDecoder.streams(in: tiff.reader) { addHole(stream.lowerBound, stream.count) }
    }

    /// Removes the directory of the position and overwrites its values.
    mutating func endPosition(_ tiff: TIFFHeader) {
        for case let directory? in [tiff.first, tiff.value(0x8769)] {
            guard let entry = tiff.entry(0x8825, in: directory), let (count, start) = tiff.entries(directory) else {
                continue
            }
            removed.append((entry, directory, start + count * 12))
            guard let place = tiff.value(0x8825, in: directory), let (values, first) = tiff.entries(place) else {
                continue
            }
            addHole(place, 2 + values * 12 + 4)
            for entry in stride(from: first, to: first + values * 12, by: 12) {
                let sizes = [3: 2, 4: 4, 5: 8, 9: 4, 10: 8, 12: 8]
                let length = (tiff.count(entry) ?? 0) * (sizes[tiff.reader.uint16(entry + 2, tiff.order) ?? 0] ?? 1)
                if length > 4, let at = tiff.place(entry, bytes: length) { addHole(at, length) }
            }
        }
    }

    private mutating func addHole(_ at: Int, _ length: Int) {
        if at >= 8, at < bytes.count, length > 0 { holes.append(at..<at + min(length, bytes.count - at)) }
    }

    func applied() -> [UInt8] {
        var result = bytes
        var filled = 0
        for hole in holes.sorted(by: { $0.lowerBound < $1.lowerBound }) where hole.upperBound > filled {
            for at in max(filled, hole.lowerBound)..<hole.upperBound { result[at] = 0 }
            filled = hole.upperBound
        }
        for (at, bytes) in writes where at + bytes.count <= result.count {
            result.replaceSubrange(at..<at + bytes.count, with: bytes)
        }
        // Move the entries after the removed entry, and the offset of the next directory, toward the beginning.
        for (entry, directory, end) in removed.sorted(by: { $0.entry > $1.entry }) where end + 4 <= result.count {
            let rest = result[(entry + 12)..<(end + 4)] + [UInt8](repeating: 0, count: 12)
            result.replaceSubrange(entry..<end + 4, with: rest)
            let (high, low) = bytes[0] == 0x4D ? (directory, directory + 1) : (directory + 1, directory)
            if result[low] == 0 { result[high] &-= 1 }
            result[low] &-= 1
        }
        for hole in holes.sorted(by: { $0.upperBound > $1.upperBound }) where hole.upperBound >= result.count {
            result.removeSubrange(min(hole.lowerBound, result.count)...)
        }
        return result
    }
}
