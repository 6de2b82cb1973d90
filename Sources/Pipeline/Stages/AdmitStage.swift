import HTTPCaching
package import PipelineCaching
import PipelineFetching
import PipelineSupport
import Variants

extension ImageSource {
    /// The name that records of the source are stored under, or nil if the source is invalid.
    package var storedName: String? { try? recordName() }

    /// Returns the name that records of the source are stored under.
    package func recordName() throws(PipelineError) -> String { try AdmitStage.identify(ImageRequest(self)).source }

    /// Whether a string is already a stored name other than a URL.
    package static func isStoredName(_ text: String) -> Bool {
        ["id:", "bytes:", "file:"].contains { text.hasPrefix($0) }
    }
}

extension SourceSelection {
    /// Implements `PurgeSelection.prefix(_:)`.
    package init(prefix text: String) throws(PipelineError) {
        if ImageSource.isStoredName(text) {
            self.init(prefixes: [text])
            return
        }
        let path = text.prefix { $0 != "?" && $0 != "#" }
        guard !["/.", "/.."].contains(where: { path.hasSuffix($0) }) else {
            throw PipelineError(
                .invalidSource,
                "\(text): the prefix ends in a dot segment, which would select a different folder; remove it")
        }
        let (url, source) = try AdmitStage.identify(ImageRequest(ImageSource(text)))
        // Normalizing a path drops the trailing slash, which distinguishes a folder from names with the same prefix.
        if url.host.isEmpty, text.hasSuffix("/"), !source.hasSuffix("/") {
            self.init(prefixes: [source + "/"])
        } else {
            self.init(prefixes: [source])
        }
    }

    /// Implements `PurgeSelection.host(_:)`.
    package init(host text: String) throws(PipelineError) {
        let isBareIPv6 = !text.hasPrefix("[") && text.utf8.count { $0 == UInt8(ascii: ":") } > 1
        do throws(SourceError) {
            let url = try SourceURL(isBareIPv6 ? "http://[\(text)]" : "http://" + text)
            guard url.normalized == url.origin + "/", url.port == 80, url.userinfo == nil,
                !text.contains(where: { $0 == "/" || $0 == "#" })
            else {
                throw SourceError(
                    .malformed, text,
                    "contains more than a host; give only the host, which covers every scheme and port")
            }
            self.init(normalizedHost: url.host)
        } catch {
            throw PipelineError(.invalidSource, error.description, cause: error)
        }
    }
}

/// Decides whether a request is allowed, and determines its identity.
struct AdmitStage: Sendable {
    let masks: MaskFolder
    let overlays: MaskFolder
    let threads: OwnedThreads
    /// The transport for files in folders.
    let files: FileTransport
    /// The transports by scheme.
    var transports: [String: any Transport] = [:]
    /// The schemes that only the program's own transports and providers can fetch.
    var ownSchemes: Set<String> = []
    /// The policy for requests that do not specify one.
    var policy = CachePolicy.protocol
    /// The rules that determine the names of records.
    var names = SourceNames()
    /// The hosts that may be contacted. They are checked before any cache, so that responses stored earlier are also
    /// refused.
    var sources = HostPolicy()
    /// Whether the pipeline has been shut down.
    let isShutDown: @Sendable () -> Bool

    func callAsFunction(
        _ request: ImageRequest, onEvent: LoadTask.EventHandler? = nil
    ) async throws(PipelineError) -> AdmittedRequest {
        AdmittedRequest(try await parts(of: request, onEvent))
    }

    private func parts(
        of request: ImageRequest, _ onEvent: LoadTask.EventHandler? = nil
    ) async throws(PipelineError) -> AdmittedRequest.Parts {
        try checkIsOpen(request)
        var given: BytesTransport?
        if case .bytes(let bytes, _) = request.source {
            given = BytesTransport(bytes, digest: await threads.run { sha256Hex(bytes) })
        }
        var parts = try parts(of: request, given)
        parts.onEvent = onEvent
        var named: [String: NamedFile] = [:]
        let wanted =
            (request.recipe?.maskNames ?? []).map { (key: $0, name: $0, folder: masks) }
            + (request.recipe?.overlayNames ?? request.choice?.overlayNames ?? []).map {
                (key: Recipe.overlayKey($0), name: $0, folder: overlays)
            }
        for (key, name, folder) in wanted {
            let answer = await threads.run {
                Result { () throws(PipelineError) in try folder.file(named: name) }
            }
            named[key] = try answer.get()
        }
        parts.masks = named
        return parts
    }

    /// Admits a request without suspending. Returns nil if the request needs a digest of bytes, or masks or overlays to
    /// be read.
    func atOnce(_ request: ImageRequest) throws(PipelineError) -> AdmittedRequest? {
        try checkIsOpen(request)
        if case .bytes = request.source { return nil }
        guard request.recipe?.maskNames.isEmpty != false, request.recipe?.overlayNames.isEmpty != false,
            request.choice?.overlayNames.isEmpty != false
        else {
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
        let (url, source) = try identify(request, digest: given?.digest)
        guard let transport: any Transport = given ?? files(of: request.folder) ?? transports[url.scheme] else {
            throw PipelineError(
                .invalidSource,
                "\(request.source.name(at: url)): sources with the scheme `\(url.scheme)` are not supported")
        }
        if let refusal = sources.refusal(of: url) {
            throw PipelineError(.sourceRefused, "\(request.source.name(at: url)): not allowed: \(refusal)")
        }
        var request = request
        // The name of the source excludes the credentials in the URL. A header field makes them visible to the rules
        // for caching and sharing.
        if let credentials = url.authorization, request.fields.first("authorization") == nil {
            request.fields.append(credentials)
        }
        return AdmittedRequest.Parts(
            request: request, url: url, transport: transport, source: source,
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
        asked.maxRedirects = request.maxRedirects
        asked.fields = request.fields.filter { !Validation.narrows($0.name) }
        var admitted = try await parts(of: asked)
        if request.method != "GET", admitted.transport.isLocal {
            throw PipelineError(
                .invalidSource,
                "\(AdmittedRequest(admitted).displayName): methods other than GET can be sent only to http(s) URLs")
        }
        admitted.purpose = .original
        admitted.followsRedirects = request.followsRedirects
        admitted.onInterim = request.onInterim
        admitted.method = request.method
        admitted.body = request.body
        if request.honorsDirectives { admitted.directives = RequestDirectives(fields: request.fields) }
        if request.forwardsConditionals || request.method != "GET" {
            admitted.conditions = request.fields.filter { Validation.narrows($0.name) }
        }
        return AdmittedRequest(admitted)
    }

    /// Identifies a source like the static function, and also recognizes the schemes that the program fetches itself.
    func identify(
        _ request: ImageRequest, digest: String? = nil
    ) throws(PipelineError) -> (SourceURL, source: String) {
        guard let text = request.source.text,
            let url = request.folder?.url(of: text) ?? SourceURL(text, ofAny: ownSchemes)
        else {
            let (url, source) = try Self.identify(request, digest: digest)
            return (url, request.sourceID == nil ? names.name(of: url) : source)
        }
        return (url, request.sourceID.map { "id:" + $0 } ?? url.normalized)
    }

    /// Returns the URL of a source, and the name that its records are stored under.
    ///
    /// - Parameter digest: the digest of bytes supplied with the request, or nil to compute it if needed.
    static func identify(
        _ request: ImageRequest, digest: String? = nil
    ) throws(PipelineError) -> (SourceURL, source: String) {
        let url = try located(request.source, digest)
        return (url, request.sourceID.map { "id:" + $0 } ?? url.normalized)
    }

    private static func located(_ source: ImageSource, _ digest: String?) throws(PipelineError) -> SourceURL {
        switch source {
        case .url(let text):
            do throws(SourceError) { return try SourceURL(named: text) } catch {
                throw PipelineError(.invalidSource, error.description, cause: error)
            }
        case .file(let path):
            guard !path.isEmpty, !path.utf8.contains(0) else {
                throw PipelineError(
                    .invalidSource, "the path is empty or contains a NUL character; give a file or an http(s) URL")
            }
            return SourceURL(scheme: "file", name: absolutePath(path))
        case .bytes(let bytes, _):
            return SourceURL(scheme: "bytes", name: digest ?? sha256Hex(bytes))
        }
    }
}
