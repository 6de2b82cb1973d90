import HTTPCaching

/// The beginning of an interrupted response, to be completed by a range request (RFC 9110 §14.2, §13.1.5).
final class PartialResponse: Sendable {
    /// The URL it came from; the rest is only requested from there.
    let url: SourceURL
    /// Fields of the 200 that began it.
    let fields: [HeaderField]
    /// Its strong validator.
    let tag: String
    /// The length of the whole body in bytes.
    let total: Int
    /// The part of the body that has arrived.
    let body: BodyCollector

    /// The beginning of a 200 that can be completed: it has a strong `ETag`, a known length, part of the body and no
    /// `Accept-Ranges: none`; nil otherwise.
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

    /// The fields that request the rest, or the whole body if the response has changed.
    var requestFields: [HeaderField] {
        [HeaderField("Range", "bytes=\(body.count)-"), HeaderField("If-Range", tag)]
    }

    /// Why a 206 does not continue this response; nil if it does.
    func mismatch(_ fields: [HeaderField]) -> String? {
        if let new = fields.first("etag"), new != tag { return "its ETag differs" }
        let ranges = fields.values(of: "content-range")
        guard ranges.count == 1, let range = ContentRange(ranges[0]) else {
            return "its Content-Range is missing or invalid"
        }
        guard range.first == body.count, range.last == total - 1, range.total == total else {
            return "it is bytes \(ranges[0]), not \(body.count)-\(total - 1)/\(total)"
        }
        return nil
    }

    /// Returns the fields of the complete response: the fields of the first part, updated by the fields of the second
    /// (RFC 9110 §15.3.7.3). Fields that describe the body are not updated.
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

/// `Content-Range: bytes FIRST-LAST/TOTAL` (RFC 9110 §14.4), with a known total.
struct ContentRange: Sendable, Hashable {
    let first: Int
    let last: Int
    let total: Int

    /// nil for other units, unknown totals, and anything malformed.
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
        guard !text.isEmpty, text.utf8.count <= 18, text.utf8.allSatisfy(SourceURL.isDigit) else { return nil }
        return Int(text)
    }
}

/// The beginnings of bodies that passed the total limit while they arrived.
struct InterruptedParts {
    /// The part, the redirects that led to it, and when it expires (monotonic seconds).
    typealias Part = (response: PartialResponse, followed: FollowedRedirects?, until: Double)

    /// How long a part is kept for the next request.
    static let seconds = 60.0
    /// The most parts, each with up to `spoolBytes` in memory.
    static let limit = 8

    /// By the requests, as far as they decide the answer.
    private var parts: [FetchRequest: Part] = [:]

    var count: Int { parts.count }

    /// Removes a part: two requests must not append to it.
    mutating func take(_ key: FetchRequest, now: Double) -> Part? {
        if parts.isEmpty { return nil }
        parts = parts.filter { $0.value.until > now }
        return parts.removeValue(forKey: key)
    }

    /// Keeps a part, in place of the oldest if there are too many.
    mutating func keep(_ part: Part, for key: FetchRequest) {
        parts[key] = part
        if parts.count > Self.limit, let oldest = parts.min(by: { $0.value.until < $1.value.until })?.key {
            parts[oldest] = nil
        }
    }
}
