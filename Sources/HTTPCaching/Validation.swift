/// Validates stored responses with the origin (RFC 9111 §4.3).
package enum Validation {
    /// Whether the stored response has a validator, so that a conditional request is possible.
    package static func hasValidator(_ stored: StoredResponse) -> Bool { !conditionalFields(for: stored).isEmpty }

    // MARK: Sending

    /// Returns the fields that make a request conditional on the stored response: `If-None-Match` with its entity tag
    /// as received, and `If-Modified-Since` with its `Last-Modified` (RFC 9111 §4.3.1).
    package static func conditionalFields(for stored: StoredResponse) -> [HeaderField] {
        conditionalFields(forAny: [stored], selected: 0)
    }

    /// Returns the fields that make a request conditional on any of the responses stored for a URL (RFC 9111 §4.3.1).
    ///
    /// `If-None-Match` lists the entity tag of the selected response, then the tags of the other responses. Each tag is
    /// listed once, and at most sixteen tags are listed. If the origin selects a response that was stored for other
    /// selecting fields, the body need not be transferred again. `If-Modified-Since` is sent only if the selected
    /// response is the only candidate, because a date does not identify which of several responses is unchanged.
    package static func conditionalFields(forAny stored: [StoredResponse], selected: Int?) -> [HeaderField] {
        let tags = tagsSent(forAny: stored, selected: selected)
        var fields = tags.isEmpty ? [] : [HeaderField("If-None-Match", tags.joined(separator: ", "))]
        let others = stored.indices.contains { $0 != selected && tags.contains(tag(stored[$0]) ?? "") }
        if let selected, !others, let date = modified(stored[selected]) {
            fields.append(HeaderField("If-Modified-Since", date))
        }
        return fields
    }

    /// Returns the tags to send, as received. Only the selected response is validated if it has a date but no tag, or a
    /// malformed tag that would corrupt a list. Malformed tags of other responses are omitted.
    private static func tagsSent(forAny stored: [StoredResponse], selected: Int?) -> [String] {
        var tags: [String] = []
        if let selected {
            let own = tag(stored[selected])
            if let own { tags.append(own) }
            if own.map({ !isProper($0) }) ?? (modified(stored[selected]) != nil) { return tags }
        }
        for index in stored.indices where index != selected && stored[index].status == 200 && tags.count < maxTags {
            guard let tag = tag(stored[index]), isProper(tag), !tags.contains(where: { FieldLines.isSame($0, tag) })
            else { continue }
            tags.append(tag)
        }
        return tags
    }

    private static func isProper(_ tag: String) -> Bool { tag.utf8.last == UInt8(ascii: "\"") }

    private static func tag(_ stored: StoredResponse) -> String? { EntityTag(of: stored.fields)?.description }

    /// The maximum number of tags in a request, so that the field stays short enough for origins.
    static let maxTags = 16

    /// Returns the fields of a request that validates on behalf of a client. They are the client's fields except its
    /// own conditions and range, plus `conditionalFields` (RFC 9111 §4.3.1 and §4.3.2). The fields listed in `Vary` are
    /// among the client's fields.
    package static func requestFields(
        _ clientFields: [HeaderField], validating stored: [StoredResponse], selected: Int?
    ) -> [HeaderField] {
        clientFields.filter { !narrows($0.name) } + conditionalFields(forAny: stored, selected: selected)
    }

    /// Whether a client's field with this name requests less than the complete response, that is, whether it is a
    /// condition or a range. A fetch that is shared or stored needs the complete response.
    package static func narrows(_ name: String) -> Bool {
        let name = FieldLines.lowercased(name)
        return name == "range" || Preconditions.fieldNames.contains(name)
    }

    // MARK: Receiving

    /// Whether a 304 with these fields identifies the stored response (RFC 9111 §4.3.4).
    package static func identifies(_ stored: StoredResponse, notModified fields: [HeaderField]) -> Bool {
        !identified(among: [stored], notModified: fields, selected: 0).isEmpty
    }

    /// Returns the indices of the stored responses that a 304 identifies, among the stored responses that were
    /// validated (RFC 9111 §4.3.4).
    ///
    /// - A strong entity tag identifies every response with the same tag.
    /// - A weak entity tag identifies the most recent response that matches weakly.
    /// - A `Last-Modified` without an entity tag identifies the most recent response with the same date.
    /// - A 304 without validators, which many origins send, identifies the response that was validated, if there was
    ///   only one.
    ///
    /// If the result is empty, the caller repeats the request without conditions.
    package static func identified(
        among stored: [StoredResponse], notModified fields: [HeaderField], selected: Int?
    ) -> [Int] {
        if let tag = EntityTag(of: fields) {
            let matching = stored.indices.filter { index in
                guard let own = EntityTag(of: stored[index].fields) else { return false }
                return tag.isWeak ? tag.matchesWeakly(own) : tag.matchesStrongly(own)
            }
            return tag.isWeak ? mostRecent(matching, of: stored) : matching
        }
        if let date = fields.first("last-modified") {
            let matching = stored.indices.filter { index in
                stored[index].fields.first("last-modified").map { FieldLines.isSame($0, date) } ?? false
            }
            return mostRecent(matching, of: stored)
        }
        let tags = tagsSent(forAny: stored, selected: selected)
        if let selected, tags.isEmpty || (tags.count == 1 && tag(stored[selected]) != nil) { return [selected] }
        guard tags.count == 1 else { return [] }
        return mostRecent(
            stored.indices.filter { tag(stored[$0]).map { FieldLines.isSame($0, tags[0]) } ?? false }, of: stored)
    }

    private static func mostRecent(_ places: [Int], of stored: [StoredResponse]) -> [Int] {
        places.max { Age.date(of: stored[$0]) < Age.date(of: stored[$1]) }.map { [$0] } ?? []
    }

    /// The fields that describe the body of their own message. With a 304, many origins send the default type of their
    /// framework, or the coding that a body would have had. RFC 9111 §3.2 permits caches to ignore such fields.
    package static let fieldsOfTheBody: Set<String> = [
        "content-length", "content-type", "content-encoding", "content-range",
    ]

    /// Returns the stored response, freshened by a 304 (RFC 9111 §3.2 and §4.3.4).
    ///
    /// Every field of the 304 replaces all stored lines with the same name, except `fieldsOfTheBody`, hop-by-hop fields
    /// and the fields that a shared cache may not store. The age starts again: if the 304 has no `Age`, the stored
    /// `Age` is removed, and if it has no `Date`, the time of arrival becomes the `Date`. `Storability` decides whether
    /// the result may still be stored.
    ///
    /// - Parameter requestFields: the fields of the request, which determine the selecting fields. If nil, the stored
    ///   selecting fields are kept.
    package static func freshenedResponse(
        _ stored: StoredResponse, by fields: [HeaderField], requestTime: Double, responseTime: Double,
        requestFields: [HeaderField]? = nil, configuration: CachingConfiguration = CachingConfiguration()
    ) -> StoredResponse {
        var new = fields.endToEnd().filter { !fieldsOfTheBody.contains(FieldLines.lowercased($0.name)) }
        if new.first("date") == nil {
            new.append(HeaderField("Date", HTTPDate.text(unixSeconds: Int(responseTime))))
        }
        var response = stored
        let kept = stored.fields.dropping(new.map(\.name) + ["age"])
        response.fields = Storability.storedFields(of: kept + new, configuration: configuration)
        response.requestTime = requestTime
        response.responseTime = responseTime
        (response.isSoftPurged, response.isInDoubt) = (false, false)
        if let requestFields,
            let selecting = Variation.selectingFields(of: response.fields, requestFields: requestFields)
        {
            response.selecting = selecting
        }
        return response
    }

    private static func modified(_ stored: StoredResponse) -> String? {
        guard let date = stored.fields.first("last-modified"),
            HTTPDate.unixSeconds(date, now: stored.responseTime) != nil
        else { return nil }
        return date
    }
}
