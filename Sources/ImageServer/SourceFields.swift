import HTTPCaching
import PipelineFetching
import PipelineSupport
import Variants

/// The fields of a variant that name its source.
enum SourceFields {
    /// The longest file name, in characters, without its extension.
    private static let nameLimit = 100

    /// `Content-Disposition`, so that a picture is saved under its own name, and `Link` to the original.
    ///
    /// - Parameters:
    ///   - isGiven: whether the client's URL holds the source; one that only the server knows is not made known.
    static func fields(of source: BaseURLs.Resolved, _ format: ImageFormat, isGiven: Bool) -> [HeaderField] {
        guard let url = source.folder?.url(of: source.text) ?? (try? SourceURL(source.text)) else { return [] }
        var fields = [HeaderField("Content-Disposition", disposition(url, format))]
        // A URL with credentials or a signature is not for other clients.
        let canonical = url.normalised
        if isGiven, source.folder == nil, url.userinfo == nil, url.redacted == canonical,
            canonical.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: ">") })
        {
            fields.append(HeaderField("Link", "<\(canonical)>; rel=\"canonical\""))
        }
        return fields
    }

    /// `inline; filename="photo.webp"`, with `filename*` if the name is not ASCII (RFC 6266 §4, RFC 8187 §3.2).
    static func disposition(_ url: SourceURL, _ format: ImageFormat) -> String {
        let last = url.path.split(separator: "/").last ?? ""
        let text = percentDecoded(last).flatMap { String(validating: $0, as: UTF8.self) } ?? ""
        // An encoded slash is one of the path's too, as far as a file's name goes.
        let file = text.split(separator: "/").last ?? ""
        var name = file.lastIndex(of: ".").map { file[..<$0] } ?? file
        name = name.drop { $0 == "." || $0 == " " }
        let kept = name.unicodeScalars.filter(isHarmless).prefix(nameLimit)
        let stem = kept.isEmpty ? "image" : String(String.UnicodeScalarView(kept))
        let plain = String(stem.unicodeScalars.map { $0.isASCII && $0 != "%" ? Character($0) : "_" })
        let disposition = "inline; filename=\"\(plain).\(format.fileExtension)\""
        return plain == stem ? disposition : disposition + "; filename*=UTF-8''\(encoded(stem)).\(format.fileExtension)"
    }

    /// Neither invisible, nor with a meaning in paths, quoted strings or shells.
    private static func isHarmless(_ scalar: Unicode.Scalar) -> Bool {
        if scalar.isASCII {
            return scalar.value >= 0x20 && scalar.value < 0x7F && !"\"\\/:*?<>|".unicodeScalars.contains(scalar)
        }
        switch scalar.properties.generalCategory {
        case .control, .format, .surrogate, .privateUse, .unassigned, .lineSeparator, .paragraphSeparator: return false
        default: return true
        }
    }

    /// `attr-char` and percent-encoded bytes.
    private static func encoded(_ text: String) -> String {
        let digits = Array("0123456789ABCDEF")
        return text.utf8.reduce(into: "") { result, byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: result.append(Character(Unicode.Scalar(byte)))
            case _ where "!#$&+-.^_`|~".utf8.contains(byte): result.append(Character(Unicode.Scalar(byte)))
            default: result += "%\(digits[Int(byte >> 4)])\(digits[Int(byte & 15)])"
            }
        }
    }
}
