import PipelineSupport

/// Reads the properties of an XMP packet (ISO 16684-1) that credit a picture, name its license, or mark it as generated.
///
/// Each property is rewritten with its usual prefix and with its own content alone: arrays, structures and language
/// alternatives of the same namespace. Declared entities are never expanded.
struct XMPCredits {
    /// A property or an item in it. The attributes and the content are XML.
    struct Property {
        var name: String
        var attributes = ""
        var content = ""

        var text: String { "<\(name)\(attributes)>\(content)</\(name)>" }
        var prefix: Substring { name.prefix { $0 != ":" } }
    }

    private typealias Tag = (name: String, attributes: Range<Int>, isEnd: Bool, isEmpty: Bool)
    /// The namespaces by prefix.
    private typealias Scope = [String: String]

    /// The namespaces with their usual prefixes, most important first, and the names of the properties that are read.
    /// An empty list means all properties.
    static let namespaces: [(prefix: String, uri: String, names: [String])] = [
        ("Iptc4xmpExt", "http://iptc.org/std/Iptc4xmpExt/2008-02-29/", ["DigitalSourceType"]),
        ("dc", "http://purl.org/dc/elements/1.1/", ["creator", "rights"]),
        ("photoshop", "http://ns.adobe.com/photoshop/1.0/", ["Credit"]),
        ("xmpRights", "http://ns.adobe.com/xap/1.0/rights/", []),
        ("cc", "http://creativecommons.org/ns#", ["license"]),
        ("plus", "http://ns.useplus.org/ldf/xmp/1.0/", []),
    ]
    static let rdf = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
    private static let prefixes: [String: String] = namespaces.reduce(
        into: [rdf: "rdf", "adobe:ns:meta/": "x", "xml": "xml"]
    ) { $0[$1.uri] = $1.prefix }

    /// The maximum sizes of a text and of a property with all its texts, in bytes of UTF-8.
    static let (textLimit, propertyLimit) = (1000, 2000)

    /// The properties, each at most once, most important first.
    private(set) var properties: [Property] = []
    private let file: ByteReader
    private var at = 0

    /// Reads a packet in UTF-8 or UTF-16.
    static func properties(of packet: [UInt8]) -> [Property] {
        utf8(Array(packet.prefix(KeptCredits.inputLimit))).withUnsafeBytes { bytes in
            var reader = XMPCredits(file: ByteReader(bytes))
            reader.read()
            return namespaces.flatMap { space in reader.properties.filter { $0.prefix == space.prefix } }
        }
    }

    private init(file: ByteReader) { self.file = file }

    private static func utf8(_ packet: [UInt8]) -> [UInt8] {
        let isBig = packet.starts(with: [0xFE, 0xFF]) || packet.starts(with: [0, 0x3C])
        guard isBig || packet.starts(with: [0xFF, 0xFE]) || packet.starts(with: [0x3C, 0]) else { return packet }
        let units = stride(from: 0, to: packet.count - 1, by: 2).map {
            UInt16(packet[$0 + (isBig ? 0 : 1)]) << 8 | UInt16(packet[$0 + (isBig ? 1 : 0)])
        }
        return Array(String(decoding: units, as: UTF16.self).utf8)
    }

    /// Reads the properties of the picture. Skips descriptions inside other properties, which describe other pictures,
    /// such as ingredients.
    private mutating func read() {
        var scopes: [Scope] = [["xml": "xml"]]
        var text = ""
        while let tag = next(&text) {
            if tag.isEnd {
                if scopes.count > 1 { scopes.removeLast() }
                continue
            }
            let (name, attributes, scope) = resolved(tag, scopes[scopes.count - 1])
            switch name {
            case "x:xmpmeta", "x:xapmeta", "rdf:RDF", "rdf:Description":
                if name == "rdf:Description" {
                    for (name, value) in attributes where Self.isCredit(name) {
                        add(Property(name: name, content: Self.written(value)))
                    }
                }
                if !tag.isEmpty, scopes.count < 16 { scopes.append(scope) }
            case let name? where Self.isCredit(name):
                let prefix = String(name.prefix { $0 != ":" })
                if let property = element(name, attributes, scope, of: prefix, isEmpty: tag.isEmpty) { add(property) }
            default: skip(tag)
            }
        }
    }

    private static func isCredit(_ name: String) -> Bool {
        let parts = name.split(separator: ":", maxSplits: 1)
        return namespaces.contains {
            $0.prefix == parts[0] && ($0.names.isEmpty || $0.names.contains(String(parts[1])))
        }
    }

    private mutating func add(_ property: Property) {
        if property.content.isEmpty && property.attributes.isEmpty || properties.count == 64 { return }
        if !properties.contains(where: { $0.name == property.name }) { properties.append(property) }
    }

    /// Reads an element up to its end tag. Returns nil if it has no text and no resource.
    ///
    /// - Parameter prefix: the prefix of the property. Elements and attributes of other namespaces are dropped.
    private mutating func element(
        _ name: String, _ attributes: [(name: String, value: String)], _ scope: Scope, of prefix: String, isEmpty: Bool,
        depth: Int = 0
    ) -> Property? {
        var property = Property(name: name)
        var hasValue = false
        func isPart(_ name: String) -> Bool { name.hasPrefix(prefix + ":") }
        for (name, value) in attributes {
            let isValue = isPart(name) || name == "rdf:resource"
            guard isValue || name == "xml:lang" || name == "rdf:parseType" && value == "Resource" else { continue }
            property.attributes += " \(name)=\"\(Self.written(value))\""
            hasValue = hasValue || isValue
        }
        var (text, ignored) = ("", "")
        while !isEmpty, let tag = property.content.isEmpty ? next(&text) : next(&ignored), !tag.isEnd {
            let (name, attributes, scope) = resolved(tag, scope)
            guard depth < 8, let name, isPart(name) || name.hasPrefix("rdf:") else {
                skip(tag)
                continue
            }
            let item = element(name, attributes, scope, of: prefix, isEmpty: tag.isEmpty, depth: depth + 1)
            guard let item = item?.text, property.content.utf8.count + item.utf8.count <= Self.propertyLimit else {
                continue
            }
            property.content += item
        }
        if property.content.isEmpty { property.content = Self.written(text) }
        return hasValue || !property.content.isEmpty ? property : nil
    }

    private mutating func skip(_ tag: Tag) {
        var (depth, ignored) = (tag.isEmpty ? 0 : 1, "")
        while depth > 0, let tag = next(&ignored) { depth += tag.isEnd ? -1 : tag.isEmpty ? 0 : 1 }
    }

    /// Returns the next tag, and appends the text before it to `text`.
    private mutating func next(_ text: inout String) -> Tag? {
        while let open = file.firstOffset(of: UInt8(ascii: "<"), from: at),
            let end = SVGDocument.endOfTag(file, open)
        {
            // References make a text at most six times as long.
            let limit = 6 * Self.textLimit
            if text.utf8.count < limit {
                text += Self.decoded(SVGDocument.text(file, at..<min(open, at + limit)))
                if file.matches("<![CDATA[", at: open) {
                    text += SVGDocument.text(file, open + 9..<min(end - 3, open + 9 + limit))
                }
            }
            at = end
            guard let first = file.byte(open + 1), !"!?".utf8.contains(first) else { continue }
            let isEnd = first == UInt8(ascii: "/")
            let isEmpty = !isEnd && file.byte(end - 2) == UInt8(ascii: "/")
            var nameEnd = open + (isEnd ? 2 : 1)
            while let byte = file.byte(nameEnd), !SVGDocument.endsName(byte) { nameEnd += 1 }
            let name = SVGDocument.text(file, open + (isEnd ? 2 : 1)..<nameEnd)
            return (name, nameEnd..<max(nameEnd, end - (isEmpty ? 2 : 1)), isEnd, isEmpty)
        }
        return nil
    }

    /// Returns the name and the attributes of a tag with their usual prefixes, and the namespaces in the element. Names
    /// of other namespaces are nil or missing.
    private func resolved(
        _ tag: Tag, _ outer: Scope
    ) -> (name: String?, attributes: [(name: String, value: String)], scope: Scope) {
        var scope = outer
        let attributes = SVGDocument.attributes(file, tag.attributes).prefix(64).map { attribute in
            (
                attribute.name,
                Self.decoded(String(decoding: attribute.value.utf8.prefix(6 * Self.textLimit), as: UTF8.self))
            )
        }
        for (name, uri) in attributes where scope.count < 128 && (name == "xmlns" || name.hasPrefix("xmlns:")) {
            scope[String(name.dropFirst(6))] = uri
        }
        func usual(_ name: String) -> String? {
            let parts = name.split(separator: ":", maxSplits: 1)
            guard let local = parts.last, local.utf8.allSatisfy({ $0.isLetterOrDigit || $0 == 0x2D || $0 == 0x5F }),
                local.utf8.count <= 64, let uri = scope[parts.count == 2 ? String(parts[0]) : ""],
                let prefix = Self.prefixes[uri]
            else { return nil }
            return "\(prefix):\(local)"
        }
        return (
            usual(tag.name),
            attributes.filter { $0.0.contains(":") }.compactMap { name, value in usual(name).map { ($0, value) } },
            scope
        )
    }

    /// Returns the text as XML: trimmed, without control characters, and cut to `textLimit`.
    static func written(_ text: String) -> String {
        let allowed = text.unicodeScalars.filter {
            $0.value >= 0x20 && $0.value != 0x7F && $0.value & 0xFFFE != 0xFFFE || "\t\n\r".unicodeScalars.contains($0)
        }
        return SVGDocument.encoded(cut(String(allowed)))
    }

    /// Returns the text without white space at its ends, cut at a character to `textLimit` bytes of UTF-8.
    static func cut(_ text: String) -> String {
        let isKept = { (character: Character) in !character.isWhitespace }
        guard let first = text.firstIndex(where: isKept), let last = text.lastIndex(where: isKept) else { return "" }
        let text = String(text[first...last])
        var end = text.utf8.index(text.startIndex, offsetBy: textLimit, limitedBy: text.endIndex) ?? text.endIndex
        while end.samePosition(in: text) == nil { end = text.utf8.index(before: end) }
        return String(text[..<end])
    }

    /// Returns the text with numeric references and the five that XML predefines resolved. Other references do not change.
    private static func decoded(_ text: String) -> String {
        let parts = text.utf8.split(separator: UInt8(ascii: "&"), omittingEmptySubsequences: false)
        return parts.dropFirst().reduce(into: String(Substring(parts[0]))) { result, part in
            let name = Substring(part.prefix { $0 != UInt8(ascii: ";") })
            let number = name.hasPrefix("#x") ? UInt32(name.dropFirst(2), radix: 16) : UInt32(name.dropFirst())
            let known = ["amp": "&", "lt": "<", "gt": ">", "quot": "\"", "apos": "'"][String(name)]
            let scalar = name.hasPrefix("#") ? number.flatMap { Unicode.Scalar($0) }.map { String($0) } : nil
            if name.utf8.count < part.count, let character = known ?? scalar {
                result += character + String(Substring(part.dropFirst(name.utf8.count + 1)))
            } else {
                result += "&" + String(Substring(part))
            }
        }
    }
}
