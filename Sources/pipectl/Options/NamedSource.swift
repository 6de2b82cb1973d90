import Glibc
import ImageServer
import Pipeline
import PipelineFetching
import PipelineSupport
import Variants

/// A source argument of a command: a URL, a file, `NAME:PATH` with a name in `baseURLs`, or a path of the server as
/// shown by a browser or a log. Paths of mounted grammars (`grammars`) are also accepted.
struct NamedSource {
    /// The request for the source, without a recipe.
    private(set) var request: ImageRequest
    /// The recipe in a path of the server, or nil if the source has a different form.
    private(set) var recipe: String?
    /// The name of the mounted grammar that the path belongs to, or nil if it belongs to none.
    private(set) var grammar: String?

    /// Parses a source. The settings for base URLs and the mount point are read only if the string looks like a name or
    /// a path.
    ///
    /// - Parameter accept: The `Accept` field, for paths of grammars that negotiate the format.
    init(_ text: String, _ settings: Settings, accept: String? = nil) throws {
        request = ImageRequest(ImageSource(text))
        guard text.hasPrefix("/") || BaseURLs.mayName(text), access(text, F_OK) != 0 else { return }
        let configuration = try settings.configuration(
            serves: true, only: ["baseURLs", "defaultBase", "server.folderLinks", "server.mountPoint", "grammars"])
        do {
            let path = try ServedPath(text, mountPoint: configuration.site.mountPoint)
            let site = configuration.site
            let mounted = path == nil && text.hasPrefix("/") ? try site.mountedRequest(text, accept: accept) : nil
            guard path != nil || mounted != nil || site.baseURLs[String(text.prefix { $0 != ":" })] != nil else {
                return
            }
            let bases = try BaseURLs(
                site.baseURLs, followsLinks: site.followsFolderLinks,
                defaultName: path == nil && mounted == nil ? nil : site.defaultBase)
            let resolved =
                try mounted?.request.resolved ?? bases.resolved(path?.source ?? mounted?.request.source ?? text)
            request = ImageRequest(.url(resolved.text))
            request.folder = resolved.folder
            recipe = path?.recipe
            grammar = mounted?.name
            if case .choice(let choice)? = mounted?.request.answer { request.choice = choice }
            request.minFreshness = mounted?.request.freshness?.least
            request.maxRedirects = mounted?.request.maxRedirects
            request.staleWhileRevalidate = mounted?.request.freshness?.stale
        } catch let problem as Problem {
            throw CommandFailure(.usage, "\(text): \(problem.detail ?? "it names no source")")
        } catch let error as InvalidSetting {
            throw CommandFailure(.usage, "`baseURLs`, `grammars`: \(error.message)")
        }
    }

    /// Returns the name under which the source's records are stored.
    func storedName() throws(PipelineError) -> String {
        if request.folder != nil, case .url(let name) = request.source { return name }
        return try request.source.recordName()
    }

    /// Returns the request with the given recipe. If it is nil, the recipe in the path is used.
    func request(_ text: String?, presets: @autoclosure () throws -> RecipePresets) throws -> ImageRequest {
        var request = request
        if text != nil { request.choice = nil }
        if let text = text ?? recipe { request.recipe = try Recipe(usage: text, presets: presets()) }
        return request
    }
}
