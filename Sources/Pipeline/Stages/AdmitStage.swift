import Glibc
import Variants

extension ImageSource {
    /// What its records are stored under; nil when it names nothing that could be.
    package var storedName: String? {
        try? AdmitStage.identify(ImageRequest(self)).source
    }

    /// Whether a text is such a name already, and that of no URL.
    package static func isStoredName(_ text: String) -> Bool {
        ["id:", "bytes:", "file:"].contains { text.hasPrefix($0) }
    }
}

extension SourceSelection {
    /// Sources whose names begin as `text` does: an http(s) URL in normal form, then compared as text (so `/img` covers
    /// `/img.jpg` and `/imgs/`, and `https://a.example` the whole origin); what begins with `id:`, `bytes:` or `file:` as
    /// it is; anything else as a path from the working directory.
    ///
    /// Throws `invalidSource` for what is empty or no URL, and for a path that ends in a dot segment.
    public init(prefix text: String) throws(PipelineError) {
        if ImageSource.isStoredName(text) {
            self.init(prefixes: [text])
            return
        }
        let path = text.prefix { $0 != "?" && $0 != "#" }
        guard !["/.", "/.."].contains(where: { path.hasSuffix($0) }) else {
            throw PipelineError(.invalidSource, "\(text): ends in a dot segment, which would mean the folder above")
        }
        let (origin, source, _) = try AdmitStage.identify(ImageRequest(ImageSource(text)))
        // A path loses the slash that tells a folder from names that begin like it.
        if case .file = origin, text.hasSuffix("/"), !source.hasSuffix("/") {
            self.init(prefixes: [source + "/"])
        } else {
            self.init(prefixes: [source])
        }
    }

    /// Every http and https URL of this host, exactly (`a.example` is not `www.a.example`), whatever its port.
    ///
    /// Throws `invalidSource` for what is more or less than a host.
    public init(host text: String) throws(PipelineError) {
        let isBareIPv6 = !text.hasPrefix("[") && text.utf8.count { $0 == UInt8(ascii: ":") } > 1
        do throws(SourceError) {
            let url = try SourceURL(isBareIPv6 ? "http://[\(text)]" : "http://" + text)
            guard url.normalised == url.origin + "/", url.port == 80, url.userinfo == nil,
                !text.contains(where: { $0 == "/" || $0 == "#" })
            else {
                throw SourceError(.malformed, text, "is more than a host; any scheme and port are meant")
            }
            self.init(normalisedHost: url.host)
        } catch {
            throw PipelineError(.invalidSource, error.description, cause: error)
        }
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
        AdmittedRequest(try await parts(of: request, events))
    }

    private func parts(
        of request: ImageRequest, _ events: @escaping @Sendable (LoadEvent) -> Void
    ) async throws(PipelineError) -> AdmittedRequest.Parts {
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
        var request = request
        // The source does not name the credentials of its URL. Here the rules of caching and of sharing see them.
        if case .remote(let url) = origin, let credentials = url.authorization,
            request.fields.first("authorization") == nil
        {
            request.fields.append(credentials)
        }
        return AdmittedRequest.Parts(
            request: request, origin: origin, source: source, displayName: displayName, masks: named, events: events,
            began: began)
    }

    /// A request for the response itself.
    func callAsFunction(_ request: OriginalRequest) async throws(PipelineError) -> AdmittedRequest {
        var asked = ImageRequest(.url(request.url))
        asked.sourceID = request.sourceID
        asked.policy = request.policy
        asked.priority = request.priority
        asked.storage = request.storage
        asked.fields = request.fields.filter { !Validation.narrows($0.name) }
        var admitted = try await parts(of: asked) { _ in }
        admitted.purpose = .original
        admitted.followsRedirects = request.followsRedirects
        admitted.onInterim = request.onInterim
        admitted.method = request.method
        admitted.body = request.body
        if request.honoursDirectives { admitted.directives = RequestDirectives(fields: request.fields) }
        if request.forwardsConditionals || request.method != "GET" {
            admitted.conditions = request.fields.filter { Validation.narrows($0.name) }
        }
        return AdmittedRequest(admitted)
    }

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
