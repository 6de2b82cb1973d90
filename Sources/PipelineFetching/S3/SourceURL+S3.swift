import HTTPCaching
import PipelineSupport

extension SourceURL {
    /// Parses the URL of a source: http, https or s3.
    package init(named text: String) throws(SourceError) {
        if let object = try SourceURL(s3: text) { self = object } else { self = try SourceURL(text) }
    }

    /// Parses `s3://BUCKET/KEY[?versionId=VERSION]`. Returns nil if the scheme is different.
    ///
    /// The key is percent-decoded once and then encoded in one canonical way. Spaces, letters beyond ASCII and `#` need
    /// not be encoded. A `?` in the key must be written as `%3F`.
    ///
    /// - Parameter isFolder: whether the URL names the objects in `KEY/`, or, if there is no key, all objects in the
    ///   bucket. The path then ends in `/`.
    /// - Throws: `SourceError` if the bucket is malformed, the key is missing, or the URL contains dot segments, a
    ///   different query or control characters.
    package init?(s3 text: String, isFolder: Bool = false) throws(SourceError) {
        guard text.utf8.prefix(5).elementsEqual("s3://".utf8) || text.utf8.prefix(5).elementsEqual("S3://".utf8) else {
            return nil
        }
        guard text.utf8.count <= Self.longest else {
            throw SourceError(
                .malformed, String(text.prefix(64)) + "…", "the URL exceeds the maximum of \(Self.longest) bytes")
        }
        guard text.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
            throw SourceError(.malformed, text, "contains a control character")
        }
        let rest = text.dropFirst(5)
        let bucket = FieldLines.lowercased(String(rest.prefix { $0 != "/" }))
        let isName = bucket.utf8.allSatisfy {
            $0.isLetterOrDigit || $0 == 0x2D || $0 == 0x2E || $0 == 0x5F
        }
        let begins = bucket.utf8.first.map { $0.isLetterOrDigit } ?? false
        guard begins, isName, bucket.utf8.count <= 255, !bucket.contains("..") else {
            throw SourceError(.malformed, text, "the bucket is missing or not valid; expected s3://BUCKET/KEY")
        }
        var key = rest.utf8.dropFirst(bucket.utf8.count + 1)
        var query: String?
        if let mark = key.firstIndex(of: UInt8(ascii: "?")) {
            let given = String(decoding: key[key.index(after: mark)...], as: UTF8.self)
            guard given.hasPrefix("versionId="), given.utf8.count > 10, !given.contains("&") else {
                throw SourceError(
                    .malformed, text, "the only supported query is ?versionId=; write a ? in the key as %3F")
            }
            query = "versionId=" + Self.canonical(Self.percentDecoded(String(given.dropFirst(10))), keeping: nil)
            key = key[..<mark]
        }
        guard !isFolder || query == nil else {
            throw SourceError(.malformed, text, "a folder cannot have a version; remove ?versionId=")
        }
        guard isFolder || !key.isEmpty else {
            throw SourceError(.malformed, text, "the key is missing; expected s3://BUCKET/KEY")
        }
        var name = Self.percentDecoded(String(decoding: key, as: UTF8.self))
        if isFolder, !name.isEmpty, name.last != UInt8(ascii: "/") { name.append(UInt8(ascii: "/")) }
        // Within a URL, these segments would lead to a different object or bucket.
        guard
            !name.split(separator: UInt8(ascii: "/")).contains(where: { [[0x2E], [0x2E, 0x2E]].contains(Array($0)) })
        else { throw SourceError(.malformed, text, "the key must not contain `.` or `..` as a segment") }
        self.init(bucket: bucket, path: "/" + Self.canonical(name, keeping: UInt8(ascii: "/")), query: query)
    }

    /// Encodes bytes as S3 signatures require: every byte except unreserved characters is percent-encoded.
    package static func canonical(_ bytes: [UInt8], keeping kept: UInt8?) -> String {
        let encoded = bytes.flatMap { isUnreserved($0) || $0 == kept ? [$0] : percentEncoded($0) }
        return String(decoding: encoded, as: UTF8.self)
    }
}
