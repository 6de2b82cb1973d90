/// The beginning of a response whose transfer broke off, to be completed by a range request (RFC 9110 §14.2, §13.1.5).
final class PartialResponse: Sendable {
    /// Where it came from; the rest is asked for there and nowhere else.
    let url: SourceURL
    /// Fields of the 200 that began it.
    let fields: [HeaderField]
    /// Its strong validator.
    let tag: String
    /// Bytes of the whole body.
    let total: Int
    /// What has arrived.
    let body: BodyCollector

    /// The beginning of a 200 that can be completed: with a strong `ETag`, a known length, something of the body and
    /// no word against ranges; nil otherwise.
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

    /// What asks for the rest, or for everything where the response has changed.
    var requestFields: [HeaderField] {
        [HeaderField("Range", "bytes=\(body.count)-"), HeaderField("If-Range", tag)]
    }

    /// What is wrong with a 206 that should bring the rest; nil when it does.
    func mismatch(_ fields: [HeaderField]) -> String? {
        if let new = fields.first("etag"), new != tag { return "it has another ETag" }
        let ranges = fields.values(of: "content-range")
        guard ranges.count == 1, let range = ContentRange(ranges[0]) else {
            return "it does not say which part it is"
        }
        guard range.first == body.count, range.last == total - 1, range.total == total else {
            return "it is bytes \(ranges[0]), not \(body.count)-\(total - 1)/\(total)"
        }
        return nil
    }

    /// The fields of the whole: those of the first response, updated by the part's (RFC 9110 §15.3.7.3).
    func fields(updatedBy part: [HeaderField]) -> [HeaderField] {
        let ofThePart = ["content-length", "content-range"]
        let updates = part.filter { !ofThePart.contains($0.name.lowercased()) }
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
