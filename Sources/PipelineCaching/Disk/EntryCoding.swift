import HTTPCaching

/// Encodes header fields, selecting fields and media details as lists of strings, in blobs for the index.
///
/// A blob begins with the number of strings. Each string follows as its length in bytes and its UTF-8, or as `absent`
/// if it is nil. The CRC-32C of all previous bytes is at the end. Numbers have 32 bits and are little-endian.
enum EntryCoding {
    private static let absent = UInt32.max

    /// Encodes the name and value of each header field, in order.
    static func encode(_ fields: [HeaderField]) -> [UInt8] { encode(fields.flatMap { [$0.name, $0.value] }) }

    /// Encodes the name and value of each selecting field, sorted by name, so that equal selections are equal blobs.
    static func encode(_ selecting: [String: String?]) -> [UInt8] {
        encode(selecting.sorted { $0.key < $1.key }.flatMap { [$0.key, $0.value] })
    }

    /// Encodes those numbers of a media description that have no columns, as decimal digits.
    static func encode(_ details: [Int]) -> [UInt8] { encode(details.map { "\($0)" }) }

    /// Decodes header fields. Returns nil if the blob is damaged.
    static func fields(_ blob: [UInt8]) -> [HeaderField]? {
        pairs(blob)?.map { HeaderField($0.name, $0.value ?? "") }
    }

    /// Decodes selecting fields. Returns nil if the blob is damaged.
    static func selecting(_ blob: [UInt8]) -> [String: String?]? {
        pairs(blob).map { Dictionary($0.map { ($0.name, $0.value) }) { first, _ in first } }
    }

    /// Decodes media details. Returns nil if the blob is damaged.
    static func details(_ blob: [UInt8]) -> [Int]? { texts(blob)?.map { $0.flatMap { Int($0) } ?? 0 } }

    /// Encodes arbitrary strings, in order.
    static func encode(_ texts: [String?]) -> [UInt8] {
        var bytes: [UInt8] = []
        func append(_ number: UInt32) { withUnsafeBytes(of: number.littleEndian) { bytes.append(contentsOf: $0) } }
        append(UInt32(texts.count))
        for text in texts {
            append(text.map { UInt32($0.utf8.count) } ?? absent)
            bytes.append(contentsOf: (text ?? "").utf8)
        }
        append(CRC32C.checksum(bytes))
        return bytes
    }

    private static func pairs(_ blob: [UInt8]) -> [(name: String, value: String?)]? {
        guard let texts = texts(blob), texts.count % 2 == 0 else { return nil }
        return stride(from: 0, to: texts.count, by: 2).map { (texts[$0] ?? "", texts[$0 + 1]) }
    }

    /// Decodes strings. Returns nil if the blob is damaged.
    static func texts(_ blob: [UInt8]) -> [String?]? {
        var rest = blob[...]
        func number() -> UInt32? {
            guard rest.count >= 4 else { return nil }
            defer { rest = rest.dropFirst(4) }
            return rest.prefix(4).reversed().reduce(0) { $0 << 8 | UInt32($1) }
        }
        guard let count = number() else { return nil }
        var texts: [String?] = []
        while texts.count < count {
            guard let length = number() else { return nil }
            guard length != absent else {
                texts.append(nil)
                continue
            }
            guard length <= rest.count else { return nil }
            texts.append(String(decoding: rest.prefix(Int(length)), as: UTF8.self))
            rest = rest.dropFirst(Int(length))
        }
        let covered = blob.count - rest.count
        return number() == CRC32C.checksum(Array(blob[..<covered])) && rest.isEmpty ? texts : nil
    }
}
