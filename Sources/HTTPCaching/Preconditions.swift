/// A client's own conditions, evaluated against a stored response (RFC 9110 §13, RFC 9111 §4.3.2).
package enum Preconditions {
    package enum Outcome: String, Sendable, Hashable {
        /// Answer as if there were no condition.
        case proceed
        /// Answer 304 with `notModifiedFields`.
        case notModified
        /// Answer 412.
        case preconditionFailed
    }

    /// The request fields that state conditions, in lower case. A cache that validates replaces them with its own.
    package static let fieldNames: Set<String> = [
        "if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "if-range",
    ]

    /// Evaluates the conditions of a GET or HEAD request, in the order of RFC 9110 §13.2.2.
    ///
    /// Conditions apply only if the answer would otherwise be a success (§13.2.1). `If-None-Match` compares weakly with
    /// each member of its list, `*` matches anything; if present, `If-Modified-Since` is ignored. The latter must be a
    /// single valid date; it is compared with `Last-Modified`, else with `Date`, else with the time of arrival.
    ///
    /// - Parameter isOrigin: whether the response is our own work rather than a stored one. Only then do `If-Match` and
    ///   `If-Unmodified-Since` apply: a cache leaves them to the origin (§13.1.1, §13.1.4).
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

    /// The fields of a 304 made from the fields of the response it stands for (RFC 9110 §15.4.5).
    ///
    /// Representation metadata is left out, since the client has it: type, coding, length, language, range and digests,
    /// and `Last-Modified` if there is an `ETag`. Everything else stays, including the fields that a 304 must carry.
    package static func notModifiedFields(_ fields: [HeaderField]) -> [HeaderField] {
        var dropped = representationFields
        if fields.first("etag") != nil { dropped.insert("last-modified") }
        return fields.filter { !dropped.contains(FieldLines.lowercased($0.name)) }
    }

    /// Fields that describe a body, which a 304 or 416 does not have.
    static let representationFields: Set<String> = [
        "content-type", "content-encoding", "content-language", "content-length", "content-range", "content-md5",
        "content-digest", "repr-digest", "digest", "accept-ranges",
    ]

    private static func isAny(_ value: String) -> Bool { FieldLines.trimmed(value) == "*" }

    private static func matches(
        _ list: String, _ tag: EntityTag?, by compare: (EntityTag) -> (EntityTag) -> Bool
    ) -> Bool {
        guard let tag else { return false }
        return EntityTag.list(list).contains { compare($0)(tag) }
    }

    /// A date field in Unix seconds; nil if absent, repeated or malformed.
    private static func date(_ name: String, in fields: [HeaderField], _ response: StoredResponse) -> Int? {
        let values = fields.values(of: name)
        return values.count == 1 ? HTTPDate.unixSeconds(values[0], now: response.responseTime) : nil
    }
}
