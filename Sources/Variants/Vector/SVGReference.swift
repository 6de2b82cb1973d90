/// Decides which references a sanitized SVG keeps. Every kept reference stays within the file.
enum SVGReference {
    private static let pictures = ["image/png", "image/jpeg", "image/jpg", "image/webp", "image/gif"]

    /// Returns a reference to an element of the same document, such as `#gradient`, without white space around it.
    /// Returns nil for every other reference.
    static func fragment(_ value: [UInt8]) -> [UInt8]? {
        let trimmed = trimmed(value)
        return trimmed.first == UInt8(ascii: "#") ? Array(trimmed) : nil
    }

    /// Returns a `data:` URL of a PNG, JPEG, WebP or GIF. Returns nil for every other reference.
    static func picture(_ value: [UInt8]) -> [UInt8]? {
        // Browsers remove line breaks and tabs from URLs.
        let trimmed = trimmed(value).filter { $0 != 9 && $0 != 10 && $0 != 13 }
        let start = String(decoding: trimmed.prefix(32), as: UTF8.self).lowercased()
        guard start.hasPrefix("data:") else { return nil }
        let type = start.dropFirst(5).prefix { $0 != ";" && $0 != "," }
        guard pictures.contains(String(type)) else { return nil }
        // Browsers accept `image/jpg`, but librsvg does not.
        let name = type == "image/jpg" ? "image/jpeg" : String(type)
        return Array("data:\(name)".utf8) + trimmed.dropFirst(5 + type.utf8.count)
    }

    static func inStyle(_ value: [UInt8]) -> [UInt8]? { fragment(value) ?? picture(value) }

    /// The value without the control characters and spaces that browsers remove from both ends of a URL.
    private static func trimmed(_ value: [UInt8]) -> ArraySlice<UInt8> {
        let start = value.firstIndex { $0 > 0x20 } ?? value.endIndex
        let end = value.lastIndex { $0 > 0x20 }.map { $0 + 1 } ?? start
        return value[start..<end]
    }
}
