import PipelineSupport
import Variants

// The paths of imgproxy (https://docs.imgproxy.net/usage/processing):
//
//     /{signature}/{options}/plain/{source}[@ext]    /{signature}/{options}/{base64url}[.ext]    /info/{signature}/…
//
// signature = base64url(HMAC-SHA256(key, salt "/" rest)), cut to `signatureSize` bytes. `rest` is the path after the
// signature, with two changes that undo what clients and proxies do: `%3A` in the options is `:`, and `scheme:/x` at
// the start of a plain source is `scheme://x`. The query is not part of the URL and is ignored.

/// Reads imgproxy URLs without side effects.
struct ImgproxyReader: Sendable {
    let settings: ImgproxySettings
    private let pairs: [(key: [UInt8], salt: [UInt8])]
    /// `settings.baseURL` with a slash after its host, so that a source cannot extend the name of the host.
    let base: String?

    /// - Throws: a sentence about the first wrong setting.
    init(_ settings: ImgproxySettings) throws(InvalidSetting) {
        try settings.check()
        self.settings = settings
        var pairs: [(key: [UInt8], salt: [UInt8])] = []
        for (index, pair) in settings.keys.enumerated() {
            guard let key = Self.bytes(hex: pair.key), let salt = Self.bytes(hex: pair.salt), !key.isEmpty else {
                throw InvalidSetting(
                    "`keys`, pair \(index + 1): write key and salt in hexadecimal digits, two per byte")
            }
            pairs.append((key, salt))
        }
        self.pairs = pairs
        base = settings.baseURL.map { base in
            base.split(separator: "/", omittingEmptySubsequences: false).count > 3 ? base : base + "/"
        }
        for name in settings.options where ImgproxyOptionTable.entry(named: name[...]) == nil {
            throw InvalidSetting("`options` lists `\(name)`, which is not an imgproxy option")
        }
        for name in settings.presets.keys.sorted() {
            var reading = ImgproxyOptionReading(settings)
            do throws(ImgproxyProblem) { try reading.addPreset(name) } catch {
                throw InvalidSetting("`presets`, `\(name)`: \(error.detail)")
            }
        }
    }

    /// Reads a path.
    ///
    /// - Parameters:
    ///   - target: the path below the mount point and its query, as sent.
    ///   - now: the current time, in Unix seconds.
    /// - Throws: an `ImgproxyProblem`. The signature is checked before any part of the path is decoded.
    func read(_ target: Substring, now: Double) throws(ImgproxyProblem) -> ImgproxyRequest {
        try read(target, now: now, isSigned: check)
    }

    /// Returns the source of a path for the log. The signature is not checked.
    func source(of target: Substring) -> String? {
        try? read(target, now: 0) { (_, _) throws(ImgproxyProblem) in true }.source
    }

    private func read(
        _ target: Substring, now: Double, isSigned: (Substring, String) throws(ImgproxyProblem) -> Bool
    ) throws(ImgproxyProblem) -> ImgproxyRequest {
        var segments = Self.split(Substring(target.utf8.prefix { $0 != UInt8(ascii: "?") }), "/")[...]
        if segments.first?.isEmpty == true { segments.removeFirst() }
        let isInformation = segments.first == "info" && segments.count > 1
        if isInformation { segments.removeFirst() }
        guard let signature = segments.popFirst(), !signature.isEmpty, segments.contains(where: { !$0.isEmpty }) else {
            throw .invalidURL("expected /{signature}/{options}/plain/{source} or /{signature}/{options}/{base64url}")
        }
        let rest = Self.repaired(segments)
        let isSigned = try isSigned(signature, rest)
        segments = Self.split(rest[...], "/")[...]
        let written = optionSegments(of: &segments, isPresets: settings.presetsOnly && !isInformation)
        var options = try ImgproxyOptionReading.options(of: written, settings, isInformation: isInformation)
        let (source, ext) = try source(segments)
        if let ext, !options.isRaw { options.format = try ImgproxyOptionTable.format(ext, "extension") }
        let expiry = options.expiry > 0 ? options.expiry : nil
        if let expiry, now >= expiry { throw .invalidURL("`expires`: the URL has expired") }
        let choice = ImgproxyChoice(options: options, settings: settings)
        return ImgproxyRequest(
            source: source, isSigned: isSigned,
            kind: isInformation ? .information : options.isRaw ? .original : .picture(choice),
            negotiates: !isInformation && !options.isRaw && choice.negotiates, expiry: expiry,
            fileStem: options.fileName.isEmpty ? Self.stem(of: source) : options.fileName,
            isAttachment: options.isAttachment, cachebuster: options.cachebuster, limits: options.limits)
    }

    // MARK: Signature

    /// Returns the signed text: the segments after the signature, with the two changes described above.
    private static func repaired(_ segments: ArraySlice<Substring>) -> String {
        guard let plain = segments.firstIndex(of: "plain"), plain < segments.endIndex - 1 else {
            return segments.joined(separator: "/").replacing("%3A", with: ":")
        }
        var source = Array(segments[(plain + 1)...])
        let scheme = source[0].utf8
        if scheme.count > 1, scheme.last == UInt8(ascii: ":"), source.count > 1, !source[1].isEmpty,
            scheme.dropLast().allSatisfy({ $0.isLetterOrDigit || "+-._".utf8.contains($0) })
        {
            source.insert(contentsOf: source[0] == "local:" ? ["", ""] : [""], at: 1)
        }
        let options = segments[...plain].joined(separator: "/").replacing("%3A", with: ":")
        return options + "/" + source.joined(separator: "/")
    }

    /// Returns the signature of the first pair, or nil if there are no pairs.
    func signature(of rest: String) -> String? { pairs.first.map { code(of: rest, $0) } }

    private func code(of rest: String, _ pair: (key: [UInt8], salt: [UInt8])) -> String {
        let code = hmacSHA256(pair.salt + Array("/\(rest)".utf8), key: pair.key)
        return Base64.urlText(Array(code.prefix(settings.signatureSize)))
    }

    /// Returns whether the URL is signed. Compares with every pair, in constant time.
    private func check(_ signature: Substring, _ rest: String) throws(ImgproxyProblem) -> Bool {
        let sent = Array(signature.utf8)
        let codes = pairs.map { code(of: rest, $0) }
        let matches = (codes + settings.trustedSignatures).count { areEqualInConstantTime(sent, Array($0.utf8)) }
        guard matches == 0 else { return true }
        guard pairs.isEmpty else { throw .forbidden("the signature does not match the path") }
        // An option in the place of the signature shows that the signature is missing.
        guard !sent.contains(UInt8(ascii: ":")) else {
            throw .forbidden(
                "the signature is missing: write any text in its place, as in /unsafe/\(signature.prefix(40))/…")
        }
        return false
    }

    // MARK: Options

    /// Removes and returns the segments before the source.
    private func optionSegments(
        of segments: inout ArraySlice<Substring>, isPresets: Bool
    ) -> ArraySlice<Substring> {
        let separator = settings.argumentsSeparator.utf8.first
        let end =
            isPresets
            ? segments.startIndex + 1
            : segments.firstIndex { !$0.utf8.contains { $0 == separator } } ?? segments.endIndex
        defer { segments = segments[end...] }
        return segments[..<end]
    }

    static func split(_ text: Substring, _ separator: Unicode.Scalar) -> [Substring] {
        text.utf8.split(separator: UInt8(ascii: separator), omittingEmptySubsequences: false).map(Substring.init)
    }

    private static func bytes(hex: String) -> [UInt8]? {
        let digits = hex.utf8.compactMap(hexValue)
        guard digits.count == hex.utf8.count, digits.count.isMultiple(of: 2) else { return nil }
        return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
    }
}
