import Glibc
import PipelineSupport

/// The parts of an SVG that our own code reads: the root element with its size, and properties that determine whether
/// the document is safe to parse. librsvg draws the document.
///
/// Sizes are computed as for an `<img>` in browsers: SVG 2 §8.2 and §8.12, CSS Images 3 §5.3.
struct SVGDocument {
    /// The width in CSS pixels before rounding.
    let width: Double
    let height: Double

    private let file: ByteReader
    /// The range of the attributes in the root's start tag: from the end of its name to its `>` or `/>`.
    private let tag: Range<Int>
    let attributes: [Attribute]
    /// The x, y, width and height of the visible part, in the units of the content.
    let box: [Double]
    /// Whether the root has a valid `viewBox`.
    private let hasBox: Bool

    /// An attribute: its name, its value with references, and the range of the complete attribute.
    typealias Attribute = (name: String, value: String, place: Range<Int>)

    /// The maximum nesting depth of elements, which is also the limit of libxml2.
    static let depthLimit = 256
    /// The maximum length of the root's start tag in bytes. A document with a longer tag is not drawn.
    static let rootLimit = 65_536
    /// The maximum total size of all entities in a document, in bytes.
    static let entityLimit = 1 << 20

    /// Returns the offsets of the root's start tag and of the end of the root's name. Returns nil unless the name is
    /// `svg`, with any namespace prefix.
    private static func svg(_ file: ByteReader) -> (start: Int, name: Int)? {
        guard let start = root(file)?.start else { return nil }
        var at = start + 1
        while at - start < 100, let byte = file.byte(at), !endsName(byte) { at += 1 }
        let name = text(file, start + 1..<at)
        return name == "svg" || name.hasSuffix(":svg") ? (start, at) : nil
    }

    /// Whether the root is an `svg` element, whatever its attributes.
    static func isRoot(of file: ByteReader) -> Bool { svg(file) != nil }

    /// Reads the root. Returns nil if the root is not an `svg` element, is truncated, or is longer than `rootLimit`.
    init?(_ file: ByteReader) {
        guard let (start, at) = Self.svg(file), let end = Self.endOfTag(file, start), end - start <= Self.rootLimit
        else { return nil }
        let last = file.byte(end - 2) == UInt8(ascii: "/") ? end - 2 : end - 1
        self.file = file
        tag = at..<max(at, last)
        let found = Self.attributes(file, tag)
        attributes = found
        func value(_ name: String) -> String? { found.first { $0.name == name }?.value }
        let box = (value("viewBox") ?? "").split { $0.isWhitespace || $0 == "," }.compactMap { Double($0) }
        let isBox = box.count == 4 && box[2] > 0 && box[3] > 0 && (box[3] / box[2]).isNormal
        let ratio = isBox ? box[3] / box[2] : nil
        let size: (Double, Double) =
            switch (value("width").flatMap(Self.pixels), value("height").flatMap(Self.pixels), ratio) {
            case (let across?, let down?, _): (across, down)
            case (let across?, nil, let ratio): (across, ratio.map { across * $0 } ?? 150)
            case (nil, let down?, let ratio): (ratio.map { down / $0 } ?? 300, down)
            // The largest size with this ratio that fits in 300 × 150.
            case (nil, nil, let ratio?): (min(300, 150 / ratio), min(150, 300 * ratio))
            case (nil, nil, nil): (300, 150)
            }
        (width, height) = size
        hasBox = isBox
        self.box = isBox ? box : [0, 0, size.0, size.1]
    }

    /// Returns a length in CSS pixels. Returns nil if the length is invalid or relative to the surroundings of the
    /// picture.
    private static func pixels(_ text: String) -> Double? {
        let text = Array(text.utf8.filter { $0 > 0x20 })
        func isDigit(_ at: Int) -> Bool { at < text.count && text[at].isDigit }
        func isSign(_ at: Int) -> Bool { at < text.count && [0x2B, 0x2D].contains(text[at]) }
        var end = isSign(0) ? 1 : 0
        while isDigit(end) || end < text.count && text[end] == UInt8(ascii: ".") { end += 1 }
        if end < text.count, text[end] | 0x20 == UInt8(ascii: "e"),
            isDigit(end + 1) || isSign(end + 1) && isDigit(end + 2)
        {
            end += 2
            while isDigit(end) { end += 1 }
        }
        let units = [
            "": 1, "px": 1, "in": 96, "cm": 96 / 2.54, "mm": 9.6 / 2.54, "q": 2.4 / 2.54, "pt": 4.0 / 3, "pc": 16,
            "em": 16,
            "rem": 16, "ex": 8,
        ]
        guard let number = Double(String(decoding: text[..<end], as: UTF8.self)), number >= 0,
            let unit = units[String(decoding: text[end...], as: UTF8.self).lowercased()]
        else { return nil }
        return number * unit
    }

    /// Returns the document with a root of this size. The content is scaled to the root.
    ///
    /// - Parameter isNested: whether another root will contain this root. A nested root clips its content to its own size.
    func sized(_ size: PixelSize, isNested: Bool = false) -> PixelStorage {
        var root: [UInt8] = []
        var from = tag.lowerBound
        let replaced = ["width", "height", "style"] + (hasBox ? [] : ["viewBox"])
        for attribute in attributes where replaced.contains(attribute.name) {
            root += file.part(from, attribute.place.lowerBound - from).all
            from = attribute.place.upperBound
        }
        root += file.part(from, tag.upperBound - from).all
        var added = " width=\"\(size.width)\" height=\"\(size.height)\""
        if !hasBox { added += " viewBox=\"0 0 \(width) \(height)\"" }
        // A style sheet in the document cannot override this style.
        let style = attributes.first { $0.name == "style" }?.value.replacing("\"", with: "&quot;") ?? ""
        // A space keeps the tokens before and after the word apart.
        added +=
            " style=\"width:\(size.width)px !important;height:\(size.height)px !important;"
            + (isNested ? "overflow:hidden !important;" : "") + style.replacing("!important", with: " ") + "\""
        return PixelStorage(
            [UInt8](file.part(0, tag.lowerBound).all) + root + Array(added.utf8)
                + [UInt8](file.part(tag.upperBound).all))
    }

    /// Throws if the document would exhaust the memory or stack of a parser, or refers to data outside the file.
    func check() throws(RenderError) {
        func refusal(_ problem: String) -> RenderError {
            RenderError(.undecodable, "SVG files \(problem) are not supported; simplify the file")
        }
        let (start, entities) = Self.root(file) ?? (0, 0..<0)
        let encoding = encoding(before: start)
        guard encoding.isEmpty || Self.encodings.contains(where: encoding.hasPrefix) else {
            throw refusal("with the encoding \(encoding.prefix(40))")
        }
        let declarations = file.part(0, entities.upperBound)
        var (longest, lists, at) = (0, 0, Self.startOfDeclarations(declarations, entities.lowerBound))
        while let found = declarations.firstOffset(of: UInt8(ascii: "<"), from: at) {
            at = found + 1
            guard declarations.matches("!ENTITY", at: at) else {
                // Text in quotes or comments could look like an entity.
                at = Self.endOfTag(declarations, found, isDeclaration: true) ?? declarations.count
                if declarations.matches("<!ATTLIST", at: found) { lists += at - found }
                // A parser adds these attributes to each element.
                guard lists <= Self.listLimit else {
                    throw refusal("with more than \(Self.listLimit) bytes of ATTLIST")
                }
                continue
            }
            at += 7
            // The allowed form is white space, a name, white space, and text in quotes. Entities with `%`, SYSTEM or
            // PUBLIC do not match.
            func skip(_ isSkipped: (UInt8) -> Bool) {
                while let byte = declarations.byte(at), isSkipped(byte) { at += 1 }
            }
            skip { $0 <= 0x20 }
            if declarations.byte(at) == UInt8(ascii: "%") { throw refusal("with parameter entities") }
            skip { $0 > 0x20 && $0 != 0x22 && $0 != 0x27 }
            skip { $0 <= 0x20 }
            guard let quote = declarations.byte(at), quote == 0x22 || quote == 0x27 else {
                throw refusal("with external entities")
            }
            guard let end = declarations.firstOffset(of: quote, from: at + 1) else { break }
            let value = declarations.part(at + 1, end - at - 1)
            if value.firstOffset(of: UInt8(ascii: "&"), from: 0) != nil
                || value.firstOffset(of: UInt8(ascii: "%"), from: 0) != nil
            {
                throw refusal("with nested entities")
            }
            longest = max(longest, value.count)
            at = end + 1
        }
        if longest > 0 {
            let references = file.all[start...].count { $0 == UInt8(ascii: "&") }
            if references * longest > Self.entityLimit {
                throw refusal("with entities that expand to more than a megabyte")
            }
        }
        var depth = 0
        at = start
        while let open = file.firstOffset(of: UInt8(ascii: "<"), from: at) {
            if file.byte(open + 1) == UInt8(ascii: "/") {
                depth -= 1
            } else if let kind = file.byte(open + 1), kind != UInt8(ascii: "!"), kind != UInt8(ascii: "?"),
                let end = Self.endOfTag(file, open)
            {
                // A parser compares each attribute with all others.
                if end - open > Self.rootLimit,
                    Self.attributes(file, open + 1..<end).count > Self.attributeLimit
                {
                    throw refusal("with more than \(Self.attributeLimit) attributes of one element")
                }
                if file.byte(end - 2) != UInt8(ascii: "/") { depth += 1 }
                if depth > Self.depthLimit {
                    throw refusal("with elements nested more than \(Self.depthLimit) levels deep")
                }
            }
            guard let end = Self.endOfTag(file, open) else { return }
            at = end
        }
    }

    /// The maximum total size of declared default attributes, in bytes.
    private static let listLimit = 4096
    /// The maximum number of attributes in a start tag that is longer than `rootLimit`.
    private static let attributeLimit = 1000
    /// The beginnings of the names of encodings in which all markup is ASCII.
    private static let encodings = [
        "utf-8", "utf8", "us-ascii", "ascii", "iso-8859-", "iso8859", "latin", "windows-12", "cp12", "koi8", "mac",
        "euc-", "gb", "big5", "shift_jis", "sjis",
    ]

    /// Returns the encoding that the XML declaration names, in lowercase, or an empty text.
    private func encoding(before start: Int) -> String {
        let head = Self.text(file, 0..<min(start, 1024)).lowercased()
        guard let declaration = head.split(separator: "?>").first, declaration.contains("<?xml "),
            let value = declaration.split(separator: "encoding").dropFirst().first
        else { return "" }
        let quoted = value.drop { $0 != "\"" && $0 != "'" }
        return quoted.first.map { quote in String(quoted.dropFirst().prefix { $0 != quote }) } ?? ""
    }

    /// Returns the offset of the declarations in a document type, after its name and identifiers.
    private static func startOfDeclarations(_ file: ByteReader, _ start: Int) -> Int {
        var at = start
        while let byte = file.byte(at), byte != UInt8(ascii: "[") {
            at += 1
            if byte == 0x22 || byte == 0x27 { at = (file.firstOffset(of: byte, from: at) ?? file.count) + 1 }
        }
        return at
    }

    /// Returns the start of the root's start tag, after declarations and comments, and the range in which entities may
    /// be declared.
    private static func root(_ file: ByteReader) -> (start: Int, entities: Range<Int>)? {
        var at = file.matches([0xEF, 0xBB, 0xBF]) ? 3 : 0
        var entities = 0..<0
        while true {
            while let byte = file.byte(at), byte == 0x20 || (9...13).contains(byte) { at += 1 }
            guard file.byte(at) == UInt8(ascii: "<"), let next = file.byte(at + 1) else { return nil }
            if next != UInt8(ascii: "!"), next != UInt8(ascii: "?") { return (at, entities) }
            guard let end = endOfTag(file, at) else { return nil }
            if file.matches("<!DOCTYPE", at: at) { entities = at..<end }
            at = end
        }
    }

    /// Returns the offset after a construct that begins with `<`: a tag, a comment, a processing instruction, CDATA, or
    /// a document type with its declarations.
    static func endOfTag(_ file: ByteReader, _ start: Int, isDeclaration: Bool = false) -> Int? {
        func behind(_ end: StaticString, _ from: Int) -> Int? {
            file.firstOffset(of: end, from: from).map { $0 + end.utf8CodeUnitCount }
        }
        if file.matches("<!--", at: start) { return behind("-->", start + 4) }
        if file.matches("<?", at: start) { return behind("?>", start + 2) }
        if file.matches("<![CDATA[", at: start) { return behind("]]>", start + 9) }
        var at = start + 1
        while let byte = file.byte(at) {
            switch byte {
            case UInt8(ascii: ">"): return at + 1
            case 0x22, 0x27:
                guard let end = file.firstOffset(of: byte, from: at + 1) else { return nil }
                at = end + 1
            // Skip the declarations, which may include comments, in the brackets of a document type.
            case UInt8(ascii: "<"):
                guard !isDeclaration, file.matches("<!DOCTYPE", at: start),
                    let end = endOfTag(file, at, isDeclaration: true)
                else { return nil }
                at = end
            default: at += 1
            }
        }
        return nil
    }

    static func attributes(
        _ file: ByteReader, _ tag: Range<Int>
    ) -> [Attribute] {
        var found: [Attribute] = []
        var at = tag.lowerBound
        while at < tag.upperBound {
            let start = at
            while at < tag.upperBound, let byte = file.byte(at), !endsName(byte) { at += 1 }
            let name = text(file, start..<at)
            if name.isEmpty {
                at += 1
                continue
            }
            while at < tag.upperBound, let byte = file.byte(at), byte <= 0x20 || byte == UInt8(ascii: "=") { at += 1 }
            guard let quote = file.byte(at), quote == 0x22 || quote == 0x27,
                let end = file.firstOffset(of: quote, from: at + 1), end < tag.upperBound
            else { continue }
            found.append((name, text(file, at + 1..<end), start..<end + 1))
            at = end + 1
        }
        return found
    }

    static func endsName(_ byte: UInt8) -> Bool {
        byte <= 0x20 || [UInt8(ascii: "="), UInt8(ascii: ">"), UInt8(ascii: "/"), 0x22, 0x27].contains(byte)
    }

    static func text(_ file: ByteReader, _ range: Range<Int>) -> String {
        String(decoding: file.part(range.lowerBound, range.count).all, as: UTF8.self)
    }
}

extension SVGDocument {
    /// The start of the root's content, or nil if the root has no content.
    var contentStart: Int? { file.byte(tag.upperBound) == UInt8(ascii: ">") ? tag.upperBound + 1 : nil }

    /// Calls `body` with the name (without its prefix) and the attributes of each element. For a `style` element, also
    /// passes the text without comments and the range of the text.
    func forEachElement(_ body: (String, [Attribute], (css: [UInt8], place: Range<Int>)?) -> Void) {
        var at = Self.svg(file)?.start ?? 0
        while let open = file.firstOffset(of: UInt8(ascii: "<"), from: at), let end = Self.endOfTag(file, open) {
            at = end
            guard let first = file.byte(open + 1), !"!?/".utf8.contains(first) else { continue }
            var nameEnd = open + 1
            while let byte = file.byte(nameEnd), !Self.endsName(byte) { nameEnd += 1 }
            let name = Self.text(file, open + 1..<nameEnd)
            let local = name.split(separator: ":").last.map(String.init) ?? name
            let hasContent = file.byte(end - 2) != UInt8(ascii: "/")
            let attributes = Self.attributes(file, nameEnd..<(hasContent ? end - 1 : end - 2))
            guard local == "style", hasContent else {
                body(local, attributes, nil)
                continue
            }
            var css: [UInt8] = []
            while let next = file.firstOffset(of: UInt8(ascii: "<"), from: at) {
                let text = Self.text(file, at..<next)
                css += (Self.decoded(text) ?? text).utf8
                at = next
                guard file.byte(next + 1) == UInt8(ascii: "!"), let after = Self.endOfTag(file, next) else { break }
                if file.matches("<![CDATA[", at: next) { css += file.part(next + 9, after - next - 12).all }
                at = after
            }
            body(local, attributes, (CSSText.withoutComments(css), end..<at))
        }
    }

    /// Returns the text with its references resolved. Returns nil if the text contains references other than the five
    /// that XML predefines.
    static func decoded(_ text: String) -> String? {
        guard text.utf8.contains(UInt8(ascii: "&")) else { return text }
        var text = text
        for (reference, character) in [("lt", "<"), ("gt", ">"), ("quot", "\""), ("apos", "'")] {
            text = text.replacing("&\(reference);", with: character)
        }
        let isKnown = text.split(separator: "&", omittingEmptySubsequences: false).dropFirst().allSatisfy {
            $0.hasPrefix("amp;")
        }
        return isKnown ? text.replacing("&amp;", with: "&") : nil
    }

    static func encoded(_ text: String) -> String {
        // Replaces bytes, because a character can consist of a markup character and a combining mark.
        let names: [UInt8: String] = [0x26: "&amp;", 0x3C: "&lt;", 0x3E: "&gt;", 0x22: "&quot;"]
        return String(decoding: text.utf8.flatMap { names[$0].map { Array($0.utf8) } ?? [$0] }, as: UTF8.self)
    }

    /// Returns the document with the given ranges replaced. The edits must be in order.
    func replacing(_ edits: [(place: Range<Int>, text: String)]) -> PixelStorage {
        var (result, at): ([UInt8], Int) = ([], 0)
        for edit in edits where edit.place.lowerBound >= at {
            result += file.part(at, edit.place.lowerBound - at).all
            result += edit.text.utf8
            at = edit.place.upperBound
        }
        return PixelStorage(result + file.part(at).all)
    }
}
