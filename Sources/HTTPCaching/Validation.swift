/// Validating stored responses with the origin (RFC 9111 §4.3).
package enum Validation {
    /// Whether the stored response has a validator, so that a conditional request is possible.
    package static func hasValidator(_ stored: StoredResponse) -> Bool { !conditionalFields(for: stored).isEmpty }

    // MARK: Sending

    /// The fields that make a request conditional on the stored response: `If-None-Match` with its entity tag as it was
    /// received, `If-Modified-Since` with its `Last-Modified` (RFC 9111 §4.3.1).
    package static func conditionalFields(for stored: StoredResponse) -> [HeaderField] {
        conditionalFields(forAny: [stored], selected: 0)
    }

    /// The fields that make a request conditional on any of the responses stored for its URL (RFC 9111 §4.3.1).
    ///
    /// `If-None-Match` lists the entity tag of the selected response, then those of the others, each once, sixteen at
    /// most: a response stored for other selecting fields then need not be transferred again if the origin chooses it
    /// for this request too. `If-Modified-Since` is sent only if the selected response is the only candidate, since a
    /// date alone does not tell which of several is unchanged.
    package static func conditionalFields(forAny stored: [StoredResponse], selected: Int?) -> [HeaderField] {
        let tags = tagsSent(forAny: stored, selected: selected)
        var fields = tags.isEmpty ? [] : [HeaderField("If-None-Match", tags.joined(separator: ", "))]
        let others = stored.indices.contains { $0 != selected && tags.contains(tag(stored[$0]) ?? "") }
        if let selected, !others, let date = modified(stored[selected]) {
            fields.append(HeaderField("If-Modified-Since", date))
        }
        return fields
    }

    /// The tags to send, as they were received. A selected response with a date but no tag, or with a malformed tag
    /// that would corrupt a list, is validated alone; the malformed tags of others are left out.
    private static func tagsSent(forAny stored: [StoredResponse], selected: Int?) -> [String] {
        var tags: [String] = []
        if let selected {
            let own = tag(stored[selected])
            if let own { tags.append(own) }
            if own.map({ !isProper($0) }) ?? (modified(stored[selected]) != nil) { return tags }
        }
        for index in stored.indices where index != selected && stored[index].status == 200 && tags.count < mostTags {
            guard let tag = tag(stored[index]), isProper(tag), !tags.contains(where: { FieldLines.isSame($0, tag) })
            else { continue }
            tags.append(tag)
        }
        return tags
    }

    private static func isProper(_ tag: String) -> Bool { tag.utf8.last == UInt8(ascii: "\"") }

    private static func tag(_ stored: StoredResponse) -> String? { EntityTag(of: stored.fields)?.description }

    /// The most tags sent at once: the field has to stay short enough for origins.
    static let mostTags = 16

    /// The fields of a request that validates on behalf of a client: the client's without its own conditions and range,
    /// plus `conditionalFields` (RFC 9111 §4.3.1 and §4.3.2). The fields that `Vary` names are among the client's.
    package static func requestFields(
        _ clientFields: [HeaderField], validating stored: [StoredResponse], selected: Int?
    ) -> [HeaderField] {
        clientFields.filter { !narrows($0.name) } + conditionalFields(forAny: stored, selected: selected)
    }

    /// Whether a client's field of this name asks for less than the whole response: a condition or a range. A fetch
    /// that is shared or stored needs the whole response.
    package static func narrows(_ name: String) -> Bool {
        let name = FieldLines.lowercased(name)
        return name == "range" || Preconditions.fieldNames.contains(name)
    }

    // MARK: Receiving

    /// Whether a 304 with these fields identifies the stored response (RFC 9111 §4.3.4).
    package static func identifies(_ stored: StoredResponse, notModified fields: [HeaderField]) -> Bool {
        !identified(among: [stored], notModified: fields, selected: 0).isEmpty
    }

    /// The indices of the stored responses that a 304 identifies, of those whose validators were sent (RFC 9111 §4.3.4).
    ///
    /// A strong entity tag identifies every response with the same one; a weak one the most recent that compares
    /// weakly; a `Last-Modified` alone the most recent with the same. A 304 without validators, which many origins
    /// send, identifies the one response that was validated. If the result is empty, the caller repeats the request
    /// without conditions.
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

    /// Fields that describe the body they came with. Many origins send the default type of their framework, or the
    /// coding that a body would have had, with a 304 (RFC 9111 §3.2 permits to leave such fields out).
    package static let fieldsOfTheBody: Set<String> = [
        "content-length", "content-type", "content-encoding", "content-range",
    ]

    /// The stored response freshened by a 304 (RFC 9111 §3.2 and §4.3.4).
    ///
    /// Every field of the 304 replaces all stored lines of its name, except `fieldsOfTheBody`, hop-by-hop fields and
    /// those a shared cache may not store. The age starts over: if the 304 has no `Age`, the stored one is removed, and
    /// if it has no `Date`, the time of arrival becomes the `Date`. Whether the result may still be stored is for
    /// `Storability` to decide.
    ///
    /// - Parameter requestFields: the request's, which give the selecting fields; nil keeps the stored ones.
    package static func freshened(
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
