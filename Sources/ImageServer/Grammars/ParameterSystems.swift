import PipelineSupport
package import Variants

/// The image CDN of Netlify: `{path}?url=&w=&h=&fit=&position=&fm=&q=`.
package enum Netlify: ParameterSystem {
    package static let name = "netlify"
    package static let template = ""
    package static let formats: [ImageFormat] = [.avif, .webp]

    package static func read(_ path: Substring, _ query: FormQuery) throws(Problem) -> PictureParameters {
        try query.check(["url", "w", "h", "fit", "position", "fm", "q"], ignoring: [])
        var asked = PictureParameters(source: try query.required("url"))
        asked.width = try query.edge("w")
        asked.height = try query.edge("h")
        asked.fit = try query.word("fit", ["contain": .inside, "cover": .cover, "fill": .stretch]) ?? .inside
        asked.gravity = try query.word("position", Gravities.named)
        asked.format = try query.word("fm", ImageFormat.outputs)
        asked.quality = try query.number("q", 1...100)
        return asked
    }
}

/// The image endpoint of Astro: `{path}?href=&w=&h=&f=&q=&fit=&position=`.
package enum Astro: ParameterSystem {
    package static let name = "astro"
    package static let template = ""
    package static let formats: [ImageFormat] = []

    package static func read(_ path: Substring, _ query: FormQuery) throws(Problem) -> PictureParameters {
        // Astro adds the size of the original to some URLs.
        try query.check(
            ["href", "w", "h", "f", "q", "fit", "position"], ignoring: ["origWidth", "origHeight", "origFormat"])
        var asked = PictureParameters(source: try query.required("href"))
        asked.width = try query.edge("w")
        asked.height = try query.edge("h")
        let fit = try query.word("fit", Fits.all)
        // Without `fit`, the width determines the height.
        if fit == nil, asked.width != nil { asked.height = nil }
        asked.fit = fit ?? .inside
        asked.gravity = try query.word("position", Gravities.named)
        asked.format = try query.word("f", ImageFormat.outputs.merging(["svg": .svg]) { $1 }) ?? .webp
        let levels = ["low": 25, "mid": 50, "high": 80, "max": 100]
        if let level = query["q"].first.flatMap({ levels[$0] }) {
            asked.quality = level
        } else {
            asked.quality = try query.number("q", 1...100)
        }
        return asked
    }

    private enum Fits {
        static let all: [String: PictureParameters.Fit] = [
            "contain": .inside, "cover": .cover, "fill": .stretch, "inside": .inside, "scale-down": .inside,
            "outside": .outside,
        ]
    }
}

/// IPX, which Nuxt Image uses: `{path}/{modifiers}/{source}`.
package enum IPX: ParameterSystem {
    package static let name = "ipx"
    package static let template = "/{modifiers}/{source}"
    package static let formats: [ImageFormat] = [.avif, .webp]

    package static func read(_ path: Substring, _ query: FormQuery) throws(Problem) -> PictureParameters {
        let parts = path.dropFirst().split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, !parts[1].isEmpty else {
            throw Problem(.invalidSource, "expected /MODIFIERS/SOURCE below the path, such as /w_200,f_webp/photo.jpg")
        }
        guard let bytes = percentDecoded(parts[1]), var source = String(validating: bytes, as: UTF8.self) else {
            throw Problem(.invalidSource, "the source cannot be percent-decoded to UTF-8")
        }
        // Proxies may merge two slashes.
        for scheme in ["http:/", "https:/"] where source.hasPrefix(scheme) && !source.hasPrefix(scheme + "/") {
            source = scheme + "/" + source.dropFirst(scheme.count)
        }
        var asked = PictureParameters(source: source)
        (asked.fit, asked.negotiates) = (.cover, false)
        let modifiers = percentDecoded(parts[0]).map { String(decoding: $0, as: UTF8.self) } ?? ""
        guard modifiers != "_" else { return asked }
        for modifier in modifiers.split(whereSeparator: { $0 == "," || $0 == "&" }) {
            let pair = modifier.split(separator: "_", maxSplits: 1, omittingEmptySubsequences: false)
            let value = pair.count == 2 ? String(pair[1]) : ""
            guard try apply(String(pair[0]), value, to: &asked) else {
                throw Problem(.invalidRecipe, "`\(modifier)`: unknown modifier, or invalid value")
            }
        }
        if asked.fit == .pad, !asked.before.contains(where: { $0.hasPrefix("background") }) {
            asked.before.append("background:000000")
        }
        return asked
    }

    /// Applies a modifier. Returns false if it is unknown or its value is invalid.
    private static func apply(
        _ name: String, _ value: String, to asked: inout PictureParameters
    ) throws(Problem) -> Bool {
        func step(_ text: String, _ isValid: Bool = true) -> Bool {
            if isValid { asked.after.append(text) }
            return isValid
        }
        let isNumber = Double(value).map(\.isFinite) == true && value.utf8.allSatisfy { $0.isDigit || $0 == 0x2E }
        switch name {
        case "w", "width": asked.width = edge(value)
        case "h", "height": asked.height = edge(value)
        case "s", "resize":
            let edges = value.split(separator: "x", omittingEmptySubsequences: false)
            guard edges.count == 2, edges.contains(where: { !$0.isEmpty }),
                edges.allSatisfy({ $0.isEmpty || edge(String($0)) != nil })
            else { return false }
            (asked.width, asked.height) = (edge(String(edges[0])), edge(String(edges[1])))
        case "f", "format":
            asked.format = ImageFormat.outputs[value]
            (asked.negotiates, asked.keepsVectors) = (value == "auto", false)
            return asked.format != nil || asked.negotiates
        case "q", "quality":
            asked.quality = Int(value)
            return asked.quality.map((1...100).contains) == true
        case "fit":
            let fits: [String: PictureParameters.Fit] = [
                "cover": .cover, "contain": .pad, "fill": .stretch, "inside": .inside, "outside": .outside,
            ]
            guard let fit = fits[value] else { return false }
            asked.fit = fit
        case "pos", "position":
            asked.gravity = Gravities.named[value.replacing("_", with: " ")]
            return asked.gravity != nil
        case "b", "background": asked.before.append("background:\(value.drop { $0 == "#" })")
        case "enlarge":
            guard ["", "true", "false"].contains(value) else { return false }
            asked.enlarges = value != "false"
        case "kernel": return !value.isEmpty
        case "trim":
            guard value.isEmpty || isNumber else { return false }
            asked.before.append(value.isEmpty ? "trim" : "trim:\(value)")
        case "blur": return step("blur:\(value)", isNumber)
        case "sharpen": return step(value.isEmpty ? "sharpen" : "sharpen:\(value)", value.isEmpty || isNumber)
        case "rotate": return step("rotate:\(value)", isNumber)
        case "flip": return step("flip:v")
        case "flop": return step("flip:h")
        case "grayscale": return step("grayscale")
        case "a", "animated": asked.before.insert("frames:all", at: 0)
        default: return false
        }
        return !["w", "width", "h", "height"].contains(name) || edge(value) != nil
    }

    private static func edge(_ text: String) -> Int? { Int(text).flatMap { (1...8_192).contains($0) ? $0 : nil } }
}

/// The positions of other systems, and the gravities of the recipe language.
enum Gravities {
    static let named: [String: String] = [
        "center": "centre", "centre": "centre", "top": "north", "bottom": "south", "left": "west", "right": "east",
        "north": "north", "south": "south", "west": "west", "east": "east", "right top": "north-east",
        "right bottom": "south-east", "left bottom": "south-west", "left top": "north-west", "northeast": "north-east",
        "southeast": "south-east", "southwest": "south-west", "northwest": "north-west", "entropy": "entropy",
        "attention": "attention",
    ]
}

extension ImageFormat {
    /// The output formats by the names that other systems use.
    static let outputs: [String: ImageFormat] = [
        "jpg": .jpeg, "jpeg": .jpeg, "png": .png, "webp": .webp, "avif": .avif, "gif": .gif, "tiff": .tiff, "jxl": .jxl,
    ]
}

extension FormQuery {
    /// - Throws: if a parameter is unknown or given twice.
    func check(_ known: [String], ignoring others: [String]) throws(Problem) {
        for name in names where !others.contains(name) {
            guard known.contains(name) else { throw Problem(.invalidRecipe, "`\(name)`: unknown parameter") }
            guard self[name].count == 1 else { throw Problem(.invalidRecipe, "`\(name)` is given twice") }
        }
    }

    func required(_ name: String) throws(Problem) -> String {
        guard let value = self[name].first, !value.isEmpty else {
            throw Problem(.invalidSource, "the parameter `\(name)` is missing")
        }
        return value
    }

    func number(_ name: String, _ range: ClosedRange<Int>) throws(Problem) -> Int? {
        guard let text = self[name].first else { return nil }
        guard text.utf8.allSatisfy(\.isDigit), let number = Int(text), range.contains(number) else {
            throw Problem(
                .invalidRecipe,
                "`\(name)` must be a whole number between \(range.lowerBound) and \(range.upperBound)")
        }
        return number
    }

    func edge(_ name: String) throws(Problem) -> Int? { try number(name, 1...8_192) }

    func word<Value>(_ name: String, _ values: [String: Value]) throws(Problem) -> Value? {
        guard let text = self[name].first else { return nil }
        guard let value = values[text] else {
            throw Problem(
                .invalidRecipe, "`\(name)` must be one of \(values.keys.sorted().joined(separator: ", "))")
        }
        return value
    }
}
