import HTTPCaching
public import PipelineSupport

// Signed paths (docs/signing.md). The signature is the second segment of the path:
//
//     /variant/{signature}/{recipe}/{source}?exp=UNIX        signature = KEYID "." base64url(HMAC-SHA256(key, text))
//     POST /variant/{signature}/{recipe}
//
// `text` is the path as received, with its percent-encoding unchanged and the signature segment removed, followed by
// `?exp=UNIX` if the path has an expiry. `v=…` in the query is not signed, so pages can add it to paths that were
// signed elsewhere. References: RFC 2104 (HMAC), RFC 4648 §5 (base64url).

/// Decides who may request pictures. Contains the keys that sign paths, and whether paths without a signature are
/// served.
package struct Signature: Sendable {
    /// The path segment that unsigned paths have instead of a signature.
    static let unsigned = "unsigned"
    /// The `allowUnsigned` setting.
    package var allowUnsigned: Bool
    /// Whether unsigned paths are served, but only to clients on this machine. A server without keys that listens only
    /// on this machine does so.
    package var servesThisMachine = false
    /// Keys that verify signatures. If there are several keys, one can be replaced while paths that it signed are still
    /// in use.
    package var keys: [SigningKey]

    package init(allowUnsigned: Bool, keys: [SigningKey] = []) {
        self.allowUnsigned = allowUnsigned
        self.keys = keys
    }

    /// The permission for one path. A route that requires a grant cannot skip the check, because only `Signature`
    /// creates grants.
    package struct Grant: Sendable {
        /// Whether the path has a signature rather than the word `unsigned`.
        let isSigned: Bool
        /// When the path expires, in Unix seconds, or nil if it never expires.
        let expiry: Double?

        fileprivate init(isSigned: Bool, expiry: Double?) { (self.isSigned, self.expiry) = (isSigned, expiry) }
    }

    /// Returns the permission for a target of a grammar without signatures.
    ///
    /// - Parameters:
    ///   - isAllowed: The `unsigned` member of the grammar's settings. If nil, `allowUnsigned` decides.
    ///   - expiry: When the target expires, in Unix seconds, or nil if it never expires.
    /// - Throws: a `Problem` with status 403 if such targets are not served.
    func grant(ifUnsigned isAllowed: Bool?, until expiry: Double? = nil) throws(Problem) -> Grant {
        guard isAllowed ?? (allowUnsigned || servesThisMachine) else {
            throw Problem(.badSignature, "these URLs have no signature, and the setting `unsigned` does not allow them")
        }
        return Grant(isSigned: false, expiry: expiry)
    }

    /// Returns the permission for a target that a grammar has verified with its own keys.
    func grant(until expiry: Double?) -> Grant { Grant(isSigned: true, expiry: expiry) }

    /// Checks the signature of a target before any part of the target is decoded.
    ///
    /// - Parameter now: The current time, in Unix seconds.
    /// - Throws: a `Problem` with status 403 if the path is not signed or has expired, or if its signature belongs to a
    ///   different path. The status is 400 if the segment for the signature is missing.
    func grant(_ target: RequestTarget, now: Double) throws(Problem) -> Grant {
        guard let path = SignedPath(target) else {
            throw Problem(.invalidSource, "expected /\(target.name ?? "")/{signature}/…, \(OwnPath.howToEncode)")
        }
        if path.signature.elementsEqual(Self.unsigned.utf8) {
            guard allowUnsigned || servesThisMachine else {
                throw Problem(
                    .badSignature,
                    "this server does not accept unsigned URLs; sign the URL (`pipectl sign`), or ask the operator to set `allowUnsigned`"
                )
            }
            guard path.expiry == nil else {
                throw Problem(.badSignature, "`exp` is only valid in signed URLs; remove it, or sign the URL")
            }
            return Grant(isSigned: false, expiry: nil)
        }
        guard !keys.isEmpty else {
            throw Problem(
                .badSignature, "this server has no keys, so it cannot verify signatures; set `keys` or `keysFile`")
        }
        // The response does not reveal whether the signature is malformed, the key unknown or the code wrong.
        guard let (id, code) = path.keyAndCode, let key = keys.first(where: { id.elementsEqual($0.id.utf8) }),
            key.isValid(code, for: path.text)
        else {
            throw Problem(
                .badSignature,
                "the signature does not match the path, or was created with a key that this server does not have")
        }
        if let expiry = path.expiry, now >= Double(expiry) {
            throw Problem(.badSignature, "the URL expired on \(HTTPDate.text(unixSeconds: expiry))")
        }
        return Grant(isSigned: true, expiry: path.expiry.map(Double.init))
    }
}

/// Signs paths, so that clients can request only the pictures that the key's owner has chosen. A site verifies the
/// signatures with the same key (`ServerConfiguration.keys`; docs/signing.md).
///
/// ```swift
/// let key = try SigningKey(id: "k1", hex: "000102030405060708090a0b0c0d0e0f")
/// let path = key.variantPath(recipe: "thumbnail:300,webp", source: "https://example.org/photo.jpg")
/// print("https://img.example.org" + path)
/// ```
///
/// `openssl rand -hex 32` creates a key. `Site.path(_:_:expiry:)` also adds the mount point and checks the recipe.
public struct SigningKey: Sendable {
    /// The key's name in signatures: `[A-Za-z0-9_-]{1,32}`.
    public let id: String
    private let key: [UInt8]

    /// The minimum length of a key, in bytes.
    public static let minBytes = 16

    /// Creates a key from its hexadecimal form.
    ///
    /// - Parameters:
    ///   - id: The key's name in signed paths, 1 to 32 bytes.
    ///   - hex: The key, at least 16 bytes long, with two hexadecimal digits per byte.
    /// - Throws: if the name or the key is invalid. The message does not contain the key.
    public init(id: String, hex: String) throws(InvalidSetting) {
        guard (1...32).contains(id.utf8.count), id.utf8.allSatisfy(\.isOfName) else {
            throw InvalidSetting("the name of a key must consist of 1 to 32 letters, digits, `_` or `-`")
        }
        guard let bytes = Self.bytes(hex) else {
            throw InvalidSetting("the key `\(id)` must be written in hexadecimal digits, two per byte")
        }
        guard bytes.count >= Self.minBytes else {
            throw InvalidSetting(
                "the key `\(id)` has \(bytes.count) bytes; the minimum is \(Self.minBytes), and 32 are recommended "
                    + "(`openssl rand -hex 32`)")
        }
        self.id = id
        key = bytes
    }

    /// Returns the signed form of a path.
    ///
    /// - Parameters:
    ///   - route: The first segment, for example `variant`.
    ///   - segments: The segments after the signature, percent-encoded as they will be sent.
    ///   - expiry: When the path expires, in Unix seconds, or nil if it never expires.
    package func path(_ route: String, _ segments: [String], expiry: Int? = nil) -> String {
        let rest = segments.map { "/" + $0 }.joined() + (expiry.map { "?exp=\($0)" } ?? "")
        let code = hmacSHA256(Array("/\(route)\(rest)".utf8), key: key)
        return "/\(route)/\(id).\(Base64.urlText(code))\(rest)"
    }

    /// Returns the signed path of a variant, relative to the mount point.
    ///
    /// - Parameters:
    ///   - recipe: The recipe as a string. It may refer to presets by name.
    ///   - source: An http or https URL, or `name:path` with a name in `ServerConfiguration.baseURLs`.
    ///   - expiry: When the path expires, in seconds since 1970, rounded down. If nil, the default, the path never
    ///     expires.
    public func variantPath(recipe: String, source: String, expiry: Double? = nil) -> String {
        path("variant", [PercentText.segment(recipe), PercentText.segment(source)], expiry: Self.seconds(expiry))
    }

    /// Returns the signed path to which a client may send a picture (`POST`, `ServerConfiguration.uploads`). The
    /// parameters are the same as in `variantPath`.
    public func uploadPath(recipe: String, expiry: Double? = nil) -> String {
        path("variant", [PercentText.segment(recipe)], expiry: Self.seconds(expiry))
    }

    /// Returns the signed path of an original. The parameters are the same as in `variantPath`.
    public func originalPath(source: String, expiry: Double? = nil) -> String {
        path("original", [PercentText.segment(source)], expiry: Self.seconds(expiry))
    }

    /// Returns the signed path of an original's description. The parameters are the same as in `variantPath`.
    public func infoPath(source: String, expiry: Double? = nil) -> String {
        path("info", [PercentText.segment(source)], expiry: Self.seconds(expiry))
    }

    /// Returns the expiry in whole seconds, clamped to the range of `exp`.
    private static func seconds(_ expiry: Double?) -> Int? {
        expiry.map { Int(max(0, min($0, SignedPath.latest))) }
    }

    /// Whether `code` signs `text`. The comparison takes the same time for every code of the right length.
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
}

/// A target with a segment for a signature, split as received. No part of the target is decoded.
struct SignedPath {
    let signature: Substring.UTF8View
    /// The signed text.
    let text: [UInt8]
    /// The value of `exp=`, in Unix seconds, or nil if `exp=` is missing, or if the query contains anything other than
    /// `exp=` and `v=…`.
    let expiry: Int?

    /// Returns nil if the path has no second segment.
    init?(_ target: RequestTarget) {
        let (bytes, slash, mark) = (target.text.utf8, UInt8(ascii: "/"), UInt8(ascii: "?"))
        guard let name = target.name, !name.isEmpty, name.endIndex < bytes.endIndex, bytes[name.endIndex] == slash
        else {
            return nil
        }
        let nameEnd = name.endIndex
        let rest = bytes[bytes.index(after: nameEnd)...]
        let end = rest.firstIndex { $0 == slash || $0 == mark } ?? rest.endIndex
        signature = rest[..<end]
        let query = target.query
        text = Array(bytes[..<nameEnd]) + Array(bytes[end...].prefix { $0 != mark }) + (query.map { [mark] + $0 } ?? [])
        expiry = query.flatMap(Self.expiry)
    }

    /// The key's name and the code in `KEYID.CODE`, or nil if the signature has a different form.
    var keyAndCode: (id: Substring.UTF8View, code: [UInt8])? {
        guard let dot = signature.firstIndex(of: UInt8(ascii: ".")) else { return nil }
        let digits = signature[signature.index(after: dot)...]
        // 32 bytes without padding, so each code has exactly one spelling.
        guard digits.count == 43, let code = Base64.urlDecoded(Substring(digits)) else { return nil }
        return (signature[..<dot], code)
    }

    /// The latest value of `exp`, which has at most eleven digits.
    static let latest = 99_999_999_999.0

    /// Returns the time in a query `exp=UNIX`, or nil if the query has a different form. The value consists of digits
    /// and is at most `latest`.
    static func expiry(_ query: [UInt8]) -> Int? {
        guard query.starts(with: "exp=".utf8) else { return nil }
        let digits = query.dropFirst(4)
        guard (1...11).contains(digits.count), digits.allSatisfy(\.isDigit) else { return nil }
        return Int(String(decoding: digits, as: UTF8.self))
    }
}
