import HTTPCaching
public import PipelineCaching
import PipelineFetching
import PipelineSupport
import Variants

extension ImageSource {
    /// The name its records are stored under; nil if the source is invalid.
    package var storedName: String? { try? recordName() }

    /// The name its records are stored under.
    package func recordName() throws(PipelineError) -> String { try AdmitStage.identify(ImageRequest(self)).source }

    /// Whether a text is such a name already, other than a URL.
    package static func isStoredName(_ text: String) -> Bool {
        ["id:", "bytes:", "file:"].contains { text.hasPrefix($0) }
    }
}

extension SourceSelection {
    /// Sources whose names begin with `text`. An http(s) URL is normalised, then compared as text (so `/img` covers
    /// `/img.jpg` and `/imgs/`, and `https://a.example` the whole origin); text that begins with `id:`, `bytes:` or
    /// `file:` is used as it is; anything else is a path, relative to the working directory.
    ///
    /// Throws `invalidSource` for empty text, an invalid URL, and a path that ends in a dot segment.
    public init(prefix text: String) throws(PipelineError) {
        if ImageSource.isStoredName(text) {
            self.init(prefixes: [text])
            return
        }
        let path = text.prefix { $0 != "?" && $0 != "#" }
        guard !["/.", "/.."].contains(where: { path.hasSuffix($0) }) else {
            throw PipelineError(.invalidSource, "\(text): ends in a dot segment, which would mean the folder above")
        }
        let (url, source, _) = try AdmitStage.identify(ImageRequest(ImageSource(text)))
        // Normalising a path drops the slash that distinguishes a folder from names with the same prefix.
        if url.host.isEmpty, text.hasSuffix("/"), !source.hasSuffix("/") {
            self.init(prefixes: [source + "/"])
        } else {
            self.init(prefixes: [source])
        }
    }

    /// All http and https URLs of exactly this host (`a.example` is not `www.a.example`), on any port.
    ///
    /// Throws `invalidSource` if the text is not exactly a host.
    public init(host text: String) throws(PipelineError) {
        let isBareIPv6 = !text.hasPrefix("[") && text.utf8.count { $0 == UInt8(ascii: ":") } > 1
        do throws(SourceError) {
            let url = try SourceURL(isBareIPv6 ? "http://[\(text)]" : "http://" + text)
            guard url.normalised == url.origin + "/", url.port == 80, url.userinfo == nil,
                !text.contains(where: { $0 == "/" || $0 == "#" })
            else {
                throw SourceError(
                    .malformed, text, "is more than a host; give the host alone, it covers every scheme and port")
            }
            self.init(normalisedHost: url.host)
        } catch {
            throw PipelineError(.invalidSource, error.description, cause: error)
        }
    }
}

/// Decides whether a request is admitted, and under which identity.
struct AdmitStage: Sendable {
    let masks: MaskFolder
    let overlays: MaskFolder
    let threads: OwnedThreads
    /// For the files of folders.
    let files: FileTransport
    /// By scheme.
    var transports: [String: any Transport] = [:]
    /// The schemes that only the program's own transports fetch.
    var ownSchemes: Set<String> = []
    /// How far requests that do not say trust stored responses.
    var policy = CachePolicy.protocol
    /// What counts for the names of records.
    var names = SourceNames()
    /// The hosts that may be contacted; checked before any cache, so that responses stored earlier are refused too.
    var sources = HostPolicy()
    /// Whether the pipeline has been shut down.
    let isShutDown: @Sendable () -> Bool

    func callAsFunction(
        _ request: ImageRequest, telling tell: LoadTask.Tell? = nil
    ) async throws(PipelineError) -> AdmittedRequest {
        AdmittedRequest(try await parts(of: request, tell))
    }

    private func parts(
        of request: ImageRequest, _ tell: LoadTask.Tell? = nil
    ) async throws(PipelineError) -> AdmittedRequest.Parts {
        try checkIsOpen(request)
        var given: BytesTransport?
        if case .bytes(let bytes, _) = request.source {
            given = BytesTransport(bytes, digest: await threads.run { sha256Hex(bytes) })
        }
        var parts = try parts(of: request, given)
        parts.tell = tell
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
        parts.masks = named
        return parts
    }

    /// Admits a request without suspending; nil if bytes are to be digested or pictures to be read for it.
    func atOnce(_ request: ImageRequest) throws(PipelineError) -> AdmittedRequest? {
        try checkIsOpen(request)
        if case .bytes = request.source { return nil }
        guard request.recipe?.maskNames.isEmpty != false, request.recipe?.overlayNames.isEmpty != false else {
            return nil
        }
        return AdmittedRequest(try parts(of: request, nil))
    }

    private func checkIsOpen(_ request: ImageRequest) throws(PipelineError) {
        guard isShutDown() else { return }
        throw .shutDown(request.source)
    }

    private func parts(
        of request: ImageRequest, _ given: BytesTransport?
    ) throws(PipelineError) -> AdmittedRequest.Parts {
        let began = ContinuousClock.now
        if let error = request.recipe?.error { throw PipelineError(error) }
        let (url, source, displayName) = try identify(request, digest: given?.digest)
        guard let transport: any Transport = given ?? files(of: request.folder) ?? transports[url.scheme] else {
            throw PipelineError(.invalidSource, "\(displayName): nothing fetches `\(url.scheme)` sources")
        }
        if let refusal = sources.refusal(of: url) {
            throw PipelineError(.sourceRefused, "\(displayName): refused by policy: \(refusal)")
        }
        var request = request
        // The source's name leaves out the URL's credentials. As a field, the rules of caching and of sharing see them.
        if let credentials = url.authorization, request.fields.first("authorization") == nil {
            request.fields.append(credentials)
        }
        return AdmittedRequest.Parts(
            request: request, url: url, transport: transport, source: source, displayName: displayName,
            isOneOfMany: request.sourceID == nil && names.isShared(url), policy: request.policy ?? policy, began: began)
    }

    private func files(of folder: OpenFolder?) -> FileTransport? {
        guard let folder else { return nil }
        var files = files
        files.folder = folder
        return files
    }

    /// Admits a request for the raw response.
    func callAsFunction(_ request: OriginalRequest) async throws(PipelineError) -> AdmittedRequest {
        var asked = ImageRequest(.url(request.url))
        asked.sourceID = request.sourceID
        asked.policy = request.policy
        asked.priority = request.priority
        asked.storage = request.storage
        asked.gate = request.gate
        asked.folder = request.folder
        asked.fields = request.fields.filter { !Validation.narrows($0.name) }
        var admitted = try await parts(of: asked)
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

    /// Like the static function, and knows the schemes that a program fetches itself.
    func identify(
        _ request: ImageRequest, digest: String? = nil
    ) throws(PipelineError) -> (SourceURL, source: String, displayName: String) {
        guard let text = request.source.text,
            let url = request.folder?.url(of: text) ?? SourceURL(text, ofAny: ownSchemes)
        else {
            let (url, source, displayName) = try Self.identify(request, digest: digest)
            return (url, request.sourceID == nil ? names.name(of: url) : source, displayName)
        }
        return (url, request.sourceID.map { "id:" + $0 } ?? url.normalised, url.redacted)
    }

    /// What a source is fetched by, the identity it is cached under, and its name in messages.
    ///
    /// - Parameter digest: of bytes that came with the request; nil to compute it if it is needed.
    static func identify(
        _ request: ImageRequest, digest: String? = nil
    ) throws(PipelineError) -> (SourceURL, source: String, displayName: String) {
        let (url, displayName) = try located(request.source, digest)
        return (url, request.sourceID.map { "id:" + $0 } ?? url.normalised, displayName)
    }

    private static func located(
        _ source: ImageSource, _ digest: String?
    ) throws(PipelineError) -> (SourceURL, displayName: String) {
        switch source {
        case .url(let text):
            do throws(SourceError) {
                let url = try SourceURL(named: text)
                return (url, url.redacted)
            } catch {
                throw PipelineError(.invalidSource, error.description, cause: error)
            }
        case .file(let path):
            guard !path.isEmpty, !path.utf8.contains(0) else {
                throw PipelineError(
                    .invalidSource, "an empty path, or one with a NUL, names no file; give a file or an http(s) URL")
            }
            return (SourceURL(scheme: "file", name: absolutePath(path)), SourceURL.redacting(path))
        case .bytes(let bytes, let name):
            return (SourceURL(scheme: "bytes", name: digest ?? sha256Hex(bytes)), name)
        }
    }
}
