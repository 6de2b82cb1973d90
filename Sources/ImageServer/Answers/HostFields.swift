import HTTPCaching

/// The header fields of origins that `/original` passes on: fields about the picture and its caching. Other fields are
/// dropped. Browsers and proxies act on many of them, and new ones are defined all the time, so a list of fields to
/// drop would be incomplete.
enum HostFields {
    /// Fields of an object in a bucket, in lowercase. None of them identifies the bucket's owner.
    private static let ofObjects: Set = [
        "accept-ranges", "age", "cache-control", "content-disposition", "content-encoding", "content-language",
        "content-length", "content-range", "content-type", "date", "etag", "expires", "last-modified", "vary",
    ]

    private static let ofOrigins = ofObjects.union([
        "accept", "accept-patch", "accept-post", "allow", "cache-status", "cdn-cache-control", "content-digest",
        "content-location", "content-md5", "digest", "location", "pragma", "preference-applied", "proxy-status",
        "repr-digest", "retry-after", "via", "warning", "x-content-type-options",
    ])

    /// Whether a header field is passed on. `Location` is passed on only in redirects and 201 responses (RFC 9110
    /// §10.2.2). In other responses, only proxies act on `Location`.
    static func passes(_ name: String, status: Int, isObject: Bool) -> Bool {
        let name = FieldLines.lowercased(name)
        if name == "location", status != 201, !(300..<400).contains(status) { return false }
        return (isObject ? ofObjects : ofOrigins).contains(name)
    }
}
