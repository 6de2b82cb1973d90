package import PipelineSupport
package import Variants

/// A grammar that can write URLs for recipes. A URL that it writes means the same picture as the recipe.
package protocol URLWritingGrammar: MountableGrammar {
    /// Returns the target of a recipe and a source, relative to the mount point of the site.
    ///
    /// - Parameters:
    ///   - expiry: When the URL expires, in Unix seconds, or nil if it never expires.
    /// - Throws: if the grammar cannot express the recipe. The message names the step.
    func target(_ recipe: Recipe, source: String, expiry: Int?) throws(InvalidSetting) -> String
}

/// A step or an output of a canonical recipe, split into its arguments.
private struct WrittenStep {
    let name: Substring
    let arguments: [Substring]

    init(_ text: Substring) {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        (name, arguments) = (parts[0], Array(parts.dropFirst()))
    }

    static func all(in recipe: Recipe) -> [WrittenStep] { recipe.description.split(separator: ",").map(Self.init) }

    var text: String { ([name] + arguments).joined(separator: ":") }

    func cannotBeExpressed(by system: String) -> InvalidSetting {
        InvalidSetting("`\(text)` cannot be expressed in a URL of \(system)")
    }

    /// Returns the value of an argument such as `gravity=north`.
    func value(_ name: String) -> Substring? {
        arguments.first { $0.hasPrefix(name + "=") }?.dropFirst(name.count + 1)
    }
}

extension NextGrammar: URLWritingGrammar {
    package func target(_ recipe: Recipe, source: String, expiry: Int?) throws(InvalidSetting) -> String {
        guard expiry == nil else { throw InvalidSetting("URLs of \(System.name) cannot expire") }
        var (width, quality) = (Substring(), Substring("75"))
        for step in WrittenStep.all(in: recipe) {
            switch (step.name, step.arguments.count) {
            case ("thumbnail", 1) where step.arguments[0].hasSuffix("x") && width.isEmpty:
                width = step.arguments[0].dropLast()
            case ("auto", 0): break
            case ("auto", 1) where Int(step.arguments[0]) != nil: quality = step.arguments[0]
            default:
                throw InvalidSetting(
                    step.cannotBeExpressed(by: System.name).message + "; write `thumbnail:WIDTHx,auto:QUALITY`")
            }
        }
        guard !width.isEmpty else { throw InvalidSetting("URLs of \(System.name) need `thumbnail:WIDTHx`") }
        return "\(path)?url=\(PercentText.encoded(source, keeping: "-._~"))&w=\(width)&q=\(quality)"
    }
}

extension ImgproxyGrammar: URLWritingGrammar {
    package func target(_ recipe: Recipe, source: String, expiry: Int?) throws(InvalidSetting) -> String {
        var options: [(place: Int, text: String)] = []
        for step in WrittenStep.all(in: recipe) {
            guard let option = Self.option(step) else { throw step.cannotBeExpressed(by: Self.systemName) }
            // imgproxy applies options in its own order.
            guard option.place > options.last?.place ?? 0 else {
                throw InvalidSetting(
                    "`\(step.text)`: imgproxy applies this step earlier; change the order of the steps")
            }
            options.append(option)
        }
        let written = options.map(\.text) + (expiry.map { ["exp:\($0)"] } ?? [])
        let rest = (written + ["plain", PercentText.encoded(source, keeping: "-._~:/")]).joined(separator: "/")
        return "\(path)/\(signature(of: rest))/\(rest)"
    }

    /// Returns the option for a step and its place in imgproxy's order. Returns nil if imgproxy has no such option.
    private static func option(_ step: WrittenStep) -> (place: Int, text: String)? {
        let arguments = step.arguments
        switch step.name {
        case "trim" where arguments.allSatisfy { Int($0) != nil }: return (1, "t:\(arguments.first ?? "10")")
        case "crop": return crop(step).map { (2, $0) }
        case "thumbnail": return thumbnail(step).map { (3, $0) }
        case "blur" where arguments.count == 1: return (4, "bl:\(arguments[0])")
        case "sharpen" where arguments.count <= 1: return (5, "sh:\(arguments.first ?? "1")")
        case "pixelate" where arguments.count == 1: return (6, "pix:\(arguments[0])")
        case "background" where arguments[0].count == 6: return (7, "bg:\(arguments[0])")
        case "extend": return (8, "pd:" + arguments.joined(separator: ":"))
        case "auto", "jpeg", "png", "webp", "avif", "jxl", "gif", "tiff": return output(step).map { (9, $0) }
        default: return nil
        }
    }

    private static func crop(_ step: WrittenStep) -> String? {
        guard step.arguments.count == 1 else { return nil }
        let numbers = step.arguments[0].split { $0 == "x" || $0 == "+" }
        guard numbers.count == 4 else { return nil }
        return "c:\(numbers[0]):\(numbers[1]):nowe:\(numbers[2]):\(numbers[3])"
    }

    private static func thumbnail(_ step: WrittenStep) -> String? {
        var flags = Set(step.arguments.dropFirst())
        let edges = step.arguments[0].split(separator: "x", omittingEmptySubsequences: false).map {
            $0.isEmpty ? "0" : $0
        }
        guard edges.count == 2 else { return nil }
        let enlarges = flags.remove("up") != nil
        let fills = flags.remove("fill") != nil
        let stretches = flags.remove("stretch") != nil
        guard !stretches || enlarges else { return nil }
        let type = stretches ? "force" : fills ? enlarges ? "fill" : "fill-down" : "fit"
        var text = "rs:\(type):\(edges[0]):\(edges[1])" + (enlarges ? ":1" : "")
        if let gravity = step.value("gravity") {
            let names: [Substring: String] = [
                "north": "no", "south": "so", "west": "we", "east": "ea", "north-east": "noea", "north-west": "nowe",
                "south-east": "soea", "south-west": "sowe", "attention": "sm",
            ]
            guard fills, let name = names[gravity] else { return nil }
            text += "/g:\(name)"
            flags.remove("gravity=\(gravity)")
        }
        if fills, let focus = step.value("focus") {
            text += "/g:fp:" + focus.split(separator: "x").joined(separator: ":")
            flags.remove("focus=\(focus)")
        }
        return flags.isEmpty ? text : nil
    }

    private static func output(_ step: WrittenStep) -> String? {
        var options = step.name == "auto" ? [] : ["f:\(step.name == "jpeg" ? "jpg" : step.name)"]
        for argument in step.arguments {
            guard let quality = Int(argument) else { return nil }
            options.append("q:\(quality)")
        }
        // The default qualities of imgproxy differ. Without a quality, `webp` and `jxl` may also become lossless.
        let usual: [Substring: String?] = ["jpeg": "q:80", "avif": "q:70", "webp": nil, "jxl": nil]
        if step.arguments.isEmpty, let quality = usual[step.name] {
            guard let quality else { return nil }
            options.append(quality)
        }
        // The default quality stands for an output without options.
        return options.isEmpty ? "q:0" : options.joined(separator: "/")
    }
}

extension IIIFGrammar: URLWritingGrammar {
    package func target(_ recipe: Recipe, source: String, expiry: Int?) throws(InvalidSetting) -> String {
        guard expiry == nil else { throw InvalidSetting("URLs of iiif cannot expire") }
        var (page, region, size, rotation, quality, format) = ("", "full", "max", "0", "default", "jpg")
        // The API applies the parameters in this order.
        var reached = 0
        for step in WrittenStep.all(in: recipe) {
            let place: Int
            switch (step.name, step.arguments.count) {
            case ("page", 1): (place, page) = (1, ";" + step.arguments[0])
            case ("crop", 1):
                let numbers = step.arguments[0].split { $0 == "x" || $0 == "+" }
                guard numbers.count == 4 else { throw step.cannotBeExpressed(by: name) }
                (place, region) = (2, [numbers[2], numbers[3], numbers[0], numbers[1]].joined(separator: ","))
            case ("thumbnail", 1...): (place, size) = (3, try Self.size(step))
            case ("flip", 1) where step.arguments[0] == "h": (place, rotation) = (4, "!0")
            case ("rotate", 1): (place, rotation) = (5, (rotation == "0" ? "" : "!") + step.arguments[0])
            case ("grayscale", 0): (place, quality) = (6, "gray")
            case (_, 0): (place, format) = (7, try self.format(step))
            default: throw step.cannotBeExpressed(by: name)
            }
            guard place > reached else {
                throw InvalidSetting("`\(step.text)`: the API applies this step earlier; change the order of the steps")
            }
            reached = place
        }
        // The server would read the end of this identifier as a page.
        var end = source
        _ = settings.page(&end)
        if page.isEmpty, end != source { page = ";1" }
        guard reached == 7 else { throw InvalidSetting("URLs of iiif need an output, such as `jpeg`") }
        let identifier = PercentText.encoded(source + page, keeping: "-._~:;")
        return "\(path)/3/\(identifier)/\(region)/\(size)/\(rotation)/\(quality).\(format)"
    }

    /// Returns the size for a `thumbnail` step. A size that may enlarge begins with an encoded `^`. Without it, the server
    /// refuses a size that is larger than the region.
    private static func size(_ step: WrittenStep) throws(InvalidSetting) -> String {
        let edges = step.arguments[0].split(separator: "x", omittingEmptySubsequences: false)
        guard edges.count == 2 else { throw step.cannotBeExpressed(by: systemName) }
        let text = edges.joined(separator: ",")
        let isComplete = edges.allSatisfy { !$0.isEmpty }
        switch step.arguments.dropFirst() {
        case ["stretch"] where isComplete: return text
        case ["stretch", "up"] where isComplete: return "%5E" + text
        case []: return (isComplete ? "!" : "") + text
        case ["up"]: return "%5E" + (isComplete ? "!" : "") + text
        default: throw step.cannotBeExpressed(by: systemName)
        }
    }

    private func format(_ step: WrittenStep) throws(InvalidSetting) -> String {
        guard let format = settings.formats.first(where: { $0.output == step.name }) else {
            throw step.cannotBeExpressed(by: name)
        }
        return format.rawValue
    }
}
