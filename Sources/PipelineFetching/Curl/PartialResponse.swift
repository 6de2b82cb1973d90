import HTTPCaching
import PipelineSupport

/// The beginning of an interrupted response. A range request can complete it (RFC 9110 §14.2, §13.1.5).
final class PartialResponse: Sendable {
    /// The URL of the response. The rest is requested only from this URL.
    let url: SourceURL
    /// The header fields of the initial 200 response.
    let fields: [HeaderField]
    /// The strong validator of the response.
    let tag: String
    /// The length of the complete body in bytes.
    let total: Int
    /// The part of the body that has arrived.
    let body: BodyCollector

    /// Creates the beginning of a 200 response. Returns nil if it cannot be completed. It needs a strong `ETag`, a
    /// known length and part of the body, and no `Accept-Ranges: none`.
    init?(url: SourceURL, fields: [HeaderField], total: Int?, body: BodyCollector) {
        let tags = fields.values(of: "etag")
        guard let total, body.count > 0, body.count < total, tags.count == 1, let tag = tags.first,
            tag.utf8.count >= 2, tag.hasPrefix("\""), tag.hasSuffix("\""),
            fields.combined("accept-ranges")?.lowercased() != "none"
        else { return nil }
        self.url = url
        self.fields = fields
        self.tag = tag
        self.total = total
        self.body = body
    }

    /// The header fields that request the rest, or the complete body if the response has changed.
    var requestFields: [HeaderField] {
        [HeaderField("Range", "bytes=\(body.count)-"), HeaderField("If-Range", tag)]
    }

    /// Returns why a 206 response does not continue this response, or nil if it does.
    func mismatch(_ fields: [HeaderField]) -> String? {
        if let new = fields.first("etag"), new != tag { return "its ETag differs" }
        let ranges = fields.values(of: "content-range")
        guard ranges.count == 1, let range = ContentRange(ranges[0]) else {
            return "its Content-Range is missing or invalid"
        }
        guard range.first == body.count, range.last == total - 1, range.total == total else {
            return "its range is \(ranges[0]), not \(body.count)-\(total - 1)/\(total)"
        }
        return nil
    }

    /// Returns the header fields of the complete response: the fields of the first part, updated by the fields of the
    /// second part (RFC 9110 §15.3.7.3). Fields that describe the body are not updated.
    func fields(updatedBy part: [HeaderField]) -> [HeaderField] {
        let updates = part.filter { !Validation.fieldsOfTheBody.contains($0.name.lowercased()) }
        let updated = Set(updates.map { $0.name.lowercased() })
        return fields.filter { !updated.contains($0.name.lowercased()) } + updates
    }
}

extension PartialResponse: Hashable {
    static func == (a: PartialResponse, b: PartialResponse) -> Bool { a === b }
    func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

/// A `Content-Range` value with a known total: `bytes FIRST-LAST/TOTAL` (RFC 9110 §14.4).
struct ContentRange: Sendable, Hashable {
    let first: Int
    let last: Int
    let total: Int

    /// Parses a value. Returns nil if the unit is not bytes, the total is unknown or the value is malformed.
    init?(_ text: String) {
        guard text.lowercased().hasPrefix("bytes ") else { return nil }
        let parts = text.dropFirst(6).split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2 else { return nil }
        let ends = parts[0].split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2, let first = Self.number(ends[0]), let last = Self.number(ends[1]),
            let total = Self.number(parts[1]), first <= last, last < total
        else { return nil }
        self.first = first
        self.last = last
        self.total = total
    }

    private static func number(_ text: Substring) -> Int? {
        guard !text.isEmpty, text.utf8.count <= 18, text.utf8.allSatisfy(\.isDigit) else { return nil }
        return Int(text)
    }
}

/// The beginnings of bodies that were still arriving when the total time limit ended.
struct InterruptedParts {
    /// The part, the redirects that led to it, and when it expires (monotonic seconds).
    typealias Part = (response: PartialResponse, followed: FollowedRedirects?, until: Double)

    /// The number of seconds that a part is kept for the next request.
    static let seconds = 60.0
    /// The maximum number of parts, each with up to `maxBytesInMemory` in memory.
    static let limit = 8

    /// The parts, by the properties of their request that determine the response.
    private var parts: [FetchRequest: Part] = [:]

    var count: Int { parts.count }

    /// Removes and returns a part, so that two requests cannot append to the same part.
    mutating func take(_ key: FetchRequest, now: Double) -> Part? {
        if parts.isEmpty { return nil }
        parts = parts.filter { $0.value.until > now }
        return parts.removeValue(forKey: key)
    }

    /// Keeps a part. Drops the oldest part if there are too many.
    mutating func keep(_ part: Part, for key: FetchRequest) {
        parts[key] = part
        if parts.count > Self.limit, let oldest = parts.min(by: { $0.value.until < $1.value.until })?.key {
            parts[oldest] = nil
        }
    }
}
