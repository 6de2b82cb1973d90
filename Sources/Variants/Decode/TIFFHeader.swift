/// Reads image file directories (TIFF 6.0 §2) of TIFF files and of EXIF blocks, which are the same structure.
enum TIFFHeader {
    /// Counting stops here; limits checked afterwards are far lower.
    static let maxCountedPages = 10_000

    static func parse(_ reader: ByteReader) throws(RenderError) -> ImageHeader {
        guard let order = byteOrder(reader), let first = reader.uint32(4, order) else {
            throw ImageHeader.damaged("TIFF", "its header is cut short")
        }
        guard let width = value(256, reader, first, order), let height = value(257, reader, first, order) else {
            throw ImageHeader.damaged("TIFF", "its first directory names no size")
        }
        try ImageHeader.checkSize("TIFF", width, height)
        var header = ImageHeader(format: .tiff, width: width, height: height)
        header.pages = countPages(reader, first, order)
        header.orientation = validOrientation(value(0x0112, reader, first, order)) ?? 1
        let colours =
            switch value(262, reader, first, order) ?? 1 {  // PhotometricInterpretation
            case 2, 6, 8: 3
            case 5: 4
            default: 1
            }
        header.hasAlpha = (value(277, reader, first, order) ?? 1) > colours  // SamplesPerPixel
        if let entry = entry(34675, reader, first, order) { header.profileBytes = reader.uint32(entry + 4, order) ?? 0 }
        return header
    }

    /// The EXIF orientation in a block that starts with its TIFF header; nil when absent or not 1…8.
    static func orientation(exif reader: ByteReader) -> Int? {
        guard let order = byteOrder(reader), let first = reader.uint32(4, order) else { return nil }
        return validOrientation(value(0x0112, reader, first, order))
    }

    private static func validOrientation(_ value: Int?) -> Int? {
        guard let value, (1...8).contains(value) else { return nil }
        return value
    }

    private static func byteOrder(_ reader: ByteReader) -> ByteOrder? {
        if reader.matches([0x49, 0x49, 0x2A, 0x00]) { return .little }
        return reader.matches([0x4D, 0x4D, 0x00, 0x2A]) ? .big : nil
    }

    /// Directories in the chain from `first`; ends at a missing one and before one seen already (a loop).
    private static func countPages(_ reader: ByteReader, _ first: Int, _ order: ByteOrder) -> Int {
        var seen: Set<Int> = []
        var directory = first
        while seen.count < maxCountedPages, directory > 0, let entries = reader.uint16(directory, order), entries > 0,
            seen.insert(directory).inserted
        {
            directory = reader.uint32(directory + 2 + entries * 12, order) ?? 0
        }
        return max(1, seen.count)
    }

    /// Offset of the directory entry with a tag: tag (2), type (2), count (4), value or offset (4).
    private static func entry(_ tag: Int, _ reader: ByteReader, _ directory: Int, _ order: ByteOrder) -> Int? {
        guard let entries = reader.uint16(directory, order) else { return nil }
        for index in 0..<entries {
            let offset = directory + 2 + index * 12
            guard let found = reader.uint16(offset, order) else { return nil }
            if found == tag { return offset }
        }
        return nil
    }

    /// The first value of an entry of type BYTE, SHORT or LONG that is kept in the entry itself.
    private static func value(_ tag: Int, _ reader: ByteReader, _ directory: Int, _ order: ByteOrder) -> Int? {
        guard let entry = entry(tag, reader, directory, order), let count = reader.uint32(entry + 4, order), count > 0
        else { return nil }
        switch reader.uint16(entry + 2, order) {
        case 1: return reader.byte(entry + 8).map(Int.init)
        case 3: return reader.uint16(entry + 8, order)
        case 4: return reader.uint32(entry + 8, order)
        default: return nil
        }
    }
}
