import HTTPCaching
import Pipeline
import PipelineFetching
import Variants

/// Builds the responses of `/original`, which return a stored response with as few changes as possible.
///
/// The origin's content is served from this server's own host and must not act as one of its pages. The response
/// therefore tells browsers not to guess the type, not to run scripts, and to download everything that is not a raster
/// picture.
enum OriginalAnswer {
    /// Prevents a document that is opened directly from running scripts or loading resources.
    static let sandbox = HeaderField("Content-Security-Policy", "default-src 'none'; sandbox")

    /// Prevents a sanitized SVG from running scripts or loading resources, but allows its own style sheets.
    static let vectorSandbox = HeaderField(
        "Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; sandbox")

    /// Returns the status, header fields and body as stored.
    ///
    /// `Content-Length` is added when the response is framed. `Age` replaces the stored field if the response comes
    /// from a cache. `Cache-Status` (RFC 9211 §2) and `Via` (RFC 9110 §7.6.3) are added after the received fields, and
    /// `Date` if the origin sent none (RFC 9110 §6.6.1).
    ///
    /// - Parameters:
    ///   - passesAll: Whether all of the origin's fields are passed on, because the `forwardFields` setting is `*`.
    ///   - isObject: Whether the original is an object in a bucket. In this case only fields about the picture are
    ///     passed on.
    ///   - tags: The fields that carry purge tags for downstream caches, if the origin's own fields are not passed on.
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
        // `Age` precedes `Date`, so that a reader that compares `Date` with its clock already knows the age.
        if let age = original.age { fields.insert(HeaderField("Age", String(age.components.seconds)), at: 0) }
        // A 304 has no body and must not change how the client shows its copy.
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

    /// Returns the fields that are passed on.
    static func passed(
        _ fields: [HeaderField], status: Int, passesAll: Bool, isObject: Bool
    ) -> [HeaderField] {
        if passesAll, !isObject { return fields }
        return fields.filter { HostFields.passes($0.name, status: status, isObject: isObject) }
    }

    /// Whether every file name in a `Content-Disposition` has the extension of a raster picture.
    private static func namesPictures(_ value: String) -> Bool {
        let endings = ImageFormat.decodable.filter { $0 != .svg }.flatMap(\.fileExtensions)
        return !value.contains("\\")
            && FieldLines.lowercased(value).split(separator: ";").allSatisfy { parameter in
                let text = parameter.filter { $0 != "\"" && $0 != " " && $0 != "\t" }
                return !text.contains("filename") || endings.contains { text.hasSuffix("." + $0) }
            }
    }

    /// Whether a browser shows the response as a raster picture. An SVG is a document.
    private static func isRaster(_ original: OriginalResponse) -> Bool {
        let types = original.fields.mediaTypes.filter { !$0.isEmpty }
        guard !types.isEmpty else { return original.isPicture }
        return types.allSatisfy { type in
            let subtype = Substring(type.utf8.dropFirst("image/".utf8.count))
            return type.utf8.starts(with: "image/".utf8) && FieldLines.isToken(String(subtype))
                && subtype.utf8.end(of: "xml") == nil
        }
    }

    /// Whether browsers download a response with this `Content-Disposition` (RFC 6266 §4.2).
    private static func isAttachment(_ value: String) -> Bool {
        FieldLines.isSameName(FieldLines.beforeParameters(value), "attachment")
    }
}
