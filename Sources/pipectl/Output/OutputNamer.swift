import Pipeline
import PipelineSupport
import Variants

struct OutputNaming: Sendable {
    /// The source as given.
    var source: String
    /// The folder of the source relative to the folder argument. Empty if the source is not from a folder.
    var folder: String
    /// The name that a manifest sets for this source. The name replaces the template.
    var name: String?
    /// The recipe as written (`@card`) and in canonical form.
    var recipe: (written: String, canonical: String)
    var fileExtension: String
    /// The variant's width, or nil if the variant has not been rendered yet. Placeholders without a value are kept.
    var width: Int?
    var height: Int?
    var key: String?
    /// The SHA-256 digest of the variant.
    var digest: String?
    /// The position of the source in the input, starting at 1.
    var index: Int
    /// Whether this source is rendered with more than one recipe.
    var hasSeveralRecipes = false
}

extension OutputNaming {
    /// - Parameter variant: The rendered variant, or nil if it has not been rendered yet.
    init(_ item: BatchItem, fileExtension: String, of variant: ItemJSON? = nil) {
        self.init(
            source: item.source.source, folder: item.source.folder, name: item.source.name,
            recipe: (item.written, item.canonical), fileExtension: fileExtension, width: variant?.width,
            height: variant?.height, key: variant?.key, digest: variant?.digest, index: item.index,
            hasSeveralRecipes: item.hasSeveralRecipes)
    }
}

struct NameError: Error, Sendable, Hashable, CustomStringConvertible {
    var message: String
    var description: String { message }
}

/// The name of an output, relative to the output folder.
struct OutputName: Sendable, Hashable {
    var path: String
    /// The name that results from the template, if another output already has it.
    var wanted: String?
    /// A template that gives the two outputs different names, or nil if a manifest sets the names.
    var disambiguatingTemplate: String?
    /// Whether another recipe of the same source produced the same bytes under this name.
    var isRepeated = false
}

/// Names outputs by a template and never gives two outputs the same name.
///
/// Used names are stored as hashes, so 100,000 names take a few megabytes. The first item in input order keeps the
/// plain name. For a later item of a different source, `-` and 8 hexadecimal digits are added before the extension. The
/// digits are taken from the SHA-256 digest of the source. For a later recipe of the same source, they are taken from
/// the digest of source, line feed and recipe, unless the recipe produced the same bytes.
struct OutputNamer {
    static let placeholders = ["stem", "ext", "dir", "width", "height", "key", "index", "recipe"]

    private enum Part: Sendable {
        case text(String), placeholder(String)

        /// Whether the value is known only after rendering.
        var isOfVariant: Bool {
            if case .placeholder(let name) = self { ["width", "height", "key"].contains(name) } else { false }
        }
    }

    /// The template, or nil to choose the default according to the number of the source's recipes.
    private let template: [Part]?
    private let written: String?
    /// `suffix` is `-` and the recipe, without an output that the extension implies.
    private static let defaultTemplates: (one: [Part], several: [Part]) = (
        [.placeholder("stem"), .text("."), .placeholder("ext")],
        [.placeholder("stem"), .placeholder("suffix"), .text("."), .placeholder("ext")]
    )
    private struct Holder: Equatable {
        /// Hashes of the source and of the variant's digest.
        var source: Int
        var content: Int?
    }
    /// The output that has each name, by the name's hash.
    private var given: [Int: Holder] = [:]
    private let foldsCase: Bool
    private static let componentLimit = 240

    /// - Parameters:
    ///   - template: The template. If nil, it is `{stem}.{ext}`, or `{stem}-{recipe}.{ext}` if the source has several
    ///     recipes.
    ///   - foldsCase: Whether names that differ only in case or in Unicode normalization are the same file. Defaults to
    ///     false.
    init(template: String?, foldsCase: Bool = false) throws(NameError) {
        written = template
        self.foldsCase = foldsCase
        self.template = try template.map { text throws(NameError) in try Self.parse(text) }
    }

    /// Returns the name of the next item's output. The name is never outside the output folder.
    mutating func name(for item: OutputNaming) throws(NameError) -> OutputName {
        let own = try item.name.map { text throws(NameError) in try Self.parse(text) }
        let usual = item.hasSeveralRecipes ? Self.defaultTemplates.several : Self.defaultTemplates.one
        let parts = own ?? template ?? usual
        let hasFolder = parts.contains { if case .placeholder("dir") = $0 { true } else { false } }
        var text = hasFolder || item.name != nil ? "" : (item.folder.isEmpty ? "" : item.folder + "/")
        for part in parts {
            switch part {
            case .text(let literal): text += literal
            case .placeholder(let placeholder): text += value(placeholder, item)
            }
        }
        // `{dir}` is empty for files directly in the folder argument. The template itself does not begin with a slash.
        let path = try contained(String(decoding: text.utf8.drop { $0 == UInt8(ascii: "/") }, as: UTF8.self))
        // Before rendering, such names are unknown.
        let isOpen = item.width == nil && parts.contains(where: \.isOfVariant)
        if isOpen { return OutputName(path: path) }
        let holder = Holder(source: ByteString(item.source).hashValue, content: item.digest?.hashValue)
        let suffixes = [
            "", "-" + sha256Hex(item.source).prefix(8),
            "-" + sha256Hex(item.source + "\n" + item.recipe.canonical).prefix(8),
        ]
        // The second suffix resolves a collision with a different source, and the third resolves a collision with a
        // different recipe of the same source.
        let isOwn = given[hash(path)]?.source == holder.source
        for suffix in isOwn ? ["", suffixes[2]] : suffixes {
            let candidate = Self.insert(suffix, into: path)
            if let earlier = given[hash(candidate)] {
                if earlier == holder, item.digest != nil { return OutputName(path: candidate, isRepeated: true) }
                continue
            }
            given[hash(candidate)] = holder
            if suffix.isEmpty { return OutputName(path: candidate) }
            let disambiguating = own == nil ? disambiguatingTemplate(hasSameSource: isOwn, item) : nil
            return OutputName(path: candidate, wanted: path, disambiguatingTemplate: disambiguating)
        }
        throw NameError(
            message: "the name `\(path)` and its alternatives are already in use; choose a name with {index} or {key}")
    }

    private func hash(_ path: String) -> Int {
        // Uppercasing first folds more letters. Folding too many letters only causes an unnecessary suffix.
        foldsCase ? path.uppercased().lowercased().hashValue : ByteString(path).hashValue
    }

    private func disambiguatingTemplate(hasSameSource: Bool, _ item: OutputNaming) -> String {
        var text = written ?? (item.hasSeveralRecipes ? "{stem}-{recipe}.{ext}" : "{stem}.{ext}")
        let added = (hasSameSource ? ["{recipe}", "{key}"] : ["{index}", "{key}"]).first { !text.contains($0) }
        guard let added else { return text }
        text.insert(contentsOf: "-" + added, at: text.firstRange(of: ".{ext}")?.lowerBound ?? text.endIndex)
        return text
    }

    // MARK: Placeholders

    private static func parse(_ text: String) throws(NameError) -> [Part] {
        guard !text.isEmpty else { throw NameError(message: "the output name is empty; check --name or the manifest") }
        try check(text)
        var parts: [Part] = []
        var rest = text[...]
        while let open = rest.firstIndex(of: "{") {
            guard let close = rest[open...].firstIndex(of: "}") else {
                throw NameError(message: "the output name `\(text)` contains a `{` without `}`")
            }
            if open > rest.startIndex { parts.append(.text(String(rest[..<open]))) }
            let name = String(rest[rest.index(after: open)..<close])
            guard placeholders.contains(name) else {
                throw NameError(
                    message: "the output name `\(text)` contains the unknown placeholder `{\(name)}`"
                        + NearestName.hint(name, in: placeholders))
            }
            parts.append(.placeholder(name))
            rest = rest[rest.index(after: close)...]
        }
        if !rest.isEmpty { parts.append(.text(String(rest))) }
        return parts
    }

    private func value(_ placeholder: String, _ item: OutputNaming) -> String {
        switch placeholder {
        case "stem": Self.stem(of: item.source)
        case "ext": item.fileExtension
        case "dir": item.folder
        case "width": item.width.map(String.init) ?? "{width}"
        case "height": item.height.map(String.init) ?? "{height}"
        case "key": item.key ?? "{key}"
        case "index": String(item.index)
        case "suffix": suffix(item)
        default: recipePart(item.recipe.written, item.recipe.canonical)
        }
    }

    /// Returns the last path component (percent-decoded for a URL) without its extension, `/`, NUL or leading dots. If
    /// the component is empty, returns the host, or `image` if the source has no host.
    static func stem(of source: String) -> String {
        var component: String
        var host = ""
        if let scheme = source.firstRange(of: "://") {
            let afterScheme = source[scheme.upperBound...]
            let authority = afterScheme.prefix { !"/?#".contains($0) }
            let path = afterScheme[authority.endIndex...].prefix { !"?#".contains($0) }
            let last = String(path).splitAtLastSlash?.name ?? ""
            component = String(decoding: SourceURL.percentDecoded(last), as: UTF8.self)
            let named = authority.split(separator: "@").last ?? ""
            host = String(named.hasPrefix("[") ? named.dropFirst().prefix { $0 != "]" } : named.prefix { $0 != ":" })
        } else {
            component = String(source.pathParts.last ?? "")
        }
        // Compare Unicode scalars, because a combining mark after a `/` would hide it when comparing characters.
        component = String(
            String.UnicodeScalarView(component.unicodeScalars.filter { $0 != "/" && $0 != "\0" }.drop { $0 == "." }))
        if let dot = component.lastIndex(of: "."), dot != component.startIndex { component = String(component[..<dot]) }
        if !component.isEmpty { return component }
        let fallback = host.filter { $0 != "/" && $0 != "\0" }.drop { $0 == "." }
        return fallback.isEmpty ? "image" : String(fallback)
    }

    /// Returns `-` and the recipe, without an output that the extension implies: `-320x240` for
    /// `thumbnail:320x240,webp`.
    private func suffix(_ item: OutputNaming) -> String {
        var (written, canonical) = item.recipe
        let last = canonical.split(separator: ",").last ?? ""
        let parts = last.split(separator: ":", maxSplits: 1)
        if !written.hasPrefix("@") || written.contains(","), let token = parts.first,
            ImageFormat(rawValue: String(token))?.fileExtension == item.fileExtension
        {
            written = ""
            canonical.removeLast(last.utf8.count)
            if parts.count > 1 { canonical += parts[1] } else if canonical.last == "," { canonical.removeLast() }
        }
        let part = recipePart(written, canonical)
        return part.isEmpty ? "" : "-" + part
    }

    /// Returns the preset's name if the recipe is a single preset. Otherwise, returns the canonical form, made safe for
    /// a file name and without the word with which most recipes begin: `300x200_fill` for `thumbnail:300x200:fill`.
    func recipePart(_ written: String, _ canonical: String) -> String {
        if written.hasPrefix("@"), !written.contains(",") {
            return written.dropFirst().split { $0.isWhitespace || $0 == "/" }.joined(separator: "_")
        }
        var result: [UInt8] = []
        var isInRun = false
        for byte in canonical.utf8 {
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "."), UInt8(ascii: "-"):
                result.append(byte)
                isInRun = false
            default:
                if !isInRun { result.append(UInt8(ascii: "_")) }
                isInRun = true
            }
        }
        var text = String(decoding: result, as: UTF8.self)
        if text.hasPrefix("thumbnail_") { text.removeFirst("thumbnail_".count) }
        return text.utf8.count <= 48 ? text : text.prefix(36) + "-" + sha256Hex(canonical).prefix(8)
    }

    // MARK: Safety

    /// Throws if the string is not a valid output path or the beginning of one.
    private static func check(_ text: String) throws(NameError) {
        guard !text.utf8.contains(0) else { throw NameError(message: "the output name contains a NUL character") }
        guard text.utf8.first != UInt8(ascii: "/") else {
            throw NameError(
                message: "the output name `\(text)` is an absolute path; it must be relative to the output folder")
        }
    }

    /// Returns the path without empty and `.` components. Throws if the path leads out of the output folder or names no
    /// file.
    private func contained(_ text: String) throws(NameError) -> String {
        try Self.check(text)
        var components: [String] = []
        for part in text.pathParts where part != "." {
            let component = String(part)
            guard component != ".." else {
                throw NameError(message: "the output name `\(text)` leads out of the output folder; remove the `..`")
            }
            components.append(shortened(component))
        }
        guard !components.isEmpty, text.utf8.last != UInt8(ascii: "/") else {
            throw NameError(message: "the output name `\(text)` does not end in a file name")
        }
        return components.joined(separator: "/")
    }

    /// Shortens a long path component. File systems allow 255 bytes, and the collision suffix needs some of them.
    private func shortened(_ component: String) -> String {
        guard component.utf8.count > Self.componentLimit else { return component }
        let (stem, ending) = Self.split(component)
        let kept = ending.utf8.count <= 16 ? ending : ""
        var head = ""
        for character in (kept.isEmpty ? component : stem) {
            guard head.utf8.count + character.utf8.count <= 200 else { break }
            head.append(character)
        }
        return head + "-" + sha256Hex(component).prefix(8) + kept
    }

    /// Splits a component into its stem and its extension with the dot.
    private static func split(_ component: String) -> (stem: String, ending: String) {
        guard let dot = component.lastIndex(of: "."), dot != component.startIndex else { return (component, "") }
        return (String(component[..<dot]), String(component[dot...]))
    }

    private static func insert(_ suffix: String, into path: String) -> String {
        if suffix.isEmpty { return path }
        let parts = path.splitAtLastSlash
        let (stem, ending) = split(parts?.name ?? path)
        return (parts.map { $0.folder + "/" } ?? "") + stem + suffix + ending
    }
}
