import Glibc
import ImageServer
import Pipeline
import PipelineFetching
import Variants

/// A source as the commands take it: a URL, a file, `NAME:PATH` with a name of `baseURLs`, or a path of the server as a
/// browser or a log shows it.
struct NamedSource {
    /// Asks for the source; without a recipe.
    private(set) var request: ImageRequest
    /// The text of the recipe in a path of the server.
    private(set) var recipe: String?

    /// Reads the settings for names and paths only if the text has the form of either.
    init(_ text: String, _ settings: Settings) throws {
        request = ImageRequest(ImageSource(text))
        guard text.hasPrefix("/") || BaseURLs.mayName(text), access(text, F_OK) != 0 else { return }
        let configuration = try settings.configuration(
            serves: true, only: ["baseURLs", "defaultBase", "server.folderLinks", "server.mountPoint"])
        do {
            let path = try ServedPath(text, mountPoint: configuration.mountPoint)
            guard path != nil || configuration.baseURLs[String(text.prefix { $0 != ":" })] != nil else { return }
            let usual = path == nil || configuration.defaultBase.isEmpty ? nil : configuration.defaultBase
            let bases = try BaseURLs(
                configuration.baseURLs, followsLinks: configuration.followsLinks, usual: usual)
            let resolved = try bases.resolved(path?.source ?? text)
            request = ImageRequest(.url(resolved.text))
            request.folder = resolved.folder
            recipe = path?.recipe
        } catch let problem as Problem {
            throw CommandFailure(.usage, "\(text): \(problem.detail ?? "it names no source")")
        } catch let refusal as BaseURLs.Refusal {
            throw CommandFailure(.usage, "`baseURLs`: \(refusal.text)")
        }
    }

    /// The name that records are stored under.
    func storedName() throws(PipelineError) -> String {
        if request.folder != nil, case .url(let name) = request.source { return name }
        return try request.source.recordName()
    }

    /// Returns the request with the given recipe, or with the recipe of the path.
    func request(_ text: String?, presets: @autoclosure () throws -> RecipePresets) throws -> ImageRequest {
        var request = request
        if let text = text ?? recipe { request.recipe = try Recipe(usage: text, presets: presets()) }
        return request
    }
}
