import HTTPCaching
import Pipeline
import Variants

/// `/original`: a stored response made visible, with as little of our own as possible.
///
/// What an origin sends is answered on this server's own host, whose pages it must not write: a browser is told to guess
/// no type, to run nothing, and to save what is no raster picture.
enum OriginalAnswer {
    /// Runs nothing and reaches nothing, whatever is opened by itself.
    static let sandbox = HeaderField("Content-Security-Policy", "default-src 'none'; sandbox")

    /// Status, fields and body as stored.
    ///
    /// `Content-Length` is left to the framing. `Age` replaces the stored one where the response was stored before;
    /// `Cache-Status` (RFC 9211 §2) and `Via` (RFC 9110 §7.6.3) are added after those that came, and `Date` where the
    /// origin sent none (RFC 9110 §6.6.1).
    ///
    /// - Parameters:
    ///   - passesAll: whether all fields of an origin come through: the setting `forwardFields` is `*`.
    ///   - isObject: whether it is an object of a bucket. Then only fields about the picture come through.
    ///   - tags: the tags that caches in front may purge it by, where the origin's own fields do not come through.
    static func response(
        _ original: OriginalResponse, passesAll: Bool, isObject: Bool = false, tags: SentTags = .off
    ) -> ServerResponse {
        let isRaster = isRaster(original)
        let kept = passed(
            original.fields.endToEnd(), status: original.status, passesAll: passesAll, isObject: isObject)
        var fields = kept.filter { field in
            switch field.name.lowercased() {
            case "content-length", "x-content-type-options": false
            case "age": original.age == nil
            case "content-disposition":
                (isRaster || isAttachment(field.value)) && (passesAll && !isObject || namesPictures(field.value))
            default: true
            }
        }
        if !fields.contains(where: { $0.name.lowercased() == "date" }) {
            fields.append(HeaderField("Date", HTTPDate.text(unixSeconds: Int(original.responseTime))))
        }
        // Before `Date`: readers that compare it with their clock have met its age then.
        if let age = original.age { fields.insert(HeaderField("Age", String(age)), at: 0) }
        // A 304 has no body, and says nothing of how the one that the client has is to be shown.
        if !isRaster, original.status != 304, fields.first("content-disposition") == nil {
            fields.append(HeaderField("Content-Disposition", "attachment"))
        }
        if fields.first(sandbox.name) == nil { fields.append(sandbox) }
        if let record = original.record {
            fields += tags.fields(of: record).filter { [fields] tag in fields.first(tag.name) == nil }
        }
        let handling = original.handling.fieldValue()
        fields += [
            HeaderField("X-Content-Type-Options", "nosniff"), HeaderField("Cache-Status", handling),
            HeaderField("Via", "1.1 pipeline"),
        ]
        var answer = ServerResponse(status: original.status, fields: fields, body: original.body, note: handling)
        answer.picture = AnswerPicture(original.record)
        answer.file = original.file.map { ServerResponse.FilePart(file: $0, range: 0..<$0.count) }
        return answer
    }

    /// The fields that come through.
    static func passed(
        _ fields: [HeaderField], status: Int, passesAll: Bool, isObject: Bool
    ) -> [HeaderField] {
        if passesAll, !isObject { return fields }
        return fields.filter { HostFields.passes($0.name, status: status, isObject: isObject) }
    }

    /// Whether each name that a `Content-Disposition` gives a file ends as a raster picture's does.
    private static func namesPictures(_ value: String) -> Bool {
        let endings = ImageFormat.decodable.filter { $0 != .svg }.flatMap(\.fileExtensions)
        return !value.contains("\\")
            && FieldLines.lowercased(value).split(separator: ";").allSatisfy { parameter in
                let text = parameter.filter { $0 != "\"" && $0 != " " && $0 != "\t" }
                return !text.contains("filename") || endings.contains { text.hasSuffix("." + $0) }
            }
    }

    /// Whether a browser that opens it shows pixels and nothing else. An SVG is a document.
    private static func isRaster(_ original: OriginalResponse) -> Bool {
        let types = original.fields.mediaTypes.filter { !$0.isEmpty }
        guard !types.isEmpty else { return original.isPicture }
        return types.allSatisfy { type in
            let parts = type.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
            return parts.count == 2 && parts[0] == "image" && FieldLines.isToken(parts[1]) && !parts[1].contains("xml")
        }
    }

    /// Whether browsers save what has this `Content-Disposition` (RFC 6266 §4.2), under the name that it may give.
    private static func isAttachment(_ value: String) -> Bool {
        FieldLines.isSameName(FieldLines.beforeParameters(value), "attachment")
    }
}
