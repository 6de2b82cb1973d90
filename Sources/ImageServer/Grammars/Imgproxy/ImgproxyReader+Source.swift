import PipelineSupport

extension ImgproxyReader {
    /// Returns the source and the extension behind it.
    func source(
        _ segments: ArraySlice<Substring>
    ) throws(ImgproxyProblem) -> (text: String, extension: Substring?) {
        var segments = segments
        if let name = segments.first, let feature = ["-": "chained pipelines", "enc": "encrypted sources"][name] {
            throw .invalidURL("`\(name)`: \(feature) are part of the commercial edition and not supported here")
        }
        let isPlain = segments.first == "plain"
        if isPlain { segments.removeFirst() }
        if !isPlain, settings.base64IncludesFilename, segments.count > 1 { segments.removeLast() }
        let parts = Self.split(segments.joined(separator: isPlain ? "/" : "")[...], isPlain ? "@" : ".")
        guard parts.count <= 2 else {
            throw .invalidURL(
                isPlain
                    ? "the source contains several `@`; write `@` as %40 except before the extension"
                    : "the base64 source contains several `.`; write one extension")
        }
        guard let bytes = isPlain ? percentDecoded(parts[0]) : Base64.urlDecoded(parts[0]),
            let text = String(validating: bytes, as: UTF8.self)
        else {
            throw .invalidURL("the source is not \(isPlain ? "percent-encoded" : "base64url-encoded") UTF-8")
        }
        guard bytes.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
            throw .invalidURL("the source contains a control character")
        }
        guard !text.isEmpty else { throw .invalidURL("the source is missing") }
        return (try resolved(text), parts.count == 2 && !parts[1].isEmpty ? parts[1] : nil)
    }

    /// Returns the absolute URL or the `name:path` of a decoded source.
    private func resolved(_ source: String) throws(ImgproxyProblem) -> String {
        var text = settings.urlReplacements.reduce(source) { $1.applied(to: $0) }
        if let base, let written = settings.baseURL {
            if !text.utf8.starts(with: base.utf8) { text = (text.hasPrefix("/") ? written : base) + text }
            let path = text.utf8.dropFirst(base.utf8.count).prefix {
                $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#")
            }
            try Self.refuseDots(Substring(path))
        }
        let scheme = text.prefix(8).lowercased()
        guard !scheme.hasPrefix("http://"), !scheme.hasPrefix("https://") else { return text }
        let (path, query) = parts(of: text)
        guard text.utf8.starts(with: "local://".utf8) else { return path + query }
        guard settings.localRoot != nil else { throw .invalidSource("`local:` sources are not configured") }
        let below = Substring(path.utf8.dropFirst("local://".utf8.count).drop { $0 == UInt8(ascii: "/") })
        try Self.refuseDots(below)
        return "\(ImgproxySettings.localName):\(below)"
    }

    /// Splits a source that is not an http or https URL at `queryInSource`.
    private func parts(of source: String) -> (path: String, query: String) {
        let separator = settings.queryInSource
        guard separator != "?" else {
            let path = source.prefix { $0 != "?" }
            return (String(path), String(source[path.endIndex...]))
        }
        // With another separator, `?` is part of the name.
        let found = separator.isEmpty ? nil : source.firstRange(of: separator)
        let path = source[..<(found?.lowerBound ?? source.endIndex)].replacing("?", with: "%3F")
        return (String(path), found.map { "?" + source[$0.upperBound...] } ?? "")
    }

    /// Refuses `..`, encoded or not, which would lead out of a base URL or folder.
    private static func refuseDots(_ path: some StringProtocol) throws(ImgproxyProblem) {
        // Splits bytes, because a character can consist of a slash and a combining mark.
        guard let bytes = percentDecoded(path) else {
            throw .invalidSource("the source contains a `%` without two hexadecimal digits")
        }
        let segments = bytes.split { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "\\") }
        guard !segments.contains(where: { $0.elementsEqual("..".utf8) }) else {
            throw .invalidSource("the source contains the segment `..`")
        }
    }

    /// Returns the last segment of a source's path without its extension, or `image` if the path is empty.
    static func stem(of source: String) -> String {
        let segments = source.prefix { $0 != "?" && $0 != "#" }.split { $0 == "/" || $0 == ":" }
        let name = segments.dropFirst(source.contains("://") ? 2 : 1).last ?? ""
        let end = name.dropFirst().lastIndex(of: ".") ?? name.endIndex
        let bytes = (percentDecoded(name[..<end]) ?? []).filter { $0 >= 0x20 && $0 != 0x7F }
        return bytes.isEmpty ? "image" : String(decoding: bytes, as: UTF8.self)
    }
}

extension ImgproxySettings.Replacement {
    /// Returns the source with the prefix that matches the pattern replaced. A `*` matches as little as possible,
    /// except at the end of the pattern.
    func applied(to source: String) -> String {
        var rest = source[...]
        var values: [Substring] = []
        for (index, piece) in ImgproxyReader.split(pattern[...], "*").enumerated() {
            if index == 0 {
                guard rest.utf8.starts(with: piece.utf8) else { return source }
                rest = Substring(rest.utf8.dropFirst(piece.utf8.count))
                continue
            }
            let segment = rest.prefix { $0 != "/" }
            let start = piece.isEmpty ? segment.endIndex : rest.firstRange(of: piece)?.lowerBound
            guard let start, start <= segment.endIndex else { return source }
            values.append(rest[..<start])
            rest = Substring(rest[start...].utf8.dropFirst(piece.utf8.count))
        }
        var result = replacement
        for (index, value) in values.enumerated() { result = result.replacing("${\(index + 1)}", with: value) }
        return result + rest
    }
}
