import PipelineSupport

// Messages, logs, reports and lists show URLs without userinfo, and without the values of parameters that sign or authorise.
extension SourceURL {
    /// Returns a source for messages, without userinfo and the values of secret parameters. Text that may be a password in
    /// a malformed URL, or in a URL without a scheme, is removed too.
    package static func redacting(_ text: String) -> String {
        let mark = UInt8(ascii: "@")
        guard text.utf8.contains(mark) else { return hidingSecrets(text) }
        guard let start = text[...].utf8.end(of: "//") else {
            let segments = text.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).map {
                segment in
                guard let at = segment.lastIndex(of: mark),
                    let colon = segment[..<at].firstIndex(of: UInt8(ascii: ":"))
                else { return String(Substring(segment)) }
                return String(Substring(segment[...colon])) + "…" + String(Substring(segment[at...]))
            }
            return hidingSecrets(segments.joined(separator: "/"))
        }
        let rest = text.utf8[start...]
        let end = rest.firstIndex { "/?#".utf8.contains($0) } ?? rest.endIndex
        let authority = rest[..<end]
        var at = authority.lastIndex(of: mark)
        // A password with a slash, which is no port either.
        if at == nil, authority.first != UInt8(ascii: "["), let colon = authority.firstIndex(of: UInt8(ascii: ":")),
            !authority[colon...].dropFirst().allSatisfy(isDigit)
        {
            at = rest.lastIndex(of: mark)
        }
        return hidingSecrets(at.map { String(text[..<start]) + text[text.utf8.index(after: $0)...] } ?? text)
    }

    /// The text with `…` in place of the values of secret parameters, also within a URL that is percent-encoded in another.
    package static func hidingSecrets(_ text: String) -> String {
        guard text.utf8.contains(where: { $0 == UInt8(ascii: "=") || $0 == UInt8(ascii: "%") }) else { return text }
        let bytes = Array(text.utf8)
        var (shown, at) = ([UInt8](), 0)
        /// The length of one of these characters, or of its percent-encoding.
        func length(of marks: String, at index: Int) -> Int? {
            if marks.utf8.contains(bytes[index]) { return 1 }
            guard bytes[index] == UInt8(ascii: "%"), index + 2 < bytes.count, let high = hexValue(bytes[index + 1]),
                let low = hexValue(bytes[index + 2]), marks.utf8.contains(high << 4 | low)
            else { return nil }
            return 3
        }
        while at < bytes.count {
            guard let mark = length(of: "?&;#", at: at) else {
                shown.append(bytes[at])
                at += 1
                continue
            }
            shown += bytes[at..<at + mark]
            at += mark
            let name = at..<((at..<bytes.count).first { length(of: "?&;#=", at: $0) != nil } ?? bytes.count)
            guard name.upperBound < bytes.count, let equals = length(of: "=", at: name.upperBound),
                isSecret(String(decoding: bytes[name], as: UTF8.self))
            else { continue }
            let value = name.upperBound + equals
            let ends = (value..<bytes.count).first { index in
                length(of: "&;#", at: index).map { $0 == 1 || equals == 3 } ?? false
            }
            shown += bytes[at..<value] + Array("…".utf8)
            at = ends ?? bytes.count
        }
        return String(decoding: shown, as: UTF8.self)
    }

    /// Whether a parameter of this name signs or authorises, as in pre-signed URLs. An expiry is not secret.
    private static func isSecret(_ name: String) -> Bool {
        let plain = String(decoding: percentDecoded(name).filter { isLetter($0) || isDigit($0) }, as: UTF8.self)
            .lowercased()
        if plain.hasSuffix("expires") { return false }
        return secretNames.contains(plain) || ["xamz", "xgoog", "xoss", "xcos"].contains { plain.hasPrefix($0) }
            || secretParts.contains { plain.firstRange(of: $0) != nil }
    }

    private static let secretNames: Set = [
        "sig", "sign", "keypairid", "policy", "key", "auth", "authorization", "hmac", "jwt", "pwd", "pass", "s", "md5",
        "verify", "hdnea", "hdnts", "hdntl", "sid", "session", "code", "ticket", "ak",
    ]
    private static let secretParts = [
        "signature", "token", "secret", "password", "passwd", "credential", "accesskey", "accessid", "apikey",
        "authkey",
    ]
}
