import HTTPCaching

/// A complete answer cut down to what the request's conditions and range ask for (RFC 9110 §13 and §14).
enum ConditionalAnswer {
    /// The answer itself, or 304, 206, 412 or 416 made of it.
    ///
    /// - Parameters:
    ///   - answer: with the fields and the body of a GET.
    ///   - fields: the request's, as far as they have a say.
    ///   - isOrigin: whether the answer is our own work rather than a stored response: only then `If-Match` and
    ///     `If-Unmodified-Since` count.
    ///   - now: Unix seconds.
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
            var partial = answer.cut(to: part)
            partial.status = 206
            partial.fields = unframed(ByteRange.partFields(answer.fields, part: part, length: length))
            return partial
        case .unsatisfiable:
            return ServerResponse(
                status: 416, fields: unframed(ByteRange.unsatisfiableFields(answer.fields, length: length)),
                note: answer.note)
        }
    }

    /// Without `Content-Length`, which the framing adds.
    private static func unframed(_ fields: [HeaderField]) -> [HeaderField] {
        fields.filter { $0.name.lowercased() != "content-length" }
    }
}
