import HTTPCaching
import PipelineFetching
import PipelineSupport
import Variants

/// Builds the header fields of a variant that name its source.
enum SourceFields {
    /// The maximum length of a file name without its extension, in characters.
    private static let nameLimit = 100

    /// Returns `Content-Disposition`, so that a picture is saved under its own name, and `Link` to the original.
    ///
    /// - Parameters:
    ///   - isGiven: Whether the client's URL contains the source. A source that only the server knows is not revealed.
    static func fields(of source: BaseURLs.Resolved, _ format: ImageFormat, isGiven: Bool) -> [HeaderField] {
        guard let url = source.folder?.url(of: source.text) ?? (try? SourceURL(source.text)) else { return [] }
        let disposition = disposition(path: url.path, format.fileExtension)
        var fields = [HeaderField("Content-Disposition", disposition)]
        // A URL with credentials or a signature must not reach other clients.
        let canonical = url.normalized
        if isGiven, source.folder == nil, url.userinfo == nil, url.redacted == canonical,
            canonical.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: ">") })
        {
            fields.append(HeaderField("Link", "<\(canonical)>; rel=\"canonical\""))
        }
        return fields
    }

    /// Returns `inline; filename="photo.webp"`, with `filename*` if the name is not ASCII (RFC 6266 §4, RFC 8187 §3.2).
    ///
    /// - Parameters:
    ///   - type: `inline` or `attachment`.
    ///   - path: The path of the original, percent-encoded.
    ///   - endsAtFirstDot: Whether everything after the first dot of the name is dropped, rather than its extension.
    static func disposition(
        _ type: String = "inline", path: some StringProtocol, endsAtFirstDot: Bool = false, _ fileExtension: String
    ) -> String {
        let last: Substring = String(path).split(separator: "/").last ?? ""
        let text = percentDecoded(last).flatMap { String(validating: $0, as: UTF8.self) } ?? ""
        // In a file name, an encoded slash also separates path components.
        let file: Substring = text.split(separator: "/").last ?? ""
        let end = endsAtFirstDot ? file.firstIndex(of: ".") : file.lastIndex(of: ".")
        let name = file[..<(end ?? file.endIndex)].drop { $0 == "." || $0 == " " }
        let kept = name.unicodeScalars.filter(isHarmless).prefix(nameLimit)
        let stem = kept.isEmpty ? "image" : String(String.UnicodeScalarView(kept))
        let plain = String(stem.unicodeScalars.map { $0.isASCII && $0 != "%" ? Character($0) : "_" })
        let fileExtension = fileExtension.filter { $0.isLetter || $0.isNumber || "+-.".contains($0) }
        let disposition = "\(type); filename=\"\(plain).\(fileExtension)\""
        // `attr-char` and percent-encoded bytes.
        let encoded = PercentText.encoded(stem, keeping: "!#$&+-.^_`|~")
        return plain == stem ? disposition : disposition + "; filename*=UTF-8''\(encoded).\(fileExtension)"
    }

    /// Whether a scalar is visible and has no special meaning in paths, quoted strings or shells.
    private static func isHarmless(_ scalar: Unicode.Scalar) -> Bool {
        if scalar.isASCII {
            return scalar.value >= 0x20 && scalar.value < 0x7F && !"\"\\/:*?<>|".unicodeScalars.contains(scalar)
        }
        switch scalar.properties.generalCategory {
        case .control, .format, .surrogate, .privateUse, .unassigned, .lineSeparator, .paragraphSeparator: return false
        default: return true
        }
    }
}
