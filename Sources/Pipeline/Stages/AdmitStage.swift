import Glibc
import Variants

extension ImageSource {
    /// What its records are stored under; nil when it names nothing that could be.
    package var storedName: String? {
        try? AdmitStage.identify(ImageRequest(self)).source
    }
}

/// Decides whether a request may be worked on, and under which identity.
struct AdmitStage: Sendable {
    let masks: MaskFolder
    let overlays: MaskFolder
    let threads: OwnedThreads
    /// Which hosts may be asked; looked at before any cache, so that what was stored earlier is refused too.
    var sources = HostPolicy()

    func callAsFunction(
        _ request: ImageRequest, events: @escaping @Sendable (LoadEvent) -> Void
    ) async throws(PipelineError) -> AdmittedRequest {
        let began = ContinuousClock.now
        let (origin, source, displayName) = try Self.identify(request)
        if case .remote(let url) = origin, let refusal = sources.refusal(of: url) {
            throw PipelineError(.sourceRefused, "\(displayName): refused by policy: \(refusal)")
        }
        var named: [String: NamedFile] = [:]
        let wanted =
            (request.recipe?.maskNames ?? []).map { (key: $0, name: $0, folder: masks) }
            + (request.recipe?.overlayNames ?? []).map { (key: Recipe.overlayKey($0), name: $0, folder: overlays) }
        for (key, name, folder) in wanted {
            let answer = await threads.run {
                Result { () throws(PipelineError) in try folder.file(named: name) }
            }
            named[key] = try answer.get()
        }
        var admitted = AdmittedRequest(
            request: request, origin: origin, source: source, displayName: displayName, masks: named, events: events,
            began: began)
        // The source does not name the credentials of its URL. Here the rules of caching and of sharing see them.
        if case .remote(let url) = origin, let credentials = url.authorization,
            request.fields.first("authorization") == nil
        {
            admitted.request.fields.append(credentials)
        }
        return admitted
    }

    /// A request for the response itself.
    func callAsFunction(_ request: OriginalRequest) async throws(PipelineError) -> AdmittedRequest {
        var asked = ImageRequest(.url(request.url))
        asked.sourceID = request.sourceID
        asked.policy = request.policy
        asked.priority = request.priority
        asked.storage = request.storage
        asked.fields = request.fields.filter { !Self.conditions.contains($0.name.lowercased()) }
        var admitted = try await self(asked, events: { _ in })
        admitted.purpose = .original
        admitted.followsRedirects = request.followsRedirects
        admitted.onInterim = request.onInterim
        if request.honoursDirectives { admitted.directives = RequestDirectives(fields: request.fields) }
        if request.forwardsConditionals {
            admitted.conditions = request.fields.filter { Self.conditions.contains($0.name.lowercased()) }
        }
        return admitted
    }

    /// Fields that ask for less than the whole response. A fetch that others share, and a store, need all of it.
    private static let conditions: Set<String> = [
        "if-none-match", "if-modified-since", "if-match", "if-unmodified-since", "if-range", "range",
    ]

    /// The identity a source is cached under (design §3), and how it is called in messages.
    static func identify(
        _ request: ImageRequest
    ) throws(PipelineError) -> (AdmittedRequest.Origin, source: String, displayName: String) {
        switch request.source {
        case .url(let text):
            do throws(SourceError) {
                let url = try SourceURL(text)
                return (.remote(url), request.sourceID.map { "id:" + $0 } ?? url.normalised, url.redacted)
            } catch {
                throw PipelineError(.invalidSource, error.description, cause: error)
            }
        case .file(let path):
            guard !path.isEmpty, !path.utf8.contains(0) else {
                throw PipelineError(.invalidSource, "an empty path names no file; give a file or an http(s) URL")
            }
            let absolute = absolutePath(path)
            return (.file(absolute), request.sourceID.map { "id:" + $0 } ?? "file:" + absolute, path)
        case .bytes(let bytes, let name):
            return (.bytes(bytes), request.sourceID.map { "id:" + $0 } ?? "bytes:" + sha256Hex(bytes), name)
        }
    }

    /// The path from the root with `.` and `..` resolved by name; links are left as they are.
    private static func absolutePath(_ path: String) -> String {
        var full = path
        if !path.hasPrefix("/") {
            guard let folder = getcwd(nil, 0) else { return path }
            defer { free(folder) }
            full = String(cString: folder) + "/" + path
        }
        var parts: [Substring] = []
        for part in full.split(separator: "/") where part != "." {
            if part == ".." { _ = parts.popLast() } else { parts.append(part) }
        }
        return "/" + parts.joined(separator: "/")
    }
}
