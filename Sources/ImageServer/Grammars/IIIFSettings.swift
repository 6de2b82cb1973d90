import PipelineSupport
import Variants

/// The members of `grammars.iiif`.
struct IIIFSettings: Sendable {
    /// Whether absolute URLs are served as identifiers. If nil, `allowUnsigned` decides.
    let unsigned: Bool?
    /// The URL of the grammar's path as clients see it, or nil if it depends on the request.
    let base: String?
    /// The sources by identifier, in the order in which they are tried.
    let identifiers: [Entry]
    let formats: [IIIFFormat]
    let maxWidth: Int?
    let maxHeight: Int?
    let maxArea: Int?
    /// The edge of a tile, in pixels.
    let tile: Int
    /// Additional members of `info.json`.
    let extras: [JSONValue.Member]

    init(_ members: inout GrammarMembers) throws(InvalidSetting) {
        unsigned = try members.flag("unsigned")
        identifiers = try Self.entries(&members)
        base = try members.text("baseURL").map { $0.hasSuffix("/") ? String($0.dropLast()) : $0 }
        guard base.map(Self.isBase) != false else {
            throw members.fault("baseURL", "expected an http or https URL without a query")
        }
        let edges = 1...1_000_000
        maxWidth = try members.integer("maxWidth", edges)
        maxHeight = try members.integer("maxHeight", edges)
        maxArea = try members.integer("maxArea", 1...1_000_000_000_000)
        guard maxHeight == nil || maxWidth != nil else { throw members.fault("maxHeight", "requires `maxWidth`") }
        tile = try members.integer("tile", 64...8192) ?? 512
        let others = try members.list("formats", "the formats webp, gif, tif, avif and jxl") {
            if case .string(let name) = $0 { IIIFFormat(rawValue: name) } else { nil }
        }
        // Level 2 requires JPEG and PNG.
        let required: [IIIFFormat] = [.jpg, .png]
        formats = required + (others ?? [.webp, .gif, .tif, .avif]).filter { !required.contains($0) }
        extras = try members.object("info") ?? []
        if let name = extras.map(\.name).first(where: Self.ownMembers.contains) {
            throw members.fault("info", "the server writes the member `\(name)` of info.json")
        }
    }

    private static func isBase(_ url: String) -> Bool {
        ["http://", "https://"].contains { url.hasPrefix($0) && url != $0 }
            && url.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && !"?#<>\"\\".utf8.contains($0) }
    }

    // MARK: Identifiers

    /// An identifier or a pattern with one `*`, and its source. A `*` in the source means the text that the `*` of the
    /// pattern matches. If the identifier has no `*`, it means the identifier.
    struct Entry: Sendable {
        /// The parts of the identifier before and after `*`, or the identifier as the only part.
        fileprivate let name: [Substring]
        fileprivate let source: [Substring]

        fileprivate func isExactly(_ identifier: String) -> Bool { name.count == 1 && name[0] == identifier }

        /// Returns the source of an identifier, or nil if the entry has a different name or the text at `*` could lead
        /// to a different folder.
        fileprivate func source(of identifier: String) -> String? {
            var matched = Substring(identifier).utf8
            if name.count == 2 {
                let (prefix, suffix) = (name[0].utf8, name[1].utf8)
                guard matched.count > prefix.count + suffix.count, matched.starts(with: prefix),
                    matched.suffix(suffix.count).elementsEqual(suffix)
                else { return nil }
                matched = matched.dropFirst(prefix.count).dropLast(suffix.count)
            } else if identifier != name[0] {
                return nil
            }
            let text = String(Substring(matched))
            guard source.count == 2 else { return source.joined() }
            // Splits bytes, because a character can consist of a slash and a combining mark.
            let segments = text.utf8.split { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "\\") }
            guard !segments.contains(where: { $0.elementsEqual(".".utf8) || $0.elementsEqual("..".utf8) }) else {
                return nil
            }
            return source.joined(separator: PercentText.encoded(text, keeping: "-._~/:"))
        }
    }

    /// Returns the source that `identifiers` gives for an identifier. Returns nil if it gives no source.
    func source(of identifier: String) -> String? {
        identifiers.lazy.compactMap { $0.source(of: identifier) }.first
    }

    /// Removes `;N` from the end of an identifier, as in Cantaloupe, and returns the page N. Returns 1 if the identifier
    /// does not end in `;N`, or if `identifiers` contains the complete identifier.
    func page(_ identifier: inout String) -> Int {
        let parts = identifier.split(separator: ";", omittingEmptySubsequences: false)
        guard parts.count > 1, let last = parts.last, let page = PlainNumber.parseWhole(last), page > 0,
            !identifiers.contains(where: { $0.isExactly(identifier) })
        else { return 1 }
        identifier.removeLast(last.count + 1)
        return page
    }

    /// Whether a source is an absolute URL, and does not name a base URL.
    static func isURL(_ text: String) -> Bool {
        ["http://", "https://", "s3://"].contains { text.prefix($0.count).lowercased() == $0 }
    }

    private static func entries(_ members: inout GrammarMembers) throws(InvalidSetting) -> [Entry] {
        var entries: [Entry] = []
        for member in try members.object("identifiers") ?? [] {
            guard case .string(let source) = member.value, isURL(source) || BaseURLs.mayName(source) else {
                throw members.fault("identifiers", "the value of `\(member.name)` must be a URL or NAME:PATH")
            }
            let entry = Entry(
                name: member.name.split(separator: "*", omittingEmptySubsequences: false),
                source: source.split(separator: "*", omittingEmptySubsequences: false))
            // A `*` in the host would let clients choose the host.
            let isInPath =
                !isURL(source) || entry.source.count == 1
                || entry.source[0].utf8.count(where: { $0 == UInt8(ascii: "/") }) > 2
            guard entry.name.count <= 2, entry.source.count <= 2, isInPath else {
                throw members.fault(
                    "identifiers", "`\(member.name)` may contain one `*`, and its value one `*` in the path")
            }
            entries.append(entry)
        }
        // Identifiers precede patterns, and longer patterns precede shorter ones.
        return entries.sorted { ($0.name.count, $1.name[0].utf8.count) < ($1.name.count, $0.name[0].utf8.count) }
    }

    // MARK: Limits

    /// Returns the limits of results.
    ///
    /// - Parameter edge: The maximum edge of every result of the server, in pixels.
    func limits(_ edge: Int) -> IIIFLimits {
        IIIFLimits(
            width: min(maxWidth ?? edge, edge), height: min(maxHeight ?? maxWidth ?? edge, edge),
            area: maxArea ?? .max, areSet: maxWidth != nil || maxArea != nil)
    }
}

extension GrammarMembers {
    fileprivate mutating func object(_ name: String) throws(InvalidSetting) -> [JSONValue.Member]? {
        try value(name, "a map") { if case .object(let members) = $0 { members } else { nil } }
    }
}
