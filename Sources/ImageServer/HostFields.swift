import HTTPCaching

/// The fields that `/original` passes on: those about the picture and its caching. Browsers and proxies act on many others,
/// and new ones are added all the time, so they are not listed.
enum HostFields {
    /// Fields of an object in a bucket, in lower case. None of them identifies the bucket's owner.
    private static let ofObjects: Set = [
        "accept-ranges", "age", "cache-control", "content-disposition", "content-encoding", "content-language",
        "content-length", "content-range", "content-type", "date", "etag", "expires", "last-modified", "vary",
    ]

    private static let ofOrigins = ofObjects.union([
        "accept", "accept-patch", "accept-post", "allow", "cache-status", "cdn-cache-control", "content-digest",
        "content-location", "content-md5", "digest", "location", "pragma", "preference-applied", "proxy-status",
        "repr-digest", "retry-after", "via", "warning", "x-content-type-options",
    ])

    /// Whether a field comes through. `Location` does only where it redirects or names what was made (RFC 9110 §10.2.2):
    /// otherwise only a proxy acts on it.
    static func passes(_ name: String, status: Int, isObject: Bool) -> Bool {
        let name = FieldLines.lowercased(name)
        if name == "location", status != 201, !(300..<400).contains(status) { return false }
        return (isObject ? ofObjects : ofOrigins).contains(name)
    }
}
