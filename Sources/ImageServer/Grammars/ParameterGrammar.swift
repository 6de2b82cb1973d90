import Pipeline
import PipelineFetching
package import PipelineSupport
package import Variants

/// A system with URLs that name a source, a size and a few options.
package protocol ParameterSystem: Sendable {
    /// The name of the system.
    static var name: String { get }
    /// The path template below the mount path.
    static var template: String { get }
    /// The formats that `Accept` may choose, best first, unless the settings say otherwise. Empty if it has no effect.
    static var formats: [ImageFormat] { get }

    /// Parses a target without side effects.
    ///
    /// - Parameters:
    ///   - path: The path below the mount path, as sent and without the query.
    ///   - query: The parameters of the query.
    /// - Throws: a `Problem` with status 400 that names the first invalid option.
    static func read(_ path: Substring, _ query: FormQuery) throws(Problem) -> PictureParameters
}

/// The options of a URL, independent of the system.
package struct PictureParameters: Sendable, Hashable {
    /// How the picture fills a box of two edges.
    enum Fit: String, Sendable {
        /// Fits within the box and keeps the ratio of the edges.
        case inside
        /// Covers the box, and is cropped to it.
        case cover
        /// Covers the box, and is not cropped.
        case outside
        /// Fits within the box, with bars beside it.
        case pad
        /// Has the size of the box, whatever the ratio.
        case stretch
    }

    var source: String
    var width: Int?
    var height: Int?
    var fit = Fit.inside
    var enlarges = false
    /// A gravity of the recipe language.
    var gravity: String?
    /// The format. If nil, `Accept` chooses, and otherwise the original's format is kept.
    var format: ImageFormat?
    /// Whether `Accept` may choose the format if `format` is nil.
    var negotiates = true
    /// Whether an SVG is sent as SVG if `format` is nil.
    var keepsVectors = true
    var quality: Int?
    /// Steps before and after resizing.
    var before: [String] = []
    var after: [String] = []

    /// Returns the recipe for an original.
    ///
    /// - Parameter accepted: The formats that the client accepts, best first.
    func recipe(for header: ImageHeader, _ accepted: [ImageFormat]) throws(PipelineError) -> Recipe {
        if format == .svg {
            throw PipelineError(
                .invalidRecipe, "the format `svg` is possible only for an SVG, which the server passes on")
        }
        let steps = before + resizing(header) + after + [output(accepted)]
        do throws(RecipeError) { return try Recipe(steps.joined(separator: ",")) } catch {
            throw PipelineError(.invalidRecipe, error.description)
        }
    }

    private func resizing(_ header: ImageHeader) -> [String] {
        guard width != nil || height != nil else { return [] }
        let up = enlarges ? ":up" : ""
        guard let width, let height else {
            return ["thumbnail:\(width.map { "\($0)" } ?? "")x\(height.map { "\($0)" } ?? "")\(up)"]
        }
        let place = gravity.map { ":gravity=\($0)" } ?? ""
        switch fit {
        case .inside: return ["thumbnail:\(width)x\(height)\(up)"]
        case .cover: return ["thumbnail:\(width)x\(height):fill\(up)\(place)"]
        case .pad: return ["thumbnail:\(width)x\(height):pad\(up)\(place)"]
        case .stretch: return ["thumbnail:\(width)x\(height):stretch\(up)"]
        case .outside:
            // The edge that is scaled less determines the other one.
            let isWide = header.width * height >= header.height * width
            return [isWide ? "thumbnail:x\(height)\(up)" : "thumbnail:\(width)x\(up)"]
        }
    }

    private func output(_ accepted: [ImageFormat]) -> String {
        let format = format ?? (negotiates ? accepted.first : nil)
        guard let quality, format.map({ [.jpeg, .webp, .avif, .jxl].contains($0) }) ?? true else {
            return format?.rawValue ?? "original"
        }
        return "\(format?.rawValue ?? "original"):\(quality)"
    }
}

/// Parses the URLs of a `ParameterSystem`.
package struct ParameterGrammar<System: ParameterSystem>: MountableGrammar {
    package static var systemName: String { System.name }
    package let path: String
    private let unsigned: Bool?
    private let bases: BaseURLs?
    private let chosen: [ImageFormat]

    package init(at path: String, _ members: inout GrammarMembers) throws(InvalidSetting) {
        self.path = path
        unsigned = try members.flag("unsigned")
        bases = try members.baseURL()
        chosen = try members.formats() ?? System.formats
    }

    package var template: String { path + System.template }
    package var formats: [ImageFormat]? { chosen }
    package var decidesAccess: Bool { unsigned == true }
    package var opensAllSources: Bool { unsigned == true }

    package func read(_ target: RequestTarget, _ context: GrammarContext) throws(Problem) -> RoutedRequest {
        let grant = try context.signature.grant(ifUnsigned: unsigned)
        var asked = try parameters(target)
        if asked.width != nil || asked.height != nil, let sizes = context.sizes {
            let size = try sizes.admitted(ThumbnailSize(width: asked.width, height: asked.height))
            (asked.width, asked.height) = (size.width, size.height)
        }
        let choice = RecipeChoice(
            "\(System.name) \(asked) \(context.accepted)",
            keepsVectors: asked.format == .svg || asked.format == nil && asked.keepsVectors
        ) {
            [asked, accepted = context.accepted] (header) throws(PipelineError) in
            try asked.recipe(for: header, accepted)
        }
        var routed = RoutedRequest(answer: .choice(choice), source: asked.source, grant: grant)
        routed.resolved = try source(asked.source)
        routed.negotiates = asked.format == nil && asked.negotiates && !chosen.isEmpty
        return routed
    }

    private func parameters(_ target: RequestTarget) throws(Problem) -> PictureParameters {
        let below = target.text.dropFirst(path.count).prefix { $0 != "?" }
        guard !System.template.isEmpty || below.isEmpty || below == "/" else {
            throw Problem(.unknownPath, "the path must end in \(path)")
        }
        return try System.read(below, FormQuery(target.text))
    }

    private func source(_ text: String) throws(Problem) -> BaseURLs.Resolved {
        guard !text.isEmpty else { throw Problem(.invalidSource, "the URL names no source") }
        let isAbsolute = ["http://", "https://"].contains { text.prefix($0.count).lowercased() == $0 }
        if isAbsolute { return BaseURLs.Resolved(text: PercentText.completed(text)) }
        guard let bases, !text.hasPrefix("//"), !text.contains("://") else {
            throw Problem(
                .invalidSource,
                "the source must be an http or https URL, or a path below the `baseURL` of grammars.\(System.name)")
        }
        let path = text.drop { $0 == "/" }
        return try bases.resolved("app:" + PercentText.completed(String(path)))
    }

    package func shown(_ target: RequestTarget) -> String {
        path + " " + ((try? parameters(target)).map { RequestLog.redacted($0.source) } ?? "…")
    }

    package func plainText(of problem: Problem) -> (status: Int, text: String)? {
        (problem.kind.status, problem.detail ?? problem.kind.title)
    }
}
