import HTTPCaching
import Pipeline

/// `/original`: a stored response made visible, with as little of our own as possible.
enum OriginalAnswer {
    /// Status, fields and body as stored.
    ///
    /// `Content-Length` is left to the framing. `Age` replaces the stored one where the response was stored before;
    /// `Cache-Status` (RFC 9211 §2) and `Via` (RFC 9110 §7.6.3) are added after those that came, and `Date` where the
    /// origin sent none (RFC 9110 §6.6.1).
    static func response(_ original: OriginalResponse) -> ServerResponse {
        var fields = original.fields.endToEnd().filter { field in
            switch field.name.lowercased() {
            case "content-length": false
            case "age": original.age == nil
            default: true
            }
        }
        if !fields.contains(where: { $0.name.lowercased() == "date" }) {
            fields.append(HeaderField("Date", HTTPDate.text(unixSeconds: Int(original.responseTime))))
        }
        // Before `Date`: readers that compare it with their clock have met its age then.
        if let age = original.age { fields.insert(HeaderField("Age", String(age)), at: 0) }
        let handling = original.handling.fieldValue()
        fields.append(HeaderField("Cache-Status", handling))
        fields.append(HeaderField("Via", "1.1 pipeline"))
        var answer = ServerResponse(status: original.status, fields: fields, body: original.body, note: handling)
        answer.file = original.file.map { ServerResponse.FilePart(file: $0, range: 0..<$0.count) }
        return answer
    }
}
