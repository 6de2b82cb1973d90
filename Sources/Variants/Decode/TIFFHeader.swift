/// Reads image file directories of TIFF files (TIFF 6.0 §2), of EXIF blocks, which have the same structure, and of
/// BigTIFF files, which have eight-byte offsets and counts (libtiff's BigTIFF specification).
struct TIFFHeader {
    let reader: ByteReader
    let order: ByteOrder
    let isBig: Bool
    /// The offset of the directory that is read by default. This is the first directory unless a different one has been
    /// selected.
    private(set) var first: Int

    /// Reads the header. Returns nil if the bytes do not begin like a TIFF file or are truncated within the header.
    init?(_ reader: ByteReader) {
        guard let (order, isBig) = Self.kind(reader) else { return nil }
        // A BigTIFF header contains the size of its offsets, which is always 8, followed by two zero bytes.
        if isBig, reader.uint16(4, order) != 8 || reader.uint16(6, order) != 0 { return nil }
        guard let first = isBig ? reader.uint64(8, order) : reader.uint32(4, order) else { return nil }
        self.reader = reader
        self.order = order
        self.isBig = isBig
        self.first = first
    }

    private static func kind(_ reader: ByteReader) -> (ByteOrder, isBig: Bool)? {
        for (order, mark) in [(ByteOrder.little, [0x49, 0x49] as [UInt8]), (.big, [0x4D, 0x4D])]
        where reader.matches(mark) {
            switch reader.uint16(2, order) {
            case 42: return (order, false)
            case 43: return (order, true)
            default: return nil
            }
        }
        return nil
    }

    static func isTIFF(_ reader: ByteReader) -> Bool { kind(reader) != nil }

    /// Returns the EXIF orientation in a block that starts with its TIFF header. Returns nil if the orientation is
    /// missing or not 1…8.
    static func orientation(exif reader: ByteReader) -> Int? { TIFFHeader(reader)?.orientation }

    var orientation: Int? { value(0x0112).flatMap { (1...8).contains($0) ? $0 : nil } }

    // MARK: Directories

    /// The size of one entry in bytes: tag (2), type (2), count (4 or 8), value or offset (4 or 8).
    var entryBytes: Int { isBig ? 20 : 12 }

    /// Returns the number of entries in a directory, and the offset of the first entry.
    func entries(_ directory: Int) -> (count: Int, start: Int)? {
        guard directory < reader.count else { return nil }
        let count = isBig ? reader.uint64(directory, order) : reader.uint16(directory, order)
        // Tags are 16-bit numbers, so no valid directory has more entries.
        guard let count, count <= 0xFFFF else { return nil }
        return (count, directory + (isBig ? 8 : 2))
    }

    /// The offsets of the directories in the chain. The chain ends at a missing directory or at a directory that has
    /// already been visited (a loop).
    var chain: [Int] {
        var found: [Int] = []
        var seen: Set<Int> = []
        var directory = first
        while found.count < HeaderParts.maxCounted, directory > 0, let (count, start) = entries(directory), count > 0,
            seen.insert(directory).inserted
        {
            found.append(directory)
            let next = start + count * entryBytes
            directory = (isBig ? reader.uint64(next, order) : reader.uint32(next, order)) ?? 0
        }
        return found
    }

    /// Returns the picture of the file. It is in the first directory, unless that directory declares itself a reduced version of another picture
    /// (NewSubfileType, TIFF 6.0 §8) and a full version can be decoded.
    func picture(_ isReadable: (TIFFHeader) -> Bool) -> TIFFPicture {
        guard isReduced(first) else { return TIFFPicture(directory: self, page: 0, subIFD: nil) }
        for (page, directory) in chain.prefix(16).enumerated() {
            for (index, offset) in ([directory] + numbers(330, in: directory, limit: 8)).enumerated()
            where !isReduced(offset) {
                let found = TIFFPicture(directory: at(offset), page: page, subIFD: index > 0 ? index - 1 : nil)
                if found.size != nil, isReadable(found.directory) { return found }
            }
        }
        return TIFFPicture(directory: self, page: 0, subIFD: nil)
    }

    /// Returns the pages of a document, at most `ImageHeader.pageLimit`. The first page is the picture of the file.
    func pages(in chain: [Int], _ isReadable: (TIFFHeader) -> Bool) -> [TIFFPicture] {
        let first = picture(isReadable)
        let further = chain.enumerated().dropFirst(first.page + 1).prefix { isShort($0.element) }.lazy.filter {
            !isReduced($0.element)
        }
        .prefix(ImageHeader.pageLimit - 1)
        return [first] + further.map { TIFFPicture(directory: at($0.element), page: $0.offset, subIFD: nil) }
    }

    /// Whether a directory has an ordinary number of entries. Directories can overlap, so this bounds the time in which
    /// many of them are read.
    func isShort(_ directory: Int) -> Bool { (entries(directory)?.count ?? 0) <= 256 }

    /// Whether a directory declares itself a reduced version of another picture.
    func isReduced(_ directory: Int) -> Bool { (value(254, in: directory) ?? 0) & 1 == 1 }

    /// Returns a copy in which the directory at this offset is read by default.
    func at(_ directory: Int) -> TIFFHeader {
        var copy = self
        copy.first = directory
        return copy
    }

    /// Returns the offset of the first entry with a tag. Searches the first directory by default.
    func entry(_ tag: Int, in directory: Int? = nil) -> Int? {
        guard let (count, start) = entries(directory ?? first) else { return nil }
        return stride(from: start, to: start + count * entryBytes, by: entryBytes)
            .prefix { reader.uint16($0, order) != nil }.first { reader.uint16($0, order) == tag }
    }

    /// Returns the bytes of a number in the byte order of the file.
    func bytes(_ number: Int, _ count: Int) -> [UInt8] {
        order == .big ? Bytes.bigEndian(number, count) : Bytes.littleEndian(number, count)
    }

    func count(_ entry: Int) -> Int? {
        isBig ? reader.uint64(entry + 4, order) : reader.uint32(entry + 4, order)
    }

    /// Returns the first value of an entry with integers.
    func value(_ tag: Int, in directory: Int? = nil) -> Int? { numbers(tag, in: directory, limit: 1).first }

    /// Returns at most the first `limit` values of a BYTE, SHORT, LONG, IFD, LONG8 or IFD8 entry. Returns an empty
    /// array for other types.
    func numbers(_ tag: Int, in directory: Int? = nil, limit: Int) -> [Int] {
        guard let entry = entry(tag, in: directory), let count = count(entry), count > 0,
            let bytes = reader.uint16(entry + 2, order).flatMap({ [1: 1, 3: 2, 4: 4, 13: 4, 16: 8, 18: 8][$0] }),
            let place = place(entry, bytes: count > 8 ? 9 : count * bytes), place < reader.count
        else { return [] }
        return (0..<min(count, limit, (reader.count - place) / bytes)).compactMap { index in
            let at = place + index * bytes
            return switch bytes {
            case 1: reader.byte(at).map(Int.init)
            case 2: reader.uint16(at, order)
            case 4: reader.uint32(at, order)
            default: reader.uint64(at, order)
            }
        }
    }

    /// Returns the offset of an entry's values, which are in the entry itself if they fit. Returns nil if the offset is
    /// outside the file.
    func place(_ entry: Int, bytes: Int) -> Int? {
        let at = entry + (isBig ? 12 : 8)
        if bytes <= (isBig ? 8 : 4) { return at }
        let place = isBig ? reader.uint64(at, order) : reader.uint32(at, order)
        return place.flatMap { $0 < reader.count ? $0 : nil }
    }

    /// Returns the text of an ASCII entry, truncated to `limit` bytes.
    func text(_ tag: Int, in directory: Int? = nil, limit: Int = 128) -> String? {
        guard let entry = entry(tag, in: directory), reader.uint16(entry + 2, order) == 2, let count = count(entry),
            let place = place(entry, bytes: count)
        else { return nil }
        return reader.text(place, limit: min(count, limit))
    }

    /// Returns the bytes of an entry of type UNDEFINED, or of an entry of type LONG, which libtiff used to write for
    /// IPTC data.
    func block(_ tag: Int) -> ByteReader? {
        guard let entry = entry(tag), let count = count(entry) else { return nil }
        let length = min(count, reader.count) * (reader.uint16(entry + 2, order) == 4 ? 4 : 1)
        return place(entry, bytes: length).map { reader.part($0, length) }
    }

    /// Returns at most the first `limit` values of a RATIONAL entry. Skips fractions with a denominator of 0.
    func rationals(_ tag: Int, in directory: Int? = nil, limit: Int = 3) -> [Double] {
        guard let entry = entry(tag, in: directory), reader.uint16(entry + 2, order) == 5, let count = count(entry),
            count > 0, let place = place(entry, bytes: isBig && count == 1 ? 8 : 9)
        else { return [] }
        return (0..<min(count, limit)).compactMap { index in
            guard let numerator = reader.uint32(place + index * 8, order),
                let denominator = reader.uint32(place + index * 8 + 4, order), denominator > 0
            else { return nil }
            return Double(numerator) / Double(denominator)
        }
    }
}
