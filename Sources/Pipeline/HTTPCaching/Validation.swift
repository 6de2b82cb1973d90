/// Validating stored responses with the origin (RFC 9111 §4.3).
public enum Validation {
    /// Whether the stored response has a validator, so that a conditional request makes sense.
    public static func hasValidator(_ stored: StoredResponse) -> Bool { !conditionalFields(for: stored).isEmpty }

    /// The fields that make a request conditional on the stored response: `If-None-Match` with its entity tag as it was
    /// received, `If-Modified-Since` with its `Last-Modified` (RFC 9111 §4.3.1).
    public static func conditionalFields(for stored: StoredResponse) -> [HeaderField] {
        var fields: [HeaderField] = []
        if let tag = stored.fields.first("etag"), !tag.isEmpty { fields.append(HeaderField("If-None-Match", tag)) }
        if let date = stored.fields.first("last-modified"),
            HTTPDate.unixSeconds(date, now: stored.responseTime) != nil
        {
            fields.append(HeaderField("If-Modified-Since", date))
        }
        return fields
    }

    /// Whether a 304 with these fields speaks of the stored response (RFC 9111 §4.3.4).
    ///
    /// A strong entity tag must be the same; a weak one the same but for its weakness; a `Last-Modified` alone the same.
    /// A 304 without validators answers the request we made, so it speaks of the response that request named.
    public static func identifies(_ stored: StoredResponse, notModified fields: [HeaderField]) -> Bool {
        if let tag = fields.first("etag") {
            guard let own = stored.fields.first("etag") else { return false }
            return tag.hasPrefix("W/") ? opaque(tag) == opaque(own) : tag == own
        }
        if let date = fields.first("last-modified"), let own = stored.fields.first("last-modified") {
            return date == own
        }
        return true
    }

    /// The stored response freshened by a 304 (RFC 9111 §3.2 and §4.3.4).
    ///
    /// Every field of the 304 replaces all stored lines of its name, but for `Content-Length` and the fields of one
    /// connection. The age starts anew: without an `Age` in the 304 the stored one goes, and without a `Date` the time
    /// of arrival becomes the `Date`.
    ///
    /// - Parameters:
    ///   - requestTime: Unix seconds when the conditional request was sent.
    ///   - responseTime: Unix seconds when the 304 arrived.
    public static func freshened(
        _ stored: StoredResponse, by fields: [HeaderField], requestTime: Double, responseTime: Double
    ) -> StoredResponse {
        var new = fields.endToEnd().filter { $0.name.lowercased() != "content-length" }
        if new.first("date") == nil {
            new.append(HeaderField("Date", HTTPDate.text(unixSeconds: Int(responseTime))))
        }
        var replaced = Set(new.map { $0.name.lowercased() })
        replaced.insert("age")
        var response = stored
        response.fields = stored.fields.filter { !replaced.contains($0.name.lowercased()) } + new
        response.requestTime = requestTime
        response.responseTime = responseTime
        return response
    }

    private static func opaque(_ tag: String) -> Substring { tag.hasPrefix("W/") ? tag.dropFirst(2) : tag[...] }
}
