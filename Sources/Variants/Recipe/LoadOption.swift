/// Steps that control loading. Each may appear once, at any position. The canonical text lists them first, in this
/// order.
enum LoadOption: String, CaseIterable {
    case orient, profile, frames, page

    func read(_ arguments: inout StepArguments, into recipe: inout Recipe) throws(RecipeError) {
        switch self {
        case .orient:
            guard try arguments.next("`off`") == "off" else {
                throw arguments.error("expected `orient:off`; without this option, the orientation is applied")
            }
            recipe.orients = false
        case .profile:
            guard try arguments.next("`keep`") == "keep" else {
                throw arguments.error("expected `profile:keep`; without this option, colors are converted to sRGB")
            }
            recipe.keepsProfile = true
        case .frames:
            let text = try arguments.next("`first`, `all` or a number")
            switch text {
            case "first": recipe.frames = .first
            case "all": recipe.frames = .all
            default:
                guard text.utf8.first.map({ $0 >= 48 && $0 <= 57 }) == true else {
                    throw arguments.error(
                        "expected `first`, `all` or a number, not `\(RecipeError.shown(text))`",
                        suggestion: Spelling.nearest(to: text, in: ["first", "all"]).map { "frames:" + $0 })
                }
                let count = try arguments.whole(text, "the number of frames", 1...100_000)
                recipe.frames = count == 1 ? .first : .count(count)
            }
        case .page:
            recipe.page = try arguments.whole(try arguments.next("a number"), "the page", 1...ImageHeader.pageLimit)
        }
    }

    var entry: Catalog.Entry {
        switch self {
        case .orient:
            Catalog.Entry(
                role: .load, token: rawValue, grammar: "orient:off", ranges: "",
                summary: "Keeps the stored orientation. Without this option, the EXIF orientation is applied first.",
                example: "orient:off")
        case .profile:
            Catalog.Entry(
                role: .load, token: rawValue, grammar: "profile:keep", ranges: "",
                summary:
                    "Keeps the color space (except CMYK) and implies `keep=icc`. Without this option, colors are converted to sRGB.",
                example: "profile:keep")
        case .frames:
            Catalog.Entry(
                role: .load, token: rawValue, grammar: "frames:first|all|N",
                ranges: "`first`; N 1…100000, within the limits in force",
                summary: "Selects the frames of an animation to decode.", example: "frames:all")
        case .page:
            Catalog.Entry(
                role: .load, token: rawValue, grammar: "page:N", ranges: "N 1…\(ImageHeader.pageLimit)",
                summary: "Selects the page of a TIFF. Smaller versions of a page are not counted.", example: "page:2")
        }
    }
}

/// `dpr:F`: multiplies the pixel quantities of the following steps during parsing. A second `dpr` replaces the first.
enum PixelRatio {
    static let token = "dpr"

    static func read(_ arguments: inout StepArguments) throws(RecipeError) -> Double {
        try arguments.decimal(try arguments.next("a ratio such as `2`"), "the ratio", 0.1...8)
    }

    static let entry = Catalog.Entry(
        role: .ratio, token: token, grammar: "dpr:F", ranges: "F 0.1…8",
        summary:
            "Multiplies sizes, crops, radii, margins, widths and blurs in later steps. The canonical recipe does not contain it.",
        example: "dpr:2,thumbnail:300x200")
}
