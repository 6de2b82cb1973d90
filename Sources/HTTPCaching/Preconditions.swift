/// Evaluates a client's own conditions against a stored response (RFC 9110 §13, RFC 9111 §4.3.2).
package enum Preconditions {
    package enum Outcome: String, Sendable, Hashable {
        /// Answer as if the request had no conditions.
        case proceed
        /// Answer with 304 and `notModifiedFields`.
        case notModified
        /// Answer with 412.
        case preconditionFailed
    }

    /// The names of conditional request fields, in lowercase. A cache that validates a response replaces them with its
    /// own.
    package static let fieldNames: Set<String> = [
        "if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "if-range",
    ]

    /// Evaluates the conditions of a GET or HEAD request, in the order of RFC 9110 §13.2.2.
    ///
    /// Conditions apply only if the response would otherwise be successful (§13.2.1). `If-None-Match` compares weakly
    /// with each member of its list, and `*` matches any response. If `If-None-Match` is present, `If-Modified-Since`
    /// is ignored. `If-Modified-Since` must be a single valid date. It is compared with `Last-Modified`, with `Date` if
    /// `Last-Modified` is absent, and with the time of arrival if both are absent.
    ///
    /// - Parameter isOrigin: whether the response was generated here rather than stored. If it was stored, `If-Match`
    ///   and `If-Unmodified-Since` are ignored, because a cache leaves them to the origin (§13.1.1, §13.1.4).
    package static func evaluate(
        requestFields: [HeaderField], response: StoredResponse, isOrigin: Bool = false
    ) -> Outcome {
        guard (200..<300).contains(response.status) else { return .proceed }
        let tag = EntityTag(of: response.fields)
        if isOrigin {
            if let wanted = requestFields.combined("if-match") {
                guard isAny(wanted) || matches(wanted, tag, by: EntityTag.matchesStrongly) else {
                    return .preconditionFailed
                }
            } else if let limit = date("if-unmodified-since", in: requestFields, response),
                let modified = date("last-modified", in: response.fields, response), modified > limit
            {
                return .preconditionFailed
            }
        }
        if let known = requestFields.combined("if-none-match") {
            return isAny(known) || matches(known, tag, by: EntityTag.matchesWeakly) ? .notModified : .proceed
        }
        guard let since = date("if-modified-since", in: requestFields, response) else { return .proceed }
        let modified =
            date("last-modified", in: response.fields, response).map(Double.init) ?? Age.date(of: response)
        return modified <= Double(since) ? .notModified : .proceed
    }

    /// Returns the fields of a 304, given the fields of the complete response (RFC 9110 §15.4.5).
    ///
    /// Excludes representation metadata, which the client already has: type, coding, length, language, range and
    /// digests, and `Last-Modified` if there is an `ETag`. All other fields are kept, including the fields that a 304
    /// must contain.
    package static func notModifiedFields(_ fields: [HeaderField]) -> [HeaderField] {
        var dropped = representationFields
        if fields.first("etag") != nil { dropped.insert("last-modified") }
        return fields.filter { !dropped.contains(FieldLines.lowercased($0.name)) }
    }

    /// The fields that describe a body. A 304 or 416 has none.
    static let representationFields: Set<String> = [
        "content-type", "content-disposition", "content-encoding", "content-language", "content-length",
        "content-range", "content-md5", "content-digest", "repr-digest", "digest", "accept-ranges",
    ]

    private static func isAny(_ value: String) -> Bool { FieldLines.trimmed(value) == "*" }

    private static func matches(
        _ list: String, _ tag: EntityTag?, by compare: (EntityTag) -> (EntityTag) -> Bool
    ) -> Bool {
        guard let tag else { return false }
        return EntityTag.list(list).contains { compare($0)(tag) }
    }

    /// Returns a date field in Unix seconds, or nil if the field is absent, repeated or malformed.
    private static func date(_ name: String, in fields: [HeaderField], _ response: StoredResponse) -> Int? {
        let values = fields.values(of: name)
        return values.count == 1 ? HTTPDate.unixSeconds(values[0], now: response.responseTime) : nil
    }
}
