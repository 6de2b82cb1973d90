import HTTPCaching

/// Applies a request's conditions and range to a complete response (RFC 9110 §13 and §14).
enum ConditionalAnswer {
    /// Returns the response to a request with these header fields: a 304, 412, 206 or 416, or the complete response.
    static func response(
        _ answer: ServerResponse, to fields: [HeaderField], isHead: Bool, isOrigin: Bool, now: Double
    ) -> ServerResponse {
        let stored = StoredResponse(status: answer.status, fields: answer.fields, requestTime: now, responseTime: now)
        switch Preconditions.evaluate(requestFields: fields, response: stored, isOrigin: isOrigin) {
        case .notModified:
            var unchanged = ServerResponse(
                status: 304, fields: Preconditions.notModifiedFields(answer.fields), note: answer.note)
            unchanged.picture = answer.picture
            return unchanged
        case .preconditionFailed:
            var refusal = Problem(.preconditionFailed).response(now: now)
            refusal.fields += answer.fields.filter { $0.name.lowercased() == "vary" }
            return refusal
        case .proceed:
            break
        }
        let length = answer.length
        switch ByteRange.evaluate(requestFields: fields, response: stored, length: length, isHead: isHead) {
        case .whole:
            return answer
        case .part(let part):
            var partial = answer.limited(to: part)
            partial.status = 206
            partial.fields = unframed(ByteRange.partFields(answer.fields, part: part, length: length))
            return partial
        case .unsatisfiable:
            return ServerResponse(
                status: 416, fields: unframed(ByteRange.unsatisfiableFields(answer.fields, length: length)),
                note: answer.note)
        }
    }

    /// Returns the fields without `Content-Length`, which is added when the response is framed.
    private static func unframed(_ fields: [HeaderField]) -> [HeaderField] {
        fields.filter { $0.name.lowercased() != "content-length" }
    }
}
