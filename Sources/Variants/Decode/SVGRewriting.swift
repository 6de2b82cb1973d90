/// Rewrites an SVG for librsvg, which silently ignores unknown features, and lists the features that will be drawn
/// incorrectly.
///
/// Replaces `var()` with the values of the root's custom properties, `image/jpg` with `image/jpeg`, and a background of
/// the root with a rectangle. The features in `unsupported` were determined by comparing librsvg 2.54 with Chromium.
/// There may be others.
struct SVGRewriting {
    /// The features in the document that the installed librsvg draws incorrectly, by their names in CSS and SVG.
    private(set) var unsupported: Set<String> = []

    private let document: SVGDocument
    private var edits: [(place: Range<Int>, text: String)] = []
    private var variables: [String: String] = [:]
    /// The custom properties that elements inside the root change, so that their value depends on the element.
    private var contested: Set<String> = []
    private var background: (name: String, value: String)?
    /// The remaining number of bytes that may replace `var()`.
    private var budget = SVGDocument.entityLimit

    /// The maximum nesting depth of custom properties.
    static let depthLimit = 16
    private static let elements: Set = [
        "animate", "animateMotion", "animateTransform", "feDropShadow", "foreignObject", "set", "textPath",
    ]
    private static let properties: Set = [
        "alignment-baseline", "animation", "animation-name", "dominant-baseline", "offset-path", "rotate", "scale",
        "text-shadow", "text-transform", "textLength", "transform-box", "transform-origin", "translate",
        "vector-effect",
        "white-space", "word-spacing",
    ]
    /// The values with which these properties have no effect.
    private static let neutral: Set = ["", "0", "0px", "auto", "alphabetic", "baseline", "inherit", "none", "normal"]
    private static let plain = [
        "fill-opacity:1", "stroke:none", "opacity:1", "transform:none", "filter:none", "clip-path:none", "mask:none",
        "display:inline", "visibility:visible",
    ]
    private static let functions: Set = [
        "calc", "circle", "clamp", "color", "color-mix", "conic-gradient", "ellipse", "hwb", "inset", "lab", "lch",
        "light-dark", "linear-gradient", "max", "min", "oklab", "oklch", "path", "polygon", "radial-gradient",
    ]

    init(_ document: SVGDocument) {
        self.document = document
        var isRoot = true
        document.forEachElement { name, attributes, sheet in
            if Self.elements.contains(name) { unsupported.insert(name) }
            if let sheet { CSSText.rules(sheet.css).forEach { collect($0) } }
            if !isRoot { for attribute in attributes { collect(attribute, of: name, isRoot: false) } }
            isRoot = false
        }
        // The root's `style` attribute takes precedence over rules for the root, so it is read last.
        for attribute in document.attributes { collect(attribute, of: "svg", isRoot: true) }
        document.forEachElement { name, attributes, sheet in
            if let sheet { edit(sheet.place, String(decoding: sheet.css, as: UTF8.self)) { "<![CDATA[\($0)]]>" } }
            for attribute in attributes {
                guard let value = SVGDocument.decoded(attribute.value) else {
                    if attribute.value.contains("var(") { unsupported.insert("var()") }
                    continue
                }
                if ["href", "xlink:href"].contains(attribute.name), ["image", "feImage"].contains(name) {
                    label(value, attribute)
                } else {
                    edit(attribute.place, value) { "\(attribute.name)=\"\(SVGDocument.encoded($0))\"" }
                }
            }
        }
        paint()
    }

    // MARK: Reading

    private mutating func collect(_ rule: (prelude: String, block: [UInt8]), depth: Int = 0) {
        let prelude = rule.prelude
        if prelude.hasPrefix("@") {
            let name =
                "@" + prelude.dropFirst().prefix { $0.isASCII && $0.isLetter || $0 == "-" }.prefix(32).lowercased()
            // Ignore these rules, because a picture in a page is shown on a screen and with its light color scheme.
            if name == "@media", prelude.contains("dark") || prelude.contains("print") { return }
            if ["@charset", "@namespace"].contains(name) || name.hasSuffix("keyframes") { return }
            if unsupported.count < 64 { unsupported.insert(name) }
            for inner in depth < Self.depthLimit ? CSSText.rules(rule.block) : [] {
                for (name, _) in CSSText.declarations(inner.block) where name.hasPrefix("--") { contested.insert(name) }
                collect(inner, depth: depth + 1)
            }
            return
        }
        for name in CSSText.functions(prelude) where ["has", "is", "where"].contains(name) {
            unsupported.insert(":\(name)()")
        }
        if rule.block.contains(UInt8(ascii: "{")) { unsupported.insert("nested rules") }
        let selectors = prelude.split(separator: ",").map { $0.filter { !$0.isWhitespace } }
        let isRoot = depth == 0 && selectors.contains { [":root", "svg", "svg:root", "*"].contains($0) }
        for declaration in CSSText.declarations(rule.block) { collect(declaration, isRoot: isRoot) }
    }

    private mutating func collect(_ declaration: (name: String, value: String), isRoot: Bool) {
        let (name, value) = declaration
        if name.hasPrefix("--") {
            if !isRoot || variables[name].map({ $0 != value }) == true { contested.insert(name) }
            variables[name] = value
        } else if isRoot, ["background", "background-color"].contains(name) {
            background = declaration
            return
        } else if Self.properties.contains(name), !Self.neutral.contains(value.lowercased()) {
            unsupported.insert(name)
        }
        for name in CSSText.functions(value).intersection(Self.functions) { unsupported.insert("\(name)()") }
    }

    private mutating func collect(_ attribute: SVGDocument.Attribute, of element: String, isRoot: Bool) {
        let (name, value) = (attribute.name, attribute.value)
        if name == "style" {
            let css = CSSText.withoutComments(Array((SVGDocument.decoded(value) ?? value).utf8))
            for declaration in CSSText.declarations(css) { collect(declaration, isRoot: isRoot) }
        } else if ["text", "tspan"].contains(element), ["x", "y", "dx", "dy", "rotate"].contains(name) {
            let isList = value.contains { $0 == "," || $0 == " " }
            if isList || name == "rotate" { unsupported.insert("\(name) of letters") }
        } else if !["rotate", "scale", "translate", "animation"].contains(name), !name.hasSuffix("href") {
            collect((name, value), isRoot: false)
        }
    }

    // MARK: Rewriting

    /// Replaces `var()` with the values of custom properties.
    private mutating func edit(_ place: Range<Int>, _ text: String, _ form: (String) -> String) {
        // Check for a parenthesis first, because most long values are paths, which have none.
        guard text.utf8.contains(UInt8(ascii: "(")), text.contains("var(") else { return }
        let new = resolved(Array(text.utf8), 0)
        if new != text, !new.contains("]]>") { edits.append((place, form(new))) }
    }

    private mutating func resolved(_ css: [UInt8], _ depth: Int) -> String {
        var (result, at): ([UInt8], Int) = ([], 0)
        let reader = Array("var(".utf8)
        while at < css.count {
            guard css[at...].starts(with: reader) else {
                result.append(css[at])
                at += 1
                continue
            }
            let close = CSSText.end(css, at + 4, ")")
            let comma = min(close, CSSText.end(css, at + 4, ",)"))
            let name = CSSText.text(css[(at + 4)..<comma])
            let fallback = comma < close ? CSSText.text(css[(comma + 1)..<close]) : nil
            let value = contested.contains(name) ? nil : variables[name] ?? fallback
            budget -= (value?.utf8.count ?? 0) + 1
            let end = min(css.count, close + 1)
            if let value, budget > 0, depth < Self.depthLimit {
                result += resolved(Array(value.utf8), depth + 1).utf8
            } else {
                unsupported.insert("var()")
                result += css[at..<end]
            }
            at = end
        }
        return String(decoding: result, as: UTF8.self)
    }

    /// Corrects the media type of an embedded picture.
    private mutating func label(_ value: String, _ attribute: SVGDocument.Attribute) {
        let start = value.prefix(40).lowercased()
        guard start.hasPrefix("data:") else { return }
        let type = start.dropFirst(5).prefix { $0 != ";" && $0 != "," }
        if type == "image/jpg" {
            let rest = SVGDocument.encoded(String(value.dropFirst(14)))
            edits.append((attribute.place, "\(attribute.name)=\"data:image/jpeg\(rest)\""))
        } else if ["image/avif", "image/svg+xml", "image/webp"].contains(type) {
            unsupported.insert("\(type) in data:")
        } else if !["image/png", "image/jpeg", "image/gif"].contains(type) {
            unsupported.insert("data: of another type")
        }
    }

    /// Draws the background color of the root behind everything else. The rules in the document's style sheets do not
    /// apply to this rectangle.
    private mutating func paint() {
        guard let background, let place = document.contentStart else { return }
        let color = resolved(Array(background.value.utf8), 0).filter { $0 != "\"" }
        if Self.neutral.contains(color) || color == "transparent" { return }
        let functions = CSSText.functions(color)
        for name in functions.intersection(Self.functions) { unsupported.insert("\(name)()") }
        if functions.contains("url") || background.name == "background" && functions.isEmpty && color.contains(" ") {
            unsupported.insert("background")
            return
        }
        let style = (["fill:\(color)"] + Self.plain).map { $0 + " !important" }.joined(separator: ";")
        let box = document.box
        let rect =
            "<rect xmlns=\"http://www.w3.org/2000/svg\" x=\"\(box[0] - 99 * box[2])\" y=\"\(box[1] - 99 * box[3])\" "
            + "width=\"\(199 * box[2])\" height=\"\(199 * box[3])\" style=\"\(SVGDocument.encoded(style))\"/>"
        edits.append((place..<place, rect))
    }

    /// The rewritten document, or nil if the document needs no changes.
    var bytes: PixelStorage? {
        edits.isEmpty ? nil : document.replacing(edits.sorted { $0.place.lowerBound < $1.place.lowerBound })
    }
}
