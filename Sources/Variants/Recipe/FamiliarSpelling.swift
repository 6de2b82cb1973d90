import PipelineSupport

/// Finds the correct spelling of steps that are written as in other tools: `resize:300*200`, `w=300`, `300x200:cover`,
/// `sepia`.
enum FamiliarSpelling {
    /// The names that other tools use for our steps, and the text to append to the arguments.
    private static let names: [String: (token: String, rest: String)] = [
        "resize": ("thumbnail", ""), "size": ("thumbnail", ""), "s": ("thumbnail", ""), "thumb": ("thumbnail", ""),
        "fit": ("thumbnail", ""), "contain": ("thumbnail", ""), "fill": ("thumbnail", ":fill"),
        "cover": ("thumbnail", ":fill"), "pad": ("thumbnail", ":pad"), "scale": ("scaled", ""),
        "round": ("rounded-mask", ""), "rounded": ("rounded-mask", ""), "radius": ("rounded-mask", ""),
        "gray": ("grayscale", ""), "grey": ("grayscale", ""), "greyscale": ("grayscale", ""),
        "mono": ("grayscale", ""), "sepia": ("tint", ":704214"), "bg": ("background", ""),
        "flatten": ("background", ""), "rot": ("rotate", ""), "watermark": ("overlay", ""), "wm": ("overlay", ""),
        "composite": ("overlay", ""), "logo": ("overlay", ""),
    ]

    /// The names that other tools use for modes and gravities of `thumbnail`.
    private static let words: [String: String] = [
        "cover": "fill", "crop": "fill", "contain": "fit", "inside": "fit", "force": "stretch", "exact": "stretch",
        "enlarge": "up", "upscale": "up", "gravity=face": "gravity=attention", "gravity=faces": "gravity=attention",
        "gravity=smart": "gravity=attention", "gravity=auto": "gravity=attention", "gravity=top": "gravity=north",
        "gravity=bottom": "gravity=south", "gravity=left": "gravity=west", "gravity=right": "gravity=east",
    ]

    private static let colors: [String: String] = [
        "white": "ffffff", "black": "000000", "red": "ff0000", "green": "008000", "blue": "0000ff",
        "yellow": "ffff00", "orange": "ffa500", "gray": "808080", "grey": "808080", "silver": "c0c0c0",
        "transparent": "00000000",
    ]

    /// Advice for names that are arguments in our grammar, or that are not needed. `N` is replaced with the number in
    /// the text.
    private static let advice: [String: String] = {
        let quality =
            "write the quality after the output format, as in `webp:N`, or `original:N` to keep the original's format"
        let metadata =
            "metadata except credits is removed unless the output has `keep=`; to remove credits too, use `jpeg:keep=none`"
        let placeholder =
            "`pipectl info` and `/info` contain `thumbhash`, `blurhash` and `averageColour`; for a tiny picture, use "
            + "`thumbnail:32,webp:30`"
        let gravity = "it is an argument of a step, as in `thumbnail:300x200:fill:gravity=attention`"
        let output = "it is an argument of the output, as in `webp:max=20kB` or `jpeg:keep=exif`"
        let pixels = "the size is in pixels, as in `crop:640x480`; `scaled:50%` scales the complete picture"
        return [
            "quality": quality, "q": quality, "strip": metadata, "stripmeta": metadata, "lqip": placeholder,
            "placeholder": placeholder, "blurhash": placeholder, "thumbhash": placeholder, "gravity": gravity,
            "focus": gravity, "keep": output, "max": output, "score": output, "effort": output, "chroma": output,
            "crop": pixels, "thumbnail": pixels,
        ]
    }()

    /// Steps that need the advice only if their size is a percentage.
    private static let pixelSteps: Set<String> = ["crop", "thumbnail"]

    /// Returns the error with the intended spelling or with advice. Returns the error unchanged if no rule applies.
    static func completed(_ error: RecipeError, for step: Substring) -> RecipeError {
        var error = error
        guard step.utf8.count <= 200 else { return error }
        let (token, arguments) = parts(step)
        if let spelling = candidates(step).first(where: { $0 != step && (try? Recipe($0)) != nil }) {
            error.suggestion = spelling
        } else if let text = advice[token],
            !pixelSteps.contains(token) || arguments.contains("%") || arguments.contains("pct")
        {
            let number = PlainNumber.parseWhole(arguments).flatMap { (1...100).contains($0) ? $0 : nil } ?? 80
            error.expected += "; " + text.replacing("N", with: "\(number)")
            error.suggestion = nil
        }
        return error
    }

    /// Returns the lowercased name, and the text after the first `:` or `=`.
    private static func parts(_ step: Substring) -> (token: String, arguments: Substring) {
        let end = step.firstIndex { $0 == ":" || $0 == "=" } ?? step.endIndex
        return (step[..<end].lowercased(), step[end...].dropFirst())
    }

    /// Returns possible spellings of the step. Some of them may not parse.
    private static func candidates(_ step: Substring) -> [String] {
        var (token, rest) = parts(step)
        if let first = step.utf8.first, first.isDigit || token.hasPrefix("x") {
            // The step consists only of a size.
            (token, rest) = ("thumbnail", step)
        }
        // ImageMagick's suffixes of a size mean: cover the box, distort, or only shrink.
        let mode = rest.last.flatMap { ["^": ":fill", "!": ":stretch", ">": ""][$0] }
        if mode != nil { rest = rest.dropLast() }
        let arguments = rest.split(separator: ":", omittingEmptySubsequences: false)
        let text = arguments.map { tidied($0, of: token) }.joined(separator: ":")
        switch token {
        case "w", "width": return ["thumbnail:\(text)x"]
        case "h", "height": return ["thumbnail:x\(text)"]
        case "f", "format", "fm", "output": return [text]
        default:
            let (name, appended) = names[token] ?? (token, "")
            let step = name + (text.isEmpty ? "" : ":" + text) + appended
            if name == "thumbnail", let mode { return [step + mode] }
            // A gravity requires `fill`. If the size is a percentage, a different step is meant.
            guard name == "thumbnail" else { return [step] }
            return [step, step + ":fill"] + (arguments.count == 1 ? ["scaled:" + text] : [])
        }
    }

    /// Rewrites one argument: `300*200` and `300×200` to `300x200`, `20px` to `20`, `#fff` to `fff`, `q=80` to `80`,
    /// `white` to `ffffff`, and a negative angle to the equivalent clockwise angle.
    private static func tidied(_ argument: Substring, of token: String) -> String {
        var text = argument[...]
        for prefix in ["#", "q=", "quality=", "q", "fit=", "mode="] where text.hasPrefix(prefix) {
            text = text.dropFirst(prefix.count)
        }
        if text.hasSuffix("px") { text = text.dropLast(2) }
        if token.hasPrefix("rot"), text.hasPrefix("-"), let angle = PlainNumber.parse(text.dropFirst()) {
            let rest = angle - (angle / 360).rounded(.down) * 360
            return PlainNumber.text(rest == 0 ? 0 : 360 - rest)
        }
        let word = text.lowercased()
        guard let first = text.first, first.isNumber else { return words[word] ?? colors[word] ?? String(text) }
        return String(text.map { "*×X".contains($0) ? "x" : $0 })
    }
}
