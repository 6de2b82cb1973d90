import PipelineSupport

// Messages, logs, reports and lists show URLs without userinfo and without the values of parameters that sign or
// authorize.
extension SourceURL {
    /// Returns a source for messages, without userinfo or the values of secret parameters. In a malformed URL, or a URL
    /// without a scheme, text that may be a password is also removed.
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
        // This is a password with a slash, because it is not a port either.
        if at == nil, authority.first != UInt8(ascii: "["), let colon = authority.firstIndex(of: UInt8(ascii: ":")),
            !authority[colon...].dropFirst().allSatisfy(\.isDigit)
        {
            at = rest.lastIndex(of: mark)
        }
        return hidingSecrets(at.map { String(text[..<start]) + text[text.utf8.index(after: $0)...] } ?? text)
    }

    /// Returns the text with `…` in place of userinfo and the values of secret parameters. This includes URLs that are
    /// percent-encoded within other URLs, at any depth. A value ends at a character that no URL contains, so the text
    /// may be a line from a log.
    package static func hidingSecrets(_ text: String) -> String {
        guard text.utf8.contains(where: { "=%@".utf8.contains($0) }) else { return text }
        let bytes = Array(text.utf8)
        var (shown, at) = ([UInt8](), 0)
        func isOutside(_ index: Int) -> Bool { bytes[index] <= 0x20 || "\"<>\\`".utf8.contains(bytes[index]) }
        /// Returns the length of one of these characters, plain or encoded. Returns nil if there is a different
        /// character.
        func length(of marks: String, at index: Int) -> Int? {
            guard index < bytes.count else { return nil }
            if marks.utf8.contains(bytes[index]) { return 1 }
            guard bytes[index] == UInt8(ascii: "%") else { return nil }
            var digits = index + 1
            while bytes[digits...].starts(with: "25".utf8) { digits += 2 }
            guard digits + 1 < bytes.count, let high = hexValue(bytes[digits]), let low = hexValue(bytes[digits + 1]),
                marks.utf8.contains(high << 4 | low)
            else { return nil }
            return digits + 2 - index
        }
        func end(from start: Int, at marks: String, lengths: ClosedRange<Int> = 1...Int.max) -> Int {
            (start..<bytes.count).first { index in
                isOutside(index) || length(of: marks, at: index).map(lengths.contains) == true
            } ?? bytes.count
        }
        func show(to index: Int, hiding end: Int) {
            shown += bytes[at..<index] + Array("…".utf8)
            at = end
        }
        while at < bytes.count {
            let start = [":", "/", "/"].reduce(at as Int?) { at, mark in
                at.flatMap { at in length(of: mark, at: at).map { at + $0 } }
            }
            if let start {
                let userinfo = (start..<end(from: start, at: "/?#")).last { length(of: "@", at: $0) != nil }
                if let userinfo { show(to: start, hiding: userinfo) }
            } else if let mark = length(of: "?&;#", at: at) {
                let name = at + mark..<end(from: at + mark, at: "?&;#=")
                if let equals = length(of: "=", at: name.upperBound),
                    isSecret(String(decoding: bytes[name], as: UTF8.self))
                {
                    let value = name.upperBound + equals
                    var next = end(from: value, at: "&;#", lengths: 1...equals)
                    // Punctuation after the URL belongs to the surrounding text.
                    while next > value, next < bytes.count, ":,.".utf8.contains(bytes[next - 1]) { next -= 1 }
                    show(to: value, hiding: next)
                    continue
                }
            }
            shown.append(bytes[at])
            at += 1
        }
        return String(decoding: shown, as: UTF8.self)
    }

    /// Returns whether a parameter with this name signs or authorizes, as in presigned URLs. An expiry time is not
    /// secret.
    private static func isSecret(_ name: String) -> Bool {
        var bytes = Array(name.utf8)
        while bytes.contains(UInt8(ascii: "%")) {
            let decoded = percentDecoded(String(decoding: bytes, as: UTF8.self))
            if decoded.count == bytes.count { break }
            bytes = decoded
        }
        let plain = String(decoding: bytes.filter { $0.isLetterOrDigit }, as: UTF8.self).lowercased()
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
