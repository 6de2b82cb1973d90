/// Identifies data that is not a supported image, so that errors can describe the received data.
enum UnsupportedContent {
    static func error(for reader: ByteReader) -> RenderError {
        if reader.count == 0 { return RenderError(.notAnImage, "not an image: the body is empty") }
        if let format = unsupported(reader) {
            return RenderError(.unsupportedFormat, "\(format) images are not supported")
        }
        return RenderError(.notAnImage, "not an image: \(describe(reader)), \(reader.count) bytes")
    }

    private static func unsupported(_ reader: ByteReader) -> String? {
        if reader.matches("8BPS") { return "Photoshop" }
        if reader.matches([0x76, 0x2F, 0x31, 0x01]) { return "OpenEXR" }
        if reader.matches("#?RADIANCE") || reader.matches("#?RGBE") { return "Radiance HDR" }
        if reader.matches("qoif") { return "QOI" }
        if isNetpbm(reader) { return "Netpbm (PPM, PGM, PBM or PAM)" }
        if isTGA(reader) { return "TGA" }
        return nil
    }

    /// Whether the file is a Netpbm file, which begins with `P`, a digit from 1 to 7, and white space.
    private static func isNetpbm(_ reader: ByteReader) -> Bool {
        guard reader.matches("P"), let kind = reader.byte(1), let space = reader.byte(2) else { return false }
        return (0x31...0x37).contains(kind) && [0x20, 0x09, 0x0A, 0x0D].contains(space)
    }

    /// Whether the file is a TGA file. Checks for the version 2 footer, or for a header with plausible values in all
    /// fields (Truevision TGA 2.0 specification).
    private static func isTGA(_ reader: ByteReader) -> Bool {
        if reader.matches("TRUEVISION-XFILE.\0", at: reader.count - 18) { return true }
        guard let map = reader.byte(1), let kind = reader.byte(2), let depth = reader.byte(16),
            let width = reader.uint16(12, .little), let height = reader.uint16(14, .little), let flags = reader.byte(17)
        else { return false }
        let isMapped = kind == 1 || kind == 9
        return [1, 2, 3, 9, 10, 11].contains(kind) && map == (isMapped ? 1 : 0) && width > 0 && height > 0
            && (isMapped || reader.matches([0, 0, 0, 0, 0], at: 3)) && flags & 0xC0 == 0
            && (isMapped || kind & 7 == 3 ? [8, 16] : [15, 16, 24, 32]).contains(depth)
    }

    private static func describe(_ reader: ByteReader) -> String {
        if reader.matches([0x1F, 0x8B]) { return "gzip data" }
        if reader.matches("%PDF") { return "a PDF document" }
        if reader.matches("PK\u{3}\u{4}") { return "a ZIP archive" }
        if reader.matches([0x28, 0xB5, 0x2F, 0xFD]) { return "zstd data" }
        if reader.matches("RIFF"), let kind = reader.fourCharacters(8) { return "a RIFF file of type `\(kind)`" }
        if reader.matches("ftyp", at: 4), let brand = reader.fourCharacters(8) {
            return "an ISO media file with the brand `\(brand)`, possibly a video"
        }
        if reader.matches([0x1A, 0x45, 0xDF, 0xA3]) { return "a Matroska or WebM file" }
        let text = markup(reader)
        if isHTML(text) { return "an HTML page" }
        if text.hasPrefix("<?xml") { return "an XML document" }
        if text.hasPrefix("{") || text.hasPrefix("[") { return "JSON or other text" }
        return isText(reader) ? "plain text" : "data in an unknown format"
    }

    /// Returns the first kilobyte after a byte order mark and white space, as lowercase ASCII. Returns an empty string
    /// if the data does not begin like markup or JSON.
    private static func markup(_ reader: ByteReader) -> String {
        var offset = reader.matches([0xEF, 0xBB, 0xBF]) ? 3 : 0
        while offset < 256, let byte = reader.byte(offset), byte == 0x20 || (9...13).contains(byte) { offset += 1 }
        guard let first = reader.byte(offset), "<{[".utf8.contains(first) else { return "" }
        var text: [UInt8] = []
        text.reserveCapacity(1024)
        for index in offset..<offset + 1024 {
            guard let byte = reader.byte(index) else { break }
            let lower = (0x41...0x5A).contains(byte) ? byte | 0x20 : byte
            text.append(lower < 0x80 ? lower : UInt8(ascii: "?"))
        }
        return String(decoding: text, as: UTF8.self)
    }

    private static func isHTML(_ text: String) -> Bool {
        if text.hasPrefix("<!doctype html") || text.hasPrefix("<html") || text.hasPrefix("<head") { return true }
        return text.hasPrefix("<") && text.contains("<html")
    }

    private static func isText(_ reader: ByteReader) -> Bool {
        for index in 0..<min(reader.count, 512) {
            guard let byte = reader.byte(index) else { return false }
            if byte < 0x20, !(9...13).contains(byte) { return false }
        }
        return true
    }
}
