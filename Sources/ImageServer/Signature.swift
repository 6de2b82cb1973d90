import HTTPCaching
import PipelineSupport

// Signed paths (docs/signing.md). A path that needs leave carries a signature as its second segment:
//
//     /variant/{signature}/{recipe}/{source}?exp=UNIX        signature = KEYID "." base64url(HMAC-SHA256(key, text))
//
// `text` is the path as received, its percent-encoding untouched, with the signature segment taken out, then `?exp=UNIX`
// if the path has an expiry. `v=…` in the query is left out, so that pages can add it to paths signed elsewhere. References: RFC 2104 (HMAC), RFC 4648 §5 (base64url).

/// Who may have a picture made: the keys that sign paths, and whether paths without a signature are served.
package struct Signature: Sendable {
    /// The word in place of a signature.
    static let unsigned = "unsigned"
    /// The setting `allowUnsigned`.
    package var allowUnsigned: Bool
    /// Whether they are served to clients on this machine alone: what a server without keys does that only listens there.
    package var servesThisMachine = false
    /// Keys whose signatures are accepted. Several, so that a key can be replaced while paths that it signed are in use.
    package var keys: [SigningKey]

    package init(allowUnsigned: Bool, keys: [SigningKey] = []) {
        self.allowUnsigned = allowUnsigned
        self.keys = keys
    }

    /// Leave for one path. Only `Signature` makes one, so a route that asks for it cannot forget the check.
    struct Grant: Sendable {
        /// Unix seconds from which the path is refused; nil if it never expires.
        let expiry: Double?

        fileprivate init(expiry: Double?) { self.expiry = expiry }
    }

    /// Checks the signature of a target in origin form, before anything of it is decoded.
    ///
    /// - Parameter now: Unix seconds.
    /// - Returns: nil if the target is not of a route that needs leave.
    /// - Throws: `Problem`: 403 for a path that is not signed, signed for something else, or expired.
    func grant(_ target: String, now: Double) throws(Problem) -> Grant? {
        guard let path = SignedPath(target) else { return nil }
        if path.signature.elementsEqual(Self.unsigned.utf8) {
            guard allowUnsigned || servesThisMachine else {
                throw Problem(
                    .badSignature,
                    "unsigned URLs are off; sign this one, or the operator of this server can set `allowUnsigned`")
            }
            guard path.expiry == nil else {
                throw Problem(.badSignature, "`exp` has an effect in signed URLs only; remove it, or sign the URL")
            }
            return Grant(expiry: nil)
        }
        guard !keys.isEmpty else {
            throw Problem(.badSignature, "this server has no keys (`keys`), so it accepts no signature")
        }
        // One answer for a malformed signature, an unknown key and a wrong code.
        guard let (id, code) = path.keyAndCode, let key = keys.first(where: { id.elementsEqual($0.id.utf8) }),
            key.isValid(code, for: path.text)
        else {
            throw Problem(
                .badSignature, "the signature does not belong to this path, or its key is not one of this server's")
        }
        if let expiry = path.expiry, now >= Double(expiry) {
            throw Problem(.badSignature, "the URL expired on \(HTTPDate.text(unixSeconds: expiry))")
        }
        return Grant(expiry: path.expiry.map(Double.init))
    }
}

/// A key that signs paths, and checks their signatures.
public struct SigningKey: Sendable {
    /// Why a key cannot be used.
    public struct Refusal: Error {
        public let text: String
    }

    /// The name that signatures refer to it by: `[A-Za-z0-9_-]{1,32}`.
    public let id: String
    private let key: [UInt8]

    /// The fewest bytes a key may have.
    public static let leastBytes = 16

    /// - Parameters:
    ///   - id: the key's name in signed paths, 1 to 32 bytes.
    ///   - hex: at least 16 bytes, two hexadecimal digits each.
    public init(id: String, hex: String) throws(Refusal) {
        guard (1...32).contains(id.utf8.count), id.utf8.allSatisfy(Self.isNameByte) else {
            throw Refusal(text: "a key's name has 1 to 32 letters, digits, `_` and `-`")
        }
        guard let bytes = Self.bytes(hex) else {
            throw Refusal(text: "the key `\(id)` is not written as hexadecimal digits, two for each byte")
        }
        guard bytes.count >= Self.leastBytes else {
            throw Refusal(
                text:
                    "the key `\(id)` has \(bytes.count) bytes; at least \(Self.leastBytes) are needed, and 32 are usual "
                    + "(`openssl rand -hex 32`)")
        }
        self.id = id
        key = bytes
    }

    /// The signed form of a path.
    ///
    /// - Parameters:
    ///   - route: the first segment, such as `variant`.
    ///   - segments: those after the signature, percent-encoded as they will be sent.
    ///   - expiry: Unix seconds from which the path is refused.
    package func path(_ route: String, _ segments: [String], expiry: Int? = nil) -> String {
        let rest = segments.map { "/" + $0 }.joined() + (expiry.map { "?exp=\($0)" } ?? "")
        let code = hmacSHA256(Array("/\(route)\(rest)".utf8), key: key)
        return "/\(route)/\(id).\(PercentText.base64URL(code))\(rest)"
    }

    /// The signed path of a variant, below the mount point.
    ///
    /// - Parameters:
    ///   - recipe: its text; presets may stand in it by name.
    ///   - source: an http or https URL, or `name:path` with a name of `ServerConfiguration.baseURLs`.
    ///   - expiry: Unix seconds from which the path is refused; nil, the default, for never.
    public func variantPath(recipe: String, source: String, expiry: Int? = nil) -> String {
        path("variant", [PercentText.segment(recipe), PercentText.segment(source)], expiry: expiry)
    }

    /// The signed path of an original; parameters as for `variantPath`.
    public func originalPath(source: String, expiry: Int? = nil) -> String {
        path("original", [PercentText.segment(source)], expiry: expiry)
    }

    /// The signed path of an original's description; parameters as for `variantPath`.
    public func infoPath(source: String, expiry: Int? = nil) -> String {
        path("info", [PercentText.segment(source)], expiry: expiry)
    }

    /// Takes the same time for every code of the right length.
    fileprivate func isValid(_ code: [UInt8], for text: [UInt8]) -> Bool {
        areEqualInConstantTime(code, hmacSHA256(text, key: key))
    }

    private static func bytes(_ hex: String) -> [UInt8]? {
        let digits = hex.utf8.map(hexValue)
        guard digits.count.isMultiple(of: 2) else { return nil }
        var bytes: [UInt8] = []
        for index in stride(from: 0, to: digits.count, by: 2) {
            guard let high = digits[index], let low = digits[index + 1] else { return nil }
            bytes.append(high << 4 | low)
        }
        return bytes
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "_"), UInt8(ascii: "-"): true
        default: false
        }
    }
}

/// A target with a segment for a signature, taken apart as received: nothing of it is decoded.
struct SignedPath {
    let signature: Substring.UTF8View
    /// What the signature was made of.
    let text: [UInt8]
    /// Unix seconds after `exp=`; nil without one, and if the query has anything else but `v=…`.
    let expiry: Int?

    /// nil if the target is no path of a signed route.
    init?(_ target: String) {
        let bytes = target.utf8
        let slash = UInt8(ascii: "/")
        guard bytes.first == slash, let nameEnd = bytes.dropFirst().firstIndex(of: slash),
            let name = RouteName(rawValue: String(Substring(bytes[bytes.index(after: bytes.startIndex)..<nameEnd]))),
            name.isSigned
        else { return nil }
        let rest = bytes[bytes.index(after: nameEnd)...]
        let end = rest.firstIndex { $0 == slash || $0 == UInt8(ascii: "?") } ?? rest.endIndex
        signature = rest[..<end]
        let mark = UInt8(ascii: "?")
        let query = Route.query(of: target)
        text = Array(bytes[..<nameEnd]) + Array(bytes[end...].prefix { $0 != mark }) + (query.map { [mark] + $0 } ?? [])
        expiry = query.flatMap(Self.expiry)
    }

    /// The key's name and the code of `KEYID.CODE`; nil if the signature has another form.
    var keyAndCode: (id: Substring.UTF8View, code: [UInt8])? {
        guard let dot = signature.firstIndex(of: UInt8(ascii: ".")) else { return nil }
        let digits = signature[signature.index(after: dot)...]
        // 32 bytes without padding: a code has one spelling.
        guard digits.count == 43, let code = PercentText.base64URLDecoded(Substring(digits)) else { return nil }
        return (signature[..<dot], code)
    }

    /// The time of a query `exp=UNIX`: digits alone, no more than a date can hold; nil for any other query.
    static func expiry(_ query: [UInt8]) -> Int? {
        guard query.starts(with: "exp=".utf8) else { return nil }
        let digits = query.dropFirst(4)
        guard (1...11).contains(digits.count), digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return Int(String(decoding: digits, as: UTF8.self))
    }
}
