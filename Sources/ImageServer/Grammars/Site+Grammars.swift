import HTTPCaching
import Pipeline
import PipelineFetching
package import PipelineSupport
import Variants

/// A grammar that understands the URLs of another system. Its settings contain the path of these URLs.
package protocol MountableGrammar: Grammar {
    /// The name of the system, which is the key in `ServerConfiguration.grammars`.
    static var systemName: String { get }
    /// The members that name files. Relative paths in a settings file are relative to that file.
    static var fileMembers: [String] { get }

    /// Whether the grammar's own settings decide which clients it serves, by keys or because `unsigned` is true.
    var decidesAccess: Bool { get }
    /// Whether every client can request every source that `sources` allows.
    var opensAllSources: Bool { get }

    /// - Parameters:
    ///   - path: The path at which the grammar's URLs begin.
    ///   - members: The other members of the settings. The initializer asks for each member that it knows.
    /// - Throws: if a member is invalid.
    init(at path: String, _ members: inout GrammarMembers) throws(InvalidSetting)
}

extension MountableGrammar {
    package static var fileMembers: [String] { [] }
    package var name: String { Self.systemName }
}

extension ServerConfiguration {
    /// Returns the grammars that `grammars` mounts.
    ///
    /// - Throws: if a setting is invalid, if paths overlap, or if `recipes` restricts what clients can render. The rules
    ///   for recipes cannot be compared with the URLs of other systems.
    package func mountedGrammars() throws(InvalidSetting) -> [any MountableGrammar] {
        var mounted: [any MountableGrammar] = []
        for (name, value) in grammars.sorted(by: { $0.key < $1.key }) {
            guard let type = Grammars.mountable.first(where: { $0.systemName == name }) else {
                let names = Grammars.mountable.map { $0.systemName }.joined(separator: ", ")
                throw InvalidSetting("\(name): unknown system; the systems are \(names)")
            }
            guard !recipes.isRestricted else {
                throw InvalidSetting(
                    "\(name): cannot be combined with `recipes.allow`, `recipes.presetsOnly`, `recipes.steps` or "
                        + "`recipes.watermark`, which do not apply to these URLs; use the members of `\(name)`")
            }
            var members = try GrammarMembers(value.json, of: name)
            guard let path = try members.text("path") else { throw members.fault("path", "must be set") }
            let others =
                mounted.map(\.path) + pictureRoutes.map(\.path) + Operation.Name.allCases.map { "/" + $0.rawValue }
            if let problem = Self.fault(ofPath: path, others) { throw members.fault("path", problem) }
            mounted.append(try type.init(at: path, &members))
            try members.finish()
        }
        return mounted
    }

    /// Parses a target of a mounted grammar for a command, as a client of the server would send it. Keys of the grammar
    /// verify the signature.
    ///
    /// - Parameter accept: The `Accept` field of the request.
    /// - Returns: The grammar's name and the request, or nil if the target does not belong to a mounted grammar.
    /// - Throws: a `Problem` if the server would refuse the target, or an `InvalidSetting`.
    package func mountedRequest(
        _ text: String, accept: String? = nil
    ) throws -> (name: String, request: RoutedRequest)? {
        let target = RequestTarget(ServerRequest.relativeTarget(mountPoint, text) ?? text)
        guard let grammar = try mountedGrammars().first(where: { target.isBelow($0.path) }) else { return nil }
        var context = GrammarContext(signature: Signature(allowUnsigned: true), now: SystemClock.unix.seconds)
        context.accepted = Negotiation.formats(accept: accept, among: grammar.formats ?? formats)
        context.checksSecret = false
        context.base = "http://localhost" + mountPoint
        context.sizes = recipes.sizeSteps
        context.isNamed = isNamed
        return (grammar.name, try grammar.read(target, context))
    }

    /// Whether a source names one of `baseURLs`, or is relative to `defaultBase`.
    func isNamed(_ source: String) -> Bool {
        let name = source.utf8.prefix { $0 != UInt8(ascii: ":") && $0 != UInt8(ascii: "/") }
        let isName = source.utf8.dropFirst(name.count).first == UInt8(ascii: ":")
        return isName ? baseURLs[String(Substring(name))] != nil : defaultBase != nil
    }

    /// Returns the reason why a grammar cannot be mounted at a path, or nil if it can.
    private static func fault(ofPath path: String, _ others: [String]) -> String? {
        let segments = path.dropFirst().split(separator: "/", omittingEmptySubsequences: false)
        if path == "/" {
            return "the paths of the server itself begin with `/`; mount the grammar at another path, and rewrite "
                + "the paths in the proxy"
        }
        let isPath =
            path.hasPrefix("/")
            && segments.allSatisfy { segment in
                !segment.isEmpty && segment != "." && segment != ".."
                    && segment.utf8.allSatisfy { $0.isLetterOrDigit || "-._~".utf8.contains($0) }
            }
        guard isPath else {
            return
                "must be a path of letters, digits, `-`, `.`, `_` and `~`, such as /_next/image, without a slash at the end"
        }
        let target = RequestTarget(path)
        return others.first { target.isBelow($0) || RequestTarget($0).isBelow(path) }.map {
            "overlaps with the path \($0); choose another path"
        }
    }
}

extension Site {
    /// Parses the target of a request with a grammar.
    ///
    /// - Parameter checksSecret: Whether a secret of the grammar's settings is required.
    func read(
        _ request: ServerRequest, _ grammar: any Grammar, checksSecret: Bool = true
    ) throws(Problem) -> RoutedRequest {
        var context = GrammarContext(signature: settings.signature, now: now())
        context.checksSecret = checksSecret
        context.base = base(host: request.combined("host"), isSecure: request.isSecure)
        context.accept = request.combined("accept")
        context.outputEdge = pipeline.limits.outputEdge
        context.sizes = settings.recipes.sizeSteps
        context.isNamed = settings.isNamed
        if let formats = grammar.formats, !formats.isEmpty {
            context.accepted = Negotiation.formats(accept: request.combined("accept"), among: formats)
        }
        context.authorization = request.combined("authorization")
        context.apiKey = request.combined("api-key")
        if isUpload(request) { context.uploadType = request.combined("content-type") ?? "" }
        context.allows = { [pipeline] in $0.folder != nil || pipeline.allows($0.text) }
        return try grammar.read(RequestTarget(request.target), context)
    }

    /// Returns the scheme, host and mount point that a client used, or nil if the host is missing or malformed.
    func base(host: String?, isSecure: Bool) -> String? {
        guard let host, !host.isEmpty, RequestAdmission.isHost(host) else { return nil }
        return (isSecure ? "https://" : "http://") + host + settings.mountPoint
    }

    /// Returns the source of a request.
    func source(of routed: RoutedRequest) throws(Problem) -> BaseURLs.Resolved {
        if let resolved = routed.resolved { return resolved }
        return try source(named: routed.source)
    }

    func redirect(to location: String) -> ServerResponse {
        ServerResponse(status: 303, fields: [HeaderField("Location", location), .date(now())])
    }

    /// Responds with a picture, with a recipe that depends on the original.
    func picture(
        _ choice: RecipeChoice, _ routed: RoutedRequest, _ request: ServerRequest, _ grammar: any Grammar
    ) async throws(Problem) -> ServerResponse {
        let began = now()
        // A grammar that determines the freshness also writes `Cache-Control`.
        let cacheControl = routed.freshness == nil ? settings.freshness?.directives : nil
        let source = try source(of: routed)
        var asked = imageRequest(source, for: request)
        asked.choice = choice
        let negotiates = routed.negotiates ?? grammar.negotiates
        asked.minFreshness = routed.freshness?.least
        asked.maxRedirects = routed.maxRedirects
        asked.staleWhileRevalidate = routed.freshness?.stale
        do throws(Problem) {
            return try await answer(
                asked, to: request, isNegotiated: negotiates, cacheControl: cacheControl,
                expiry: routed.grant.expiry, present: routed.present
            ) { image, varying in
                let tags = settings.tags.fields(of: image.record)
                // A named overlay may have changed, so it is read for each request.
                if choice.overlayNames.isEmpty, routed.mayPrepare {
                    prepare(image, varying, tags, cacheControl, request, routed)
                }
                return tags
            }
        } catch {
            if error.isOverBudget, let other = routed.whenOverBudget {
                var last = routed
                last.whenOverBudget = nil
                return try await picture(other, last, request, grammar)
            }
            if routed.rescued.contains(error.kind),
                let response = await originalPicture(source, routed, request, since: began, variesByAccept: negotiates)
            {
                return response
            }
            guard
                let response = await fallback(
                    for: error, asked, variesByAccept: negotiates, of: routed.fallback)
            else {
                throw error
            }
            return response
        }
    }

    /// Returns the unchanged original, or nil if it is not of an image type. The original counts as a miss if it was
    /// fetched after `began`.
    private func originalPicture(
        _ source: BaseURLs.Resolved, _ routed: RoutedRequest, _ request: ServerRequest, since began: Double,
        variesByAccept: Bool
    ) async -> ServerResponse? {
        var asked = OriginalRequest(
            url: source.text, fields: rules.forwarded.upstream(request.fields, isOriginal: true, changes: false))
        (asked.folder, asked.policy) = (source.folder, policy(request))
        asked.maxRedirects = routed.maxRedirects
        asked.gate = settings.rate?.gate(request.client, now)
        guard let original = try? await pipeline.original(for: asked), original.status == 200,
            let record = original.record, record.header?.format != .svg || pipeline.limits.svg != .refuse
        else { return nil }
        let types = original.fields.mediaTypes
        let type = record.header?.format.mediaType ?? (types.count == 1 ? types.first : nil) ?? ""
        guard type.hasPrefix("image/"), record.header != nil || type != ImageFormat.svg.mediaType else { return nil }
        // The stored body still has its content coding, which the response does not declare.
        guard original.fields.first("content-encoding") == nil else { return nil }
        let handling = original.handling.fieldValue()
        let derived = DerivedFreshness.cacheControl(
            of: record.response, isStale: false, now: now(), configuration: caching)
        let control = routed.grant.expiry.map { VariantAnswer.limited(derived, to: $0 - now()) } ?? derived
        let varying = VariantAnswer.varying(
            original: original.fields, forwarded: rules.forwarded, isNegotiated: variesByAccept)
        var response = ServerResponse(
            status: 200,
            fields: [
                HeaderField("Content-Type", type), HeaderField("ETag", "\"\(record.digest)\""),
                HeaderField("Cache-Control", control), HeaderField("Accept-Ranges", "bytes"),
                HeaderField("Cache-Status", handling), HeaderField("X-Content-Type-Options", "nosniff"),
                OriginalAnswer.sandbox, .date(now()),
            ] + (varying.isEmpty ? [] : [HeaderField("Vary", varying.joined(separator: ", "))])
                + settings.tags.fields(of: record),
            body: original.body, note: handling)
        response.picture = AnswerPicture(record)
        routed.present(
            &response,
            PresentedPicture(
                format: record.header?.format, mediaType: type, header: record.header,
                handling: original.age == nil || record.response.responseTime >= began ? .miss : .hit,
                original: record.response, now: now()))
        return ConditionalAnswer.response(
            response, to: request.fields, isHead: request.isHead, isOrigin: true, now: now())
    }
}

extension PresentedPicture {
    init(_ image: ImageResponse, now: Double) {
        let isMade = image.outcome == .rendered || image.originalOutcome == .network
        self.init(
            format: image.format, mediaType: image.mediaType, header: image.record.header,
            handling: image.isStale ? .stale : isMade ? .miss : .hit, original: image.record.response,
            now: now)
    }
}
