import HTTPCaching

/// 06 Nov 1994 08:49:37, the `Date` of the responses here.
let epoch = 784_111_777.0
let epochText = "Sun, 06 Nov 1994 08:49:37 GMT"

/// A stored response that arrived at its `Date`, at once.
func stored(
    _ fields: KeyValuePairs<String, String>, status: Int = 200, date: String? = epochText
) -> StoredResponse {
    var all = fields.map { HeaderField($0.key, $0.value) }
    if let date { all.append(HeaderField("Date", date)) }
    return StoredResponse(status: status, fields: all, requestTime: epoch, responseTime: epoch)
}

func caching(isPrivate: Bool = false, defaultMaxAge: Duration? = nil) -> CachingConfiguration {
    var configuration = CachingConfiguration()
    configuration.isPrivate = isPrivate
    configuration.defaultMaxAge = defaultMaxAge
    return configuration
}

extension StoredResponse {
    /// With one more field.
    func with(_ name: String, _ value: String) -> StoredResponse {
        var response = self
        response.fields.append(HeaderField(name, value))
        return response
    }
}
