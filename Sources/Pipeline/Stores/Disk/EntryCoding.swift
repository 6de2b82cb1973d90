import Variants

/// How fields and selecting fields are written into blobs of the index.
///
/// Numbers are 32 bits, little-endian; text is its length in bytes and its UTF-8. The CRC-32C of all that stands
/// before it ends each blob.
enum EntryCoding {
    /// Count, then name and value of each field, in order.
    static func encode(_ fields: [HeaderField]) -> [UInt8] {
        var bytes: [UInt8] = []
        append(UInt32(fields.count), to: &bytes)
        for field in fields {
            append(field.name, to: &bytes)
            append(field.value, to: &bytes)
        }
        append(CRC32C.checksum(bytes), to: &bytes)
        return bytes
    }

    /// Count, then name, one byte (1: present) and, where present, the value, sorted by name: equal selections are
    /// equal blobs.
    static func encode(_ selecting: [String: String?]) -> [UInt8] {
        var bytes: [UInt8] = []
        append(UInt32(selecting.count), to: &bytes)
        for (name, value) in selecting.sorted(by: { $0.key < $1.key }) {
            append(name, to: &bytes)
            bytes.append(value == nil ? 0 : 1)
            if let value { append(value, to: &bytes) }
        }
        append(CRC32C.checksum(bytes), to: &bytes)
        return bytes
    }

    /// nil when the blob is damaged.
    static func fields(_ blob: [UInt8]) -> [HeaderField]? {
        guard var reader = Reader(blob), let count = reader.number() else { return nil }
        var fields: [HeaderField] = []
        for _ in 0..<count {
            guard let name = reader.text(), let value = reader.text() else { return nil }
            fields.append(HeaderField(name, value))
        }
        return reader.isAtEnd ? fields : nil
    }

    /// nil when the blob is damaged.
    static func selecting(_ blob: [UInt8]) -> [String: String?]? {
        guard var reader = Reader(blob), let count = reader.number() else { return nil }
        var selecting: [String: String?] = [:]
        for _ in 0..<count {
            guard let name = reader.text(), let isPresent = reader.byte() else { return nil }
            if isPresent == 0 {
                selecting.updateValue(nil, forKey: name)
            } else {
                guard let value = reader.text() else { return nil }
                selecting[name] = value
            }
        }
        return reader.isAtEnd ? selecting : nil
    }

    /// What columns do not have of an image header: pages, alpha (0 or 1), orientation, scans, bytes of the profile.
    static func encode(_ header: ImageHeader) -> [UInt8] {
        var bytes: [UInt8] = []
        let alpha = header.hasAlpha ? 1 : 0
        for number in [header.pages, alpha, header.orientation, header.scans, header.profileBytes] {
            append(UInt32(clamping: number), to: &bytes)
        }
        append(CRC32C.checksum(bytes), to: &bytes)
        return bytes
    }

    /// nil if the blob is damaged.
    static func header(_ blob: [UInt8], _ format: ImageFormat, width: Int, height: Int) -> ImageHeader? {
        guard var reader = Reader(blob), let pages = reader.number(), let alpha = reader.number(),
            let orientation = reader.number(), let scans = reader.number(), let profileBytes = reader.number(),
            reader.isAtEnd
        else { return nil }
        return ImageHeader(
            format: format, width: width, height: height, pages: Int(pages), hasAlpha: alpha != 0,
            orientation: Int(orientation), scans: Int(scans), profileBytes: Int(profileBytes))
    }

    private static func append(_ number: UInt32, to bytes: inout [UInt8]) {
        withUnsafeBytes(of: number.littleEndian) { bytes.append(contentsOf: $0) }
    }

    private static func append(_ text: String, to bytes: inout [UInt8]) {
        append(UInt32(text.utf8.count), to: &bytes)
        bytes.append(contentsOf: text.utf8)
    }

    private struct Reader {
        private let bytes: ArraySlice<UInt8>
        private var at: Int

        /// nil unless the blob ends with the checksum of the rest.
        init?(_ blob: [UInt8]) {
            guard blob.count >= 8 else { return nil }
            let end = blob.count - 4
            let stored = blob[end...].reversed().reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
            guard CRC32C.checksum(Array(blob[..<end])) == stored else { return nil }
            bytes = blob[..<end]
            at = 0
        }

        var isAtEnd: Bool { at == bytes.endIndex }

        mutating func byte() -> UInt8? {
            guard at < bytes.endIndex else { return nil }
            defer { at += 1 }
            return bytes[at]
        }

        mutating func number() -> UInt32? {
            guard bytes.endIndex - at >= 4 else { return nil }
            defer { at += 4 }
            return bytes[at..<at + 4].reversed().reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        }

        mutating func text() -> String? {
            guard let count = number(), bytes.endIndex - at >= Int(count) else { return nil }
            defer { at += Int(count) }
            return String(decoding: bytes[at..<at + Int(count)], as: UTF8.self)
        }
    }
}
