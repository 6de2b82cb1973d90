/// Rewrites an SVG so that it contains only the picture: no scripts, no event handlers, no HTML, and no references to
/// other files.
///
/// The result is UTF-8 without a document type, entities, comments or processing instructions. Elements and attributes
/// stay only if `SVGNames` lists them, and references only if `SVGReference` allows them. The result therefore does not
/// depend on how a browser reads the constructs that were removed.
struct SVGSanitizer: ~Copyable {
    private let reader: XMLReader
    private let control: RenderControl
    private var result: [UInt8] = []
    /// The names of the open elements.
    private var open: [String] = []
    /// The number of open elements that are removed with their content.
    private var removed = 0
    /// The text of the open `style` element.
    private var sheet: [UInt8]?
    /// The number of nodes after which a stop request is heeded.
    private static let nodesBetweenChecks = 1024

    /// Returns the sanitized document. Throws `undecodable` if the document is not well-formed XML.
    static func sanitized(_ file: UnsafeRawBufferPointer, _ control: RenderControl) throws(RenderError) -> [UInt8] {
        var sanitizer = SVGSanitizer(reader: try XMLReader(file), control: control)
        sanitizer.result.reserveCapacity(file.count + 128)
        var nodes = 0
        while let node = try sanitizer.reader.next() {
            sanitizer.read(node)
            nodes += 1
            if nodes % nodesBetweenChecks == 0 { try control.check() }
        }
        guard !sanitizer.result.isEmpty else {
            throw ImageHeader.damaged("SVG", "its root is not an `svg` element of the namespace \(SVGNames.namespace)")
        }
        return sanitizer.result
    }

    private init(reader: consuming XMLReader, control: RenderControl) {
        self.reader = reader
        self.control = control
    }

    private mutating func read(_ node: XMLReader.Node) {
        switch node {
        case .start(let isEmpty):
            guard removed == 0, begin(isEmpty: isEmpty) else {
                if !isEmpty { removed += 1 }
                return
            }
        case .end:
            if removed > 0 { removed -= 1 } else { end() }
        case .text:
            guard removed == 0 else { return }
            if sheet != nil { sheet! += reader.value } else { write(reader.value, isAttribute: false) }
        case .other: break
        }
    }

    /// Writes the start of an element. Returns false if the element is removed.
    private mutating func begin(isEmpty: Bool) -> Bool {
        let name = reader.name
        let isRoot = open.isEmpty
        // Some files declare no namespace, and elements in the text of an entity have none.
        guard [nil, SVGNames.namespace].contains(reader.namespace),
            isRoot ? name == "svg" : SVGNames.elements.contains(name),
            open.last.map(SVGNames.texts.contains) != true
        else { return false }
        var attributes: [(name: String, value: [UInt8])] = []
        var animated: String?
        var isStyleSheet = name == "style"
        reader.forEachAttribute {
            let attribute = reader.name
            guard let namespace = reader.namespace else {
                if attribute == "attributeName" { animated = String(decoding: reader.value, as: UTF8.self) }
                if attribute == "type", isStyleSheet {
                    isStyleSheet = ["", "text/css"].contains(String(decoding: reader.value, as: UTF8.self).lowercased())
                }
                if isRoot, attribute == "x" || attribute == "y" { return }
                if let value = value(attribute, of: name) { attributes.append((attribute, value)) }
                return
            }
            if namespace == SVGNames.xlink, attribute == "href", let value = value("href", of: name) {
                attributes.append(("xlink:href", value))
            } else if namespace == SVGNames.xml, attribute == "space" || attribute == "lang" {
                attributes.append(("xml:" + attribute, reader.value))
            }
        }
        if SVGNames.animations.contains(name), name != "animateMotion" {
            // The name decides what the values mean, so an animation of anything else is removed.
            guard let animated, SVGNames.properties.contains(animated) || SVGNames.attributes.contains(animated)
            else { return false }
            attributes.append(("attributeName", Array(animated.utf8)))
        }
        guard name != "style" || isStyleSheet else { return false }
        result += "<\(name)".utf8
        if isRoot { result += " xmlns=\"\(SVGNames.namespace)\" xmlns:xlink=\"\(SVGNames.xlink)\"".utf8 }
        for attribute in attributes {
            result += " \(attribute.name)=\"".utf8
            write(attribute.value, isAttribute: true)
            result.append(UInt8(ascii: "\""))
        }
        result += (isEmpty ? "/>" : ">").utf8
        if isEmpty { return true }
        open.append(name)
        if name == "style" { sheet = [] }
        return true
    }

    private mutating func end() {
        guard let name = open.popLast() else { return }
        if let css = sheet {
            sheet = nil
            write(SafeCSS.text(css), isAttribute: false)
        }
        result += "</\(name)>".utf8
    }

    /// Returns the value of the reader's current attribute that may stay, or nil if the attribute is removed.
    private borrowing func value(_ attribute: String, of element: String) -> [UInt8]? {
        let value = reader.value
        if attribute == "href" {
            // For a fragment, browsers would load the document again as the picture.
            if element == "image" { return SVGReference.picture(value) }
            return element == "feImage" ? SVGReference.inStyle(value) : SVGReference.fragment(value)
        }
        if attribute == "style" || SVGNames.properties.contains(attribute) { return SafeCSS.text(value) }
        if SVGNames.animations.contains(element), SVGNames.animatedValues.contains(attribute) {
            // Browsers split the list before they parse its values.
            let values =
                attribute == "values"
                ? value.split(separator: UInt8(ascii: ";"), omittingEmptySubsequences: false) : [value[...]]
            return Array(values.map { SafeCSS.text(Array($0)) }.joined(separator: [UInt8(ascii: ";")]))
        }
        let isKept =
            SVGNames.attributes.contains(attribute) || attribute.hasPrefix("aria-") || attribute.hasPrefix("data-")
        return isKept ? value : nil
    }

    private mutating func write(_ text: [UInt8], isAttribute: Bool) {
        for byte in text {
            switch byte {
            case UInt8(ascii: "&"): result += "&amp;".utf8
            case UInt8(ascii: "<"): result += "&lt;".utf8
            case UInt8(ascii: ">"): result += "&gt;".utf8
            case UInt8(ascii: "\"") where isAttribute: result += "&quot;".utf8
            // A parser would change these characters.
            case 13: result += "&#13;".utf8
            case 9 where isAttribute: result += "&#9;".utf8
            case 10 where isAttribute: result += "&#10;".utf8
            default: result.append(byte)
            }
        }
    }
}
