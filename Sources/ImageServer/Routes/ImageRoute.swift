package import Variants

/// A route that serves pictures or descriptions of pictures. `ServerConfiguration.routes` contains the enabled routes.
public enum ImageRoute: String, CaseIterable, Sendable {
    /// `/variant/…`: pictures derived from sources.
    case variant
    /// `/original/…`: sources as the origins sent them, with all metadata.
    case original
    /// `/info/…`: descriptions of sources.
    case info
}

/// The server's own paths: `/{name}/{signature}/{recipe}/{source}`. Originals and descriptions have no recipe. The path
/// of an upload has no source.
extension ImageRoute: Grammar {
    package var name: String { rawValue }
    package var template: String { "/\(rawValue)/{signature}/\(hasRecipe ? "{recipe}/" : ""){source}" }
    package var formats: [ImageFormat]? { self == .variant ? nil : [] }
    package var takesUploads: Bool { self == .variant }
    private var hasRecipe: Bool { self == .variant }

    package func read(
        _ target: RequestTarget, _ context: GrammarContext
    ) throws(Problem) -> RoutedRequest {
        let grant = try context.signature.grant(target, now: context.now)
        if let type = context.uploadType {
            guard !FormPart.isForm(type) else {
                throw Problem(.notAnImage, "send the picture itself as the body, not a form")
            }
            let recipe = try OwnPath.uploadRecipe(target)
            return RoutedRequest(answer: .variant(recipe: recipe), source: "", grant: grant)
        }
        let path = try OwnPath(target, hasRecipe: hasRecipe)
        let answer: RoutedRequest.ResponseKind =
            switch self {
            case .variant: .variant(recipe: path.recipe)
            case .original: .original
            case .info: .info
            }
        return RoutedRequest(answer: answer, source: path.source, grant: grant)
    }

    package func shown(_ target: RequestTarget) -> String { OwnPath.shown(target, hasRecipe: hasRecipe) }
}
