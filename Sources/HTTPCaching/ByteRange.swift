/// Evaluates range requests for complete stored bodies (RFC 9110 §14).
package enum ByteRange {
    /// The result of evaluating a `Range` field.
    package enum Outcome: Sendable, Hashable {
        /// Answer with the complete body, because there is no range, the range may be ignored, or it consists of
        /// several parts.
        case whole
        /// Answer with 206 and one part, given as offsets into the body.
        case part(Range<Int>)
        /// Answer with 416. The range is valid but selects no byte of this body.
        case unsatisfiable
    }

    /// The maximum number of ranges. No client needs more at once. A request with a longer list receives the complete
    /// body (RFC 9110 §17.15).
    private static let maxRanges = 32

    /// Decides how to answer a request after `Preconditions` returned `proceed` (RFC 9110 §13.2.2 and §14.2).
    ///
    /// Ranges apply only to GET, to a stored 200 response and to the unit `bytes`. If the field is malformed or
    /// repeated, or `If-Range` is false, the result is the complete body. Ranges that overlap or touch are merged. A
    /// request for several separate ranges receives the complete body, as permitted by §14.2 and §15.3.7.2.
    package static func evaluate(
        requestFields: [HeaderField], response: StoredResponse, length: Int, isHead: Bool = false
    ) -> Outcome {
        let values = requestFields.values(of: "range")
        guard !isHead, response.status == 200, values.count == 1, let wanted = specifiers(values[0]),
            allows(requestFields.values(of: "if-range"), response)
        else { return .whole }
        let found = wanted.compactMap { $0.bytes(of: length) }.sorted { $0.lowerBound < $1.lowerBound }
        guard var part = found.first else { return .unsatisfiable }
        for next in found.dropFirst() {
            guard next.lowerBound <= part.upperBound else { return .whole }
            part = part.lowerBound..<max(part.upperBound, next.upperBound)
        }
        return .part(part)
    }

    /// Returns the fields of a 206: the fields of the complete response, with the `Content-Length` and `Content-Range`
    /// of the part (RFC 9110 §15.3.7.1).
    package static func partFields(_ fields: [HeaderField], part: Range<Int>, length: Int) -> [HeaderField] {
        fields.filter { !isLengthOrRange($0) } + [
            HeaderField("Content-Range", "bytes \(part.lowerBound)-\(part.upperBound - 1)/\(length)"),
            HeaderField("Content-Length", String(part.count)),
        ]
    }

    /// Returns the fields of a 416. They include the length in `Content-Range`, but no fields that describe a body (RFC
    /// 9110 §15.5.17).
    package static func unsatisfiableFields(_ fields: [HeaderField], length: Int) -> [HeaderField] {
        let dropped = Preconditions.representationFields.union(["etag", "last-modified", "cache-control", "expires"])
        return fields.filter { !dropped.contains(FieldLines.lowercased($0.name)) } + [
            HeaderField("Content-Range", "bytes */\(length)"), HeaderField("Content-Length", "0"),
        ]
    }

    private static func isLengthOrRange(_ field: HeaderField) -> Bool {
        FieldLines.isSameName(field.name, "content-length") || FieldLines.isSameName(field.name, "content-range")
    }

    /// Evaluates `If-Range`. An entity tag must match strongly. A date must be identical to `Last-Modified`, which must
    /// be at least a second before `Date` to be a strong validator (RFC 9110 §13.1.5, §8.8.2.2). Returns true if the
    /// field is absent.
    private static func allows(_ ifRange: [String], _ response: StoredResponse) -> Bool {
        guard let value = ifRange.first else { return true }
        guard ifRange.count == 1 else { return false }
        if HTTPDate.unixSeconds(value, now: response.responseTime) != nil {
            guard let modified = response.fields.first("last-modified"), FieldLines.isSame(modified, value),
                let changed = HTTPDate.unixSeconds(modified, now: response.responseTime),
                let made = response.fields.first("date"),
                let date = HTTPDate.unixSeconds(made, now: response.responseTime)
            else { return false }
            return date >= changed + 1
        }
        guard let tag = EntityTag(of: response.fields) else { return false }
        return EntityTag(value).matchesStrongly(tag)
    }

    /// One member of a range set.
    private enum Specifier {
        case from(Int, last: Int?)
        case suffix(Int)

        /// Returns the bytes that the member selects from a body with this length, or nil if it selects no byte.
        func bytes(of length: Int) -> Range<Int>? {
            switch self {
            case .from(let first, let last):
                first < length ? first..<min(length, (last ?? length - 1) &+ 1) : nil
            case .suffix(let count):
                count > 0 && length > 0 ? max(0, length - count)..<length : nil
            }
        }
    }

    /// Parses the members of `bytes=…`. Returns nil if the unit is different or the value is malformed (RFC 9110
    /// §14.1.1).
    private static func specifiers(_ value: String) -> [Specifier]? {
        let halves = value.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        guard halves.count == 2, FieldLines.isSameName(FieldLines.trimmed(String(halves[0])), "bytes") else {
            return nil
        }
        let members = FieldLines.members(of: String(halves[1]))
        guard !members.isEmpty, members.count <= maxRanges else { return nil }
        var specifiers: [Specifier] = []
        for member in members {
            let ends = member.split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            guard ends.count == 2 else { return nil }
            if ends[0].isEmpty {
                guard let count = position(ends[1]) else { return nil }
                specifiers.append(.suffix(count))
                continue
            }
            guard let first = position(ends[0]) else { return nil }
            if ends[1].isEmpty {
                specifiers.append(.from(first, last: nil))
            } else if let last = position(ends[1]), last >= first {
                specifiers.append(.from(first, last: last))
            } else {
                return nil
            }
        }
        return specifiers
    }

    /// Parses a string of digits. Values are capped at 2⁵⁶, which is larger than any body.
    private static func position(_ text: String) -> Int? {
        guard !text.isEmpty else { return nil }
        var value = 0
        for byte in text.utf8 {
            guard byte >= 0x30, byte <= 0x39 else { return nil }
            value = min(value * 10 + Int(byte - 0x30), 1 << 56)
        }
        return value
    }
}
