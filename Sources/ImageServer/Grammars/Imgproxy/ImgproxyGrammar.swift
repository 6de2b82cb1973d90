import HTTPCaching
import Pipeline
import PipelineFetching
package import PipelineSupport
package import Variants

/// The URLs of imgproxy: `{path}/{signature}/{options}/plain/{source}` and its other forms. `docs/grammars.md` describes
/// them.
package struct ImgproxyGrammar: MountableGrammar {
    package static let systemName = "imgproxy"
    package static let fileMembers = ["fallback"]
    package let path: String
    private let reader: ImgproxyReader
    private let members: ImgproxySettings
    /// The folder of `local:///` sources.
    private let localFolder: BaseURLs?

    package init(at path: String, _ members: inout GrammarMembers) throws(InvalidSetting) {
        self.path = path
        let settings = try ImgproxySettings(&members)
        do throws(InvalidSetting) {
            reader = try ImgproxyReader(settings)
            localFolder = try settings.localRoot.map { (folder) throws(InvalidSetting) in
                try BaseURLs([ImgproxySettings.localName: "file://" + folder])
            }
        } catch {
            throw members.fault(error)
        }
        self.members = settings
    }

    package var secretFields: Set<String> { members.secret == nil ? [] : ["authorization"] }
    package var template: String { path + "/{signature}/{options}/{source}" }
    package var formats: [ImageFormat]? {
        ImgproxySettings.negotiable.filter { members.autoFormats.contains($0) || members.enforceFormats.contains($0) }
    }
    package var decidesAccess: Bool { !members.keys.isEmpty || !members.trustedSignatures.isEmpty || isOpen }
    package var opensAllSources: Bool { isOpen && members.baseURL == nil }
    /// Whether every client is served, whatever stands in the place of the signature.
    private var isOpen: Bool { members.unsigned == true && members.keys.isEmpty }

    package func read(_ target: RequestTarget, _ context: GrammarContext) throws(Problem) -> RoutedRequest {
        if let secret = members.secret, context.checksSecret {
            let sent = Array((context.authorization ?? "").utf8)
            guard areEqualInConstantTime(sent, Array("Bearer \(secret)".utf8)) else {
                throw Problem(.badSignature, "the request needs the `secret` as `Authorization: Bearer …`")
            }
        }
        let asked: ImgproxyRequest
        do throws(ImgproxyProblem) {
            asked = try reader.read(target.text.dropFirst(path.count), now: context.now)
        } catch {
            throw Problem(error)
        }
        let signature = context.signature
        let grant =
            try asked.isSigned
            ? signature.grant(until: asked.expiry) : signature.grant(ifUnsigned: members.unsigned, until: asked.expiry)
        let answer: RoutedRequest.ResponseKind
        var whenOverBudget: RecipeChoice?
        let byteLimit = asked.limits.sourceBytes > 0 ? Int(asked.limits.sourceBytes) : nil
        switch asked.kind {
        case .information: answer = .info
        case .original:
            answer = .choice(RecipeChoice("imgproxy raw \(byteLimit ?? 0)", byteLimit: byteLimit) { _ in nil })
        case .picture(var picture):
            try picture.options.useSizes(context.sizes)
            answer = .choice(choice(picture, context, byteLimit))
            guard picture.options.maxBytes > 0 else { break }
            // The last resort is the lowest quality, whatever the size.
            (picture.options.maxBytes, picture.options.quality) = (0, 10)
            whenOverBudget = choice(picture, context, byteLimit)
        }
        var routed = RoutedRequest(answer: answer, source: asked.source, grant: grant)
        if asked.source.hasPrefix(ImgproxySettings.localName + ":") {
            routed.resolved = try localFolder?.resolved(asked.source)
        }
        // A base URL may lead to originals that only signed URLs should reach.
        guard asked.isSigned || routed.resolved != nil || IIIFSettings.isURL(asked.source) else {
            throw Problem(.invalidSource, "a source without a scheme needs `baseURL`, or a signature")
        }
        routed.negotiates = asked.negotiates
        (routed.fallback, routed.whenOverBudget) = (members.fallback, whenOverBudget)
        routed.mayPrepare = members.secret == nil
        if case .original = asked.kind {
            routed.rescued = byteLimit == nil ? [.notAnImage, .undecodable, .overLimit] : [.notAnImage, .undecodable]
        }
        if case .information = asked.kind {
            routed.translate = { $0.asImgproxy($1) }
        } else {
            routed.present = { [members] (response, picture) in members.present(&response, picture, asked) }
        }
        return routed
    }

    private func choice(_ picture: ImgproxyChoice, _ context: GrammarContext, _ byteLimit: Int?) -> RecipeChoice {
        let accepted = Set(context.accepted)
        return RecipeChoice(
            "imgproxy \(picture.options) \(context.accepted)", overlayNames: picture.overlayNames.sorted(),
            keepsVectors: [nil, .svg].contains(picture.options.format) && !members.alwaysRasterizesSVG,
            byteLimit: byteLimit
        ) { (header) throws(PipelineError) in
            do throws(ImgproxyProblem) { return try picture.settle(header, accepted: accepted) } catch {
                throw PipelineError(error.status == 422 ? .overLimit : .invalidRecipe, error.detail)
            }
        }
    }

    /// Returns the signature of the first pair of keys, or `unsigned` if there are no keys.
    func signature(of rest: String) -> String { reader.signature(of: rest) ?? "unsigned" }

    package func shown(_ target: RequestTarget) -> String {
        path + "/… " + (reader.source(of: target.text.dropFirst(path.count)).map(RequestLog.redacted) ?? "")
    }

    package func plainText(of problem: Problem) -> (status: Int, text: String)? {
        let origin = problem.originStatus ?? 0
        let (status, general): (Int, String) =
            switch problem.kind {
            case .badSignature, .unauthorized, .forbidden: (403, "Forbidden")
            case .sourceRefused, .invalidSource: (404, "Invalid source URL")
            case .invalidRecipe, .missingMask, .malformedRequest, .unknownPath: (404, "Invalid URL")
            case .notFound: ((400..<500).contains(origin) ? origin : 404, "Source image is unreachable")
            case .originFailed:
                ((400..<500).contains(origin) ? origin : origin >= 500 ? 502 : 404, "Source image is unreachable")
            case .originTimeout, .renderTimeout: (504, "Timeout")
            case .notAnImage, .undecodable, .overLimit, .renderFailed, .renderCrashed, .notAvailable:
                (422, "Invalid source image")
            case .overloaded, .tooManyRequests: (429, "Too many requests")
            default: (problem.kind.status, problem.kind.title)
            }
        return (status, problem.detail.map { general + ": " + $0 } ?? general)
    }
}

extension Problem {
    fileprivate init(_ problem: ImgproxyProblem) {
        let kind: Kind =
            switch (problem.status, problem.general) {
            case (403, _): .badSignature
            case (404, "Invalid source URL"): .invalidSource
            case (422, _): .overLimit
            default: .invalidRecipe
            }
        self.init(kind, problem.detail)
    }
}

extension ImgproxyOptions {
    /// Replaces the size of the URL with an allowed size. Sizes of presets are the operator's own.
    fileprivate mutating func useSizes(_ sizes: SizeSteps?) throws(Problem) {
        guard let sizes, size != .zero, writesSize else { return }
        func edge(_ value: Double) -> Int? { value > 0 ? Int(min(value, 1e9)) : nil }
        let allowed = try sizes.admitted(ThumbnailSize(width: edge(size.x), height: edge(size.y)))
        size = SIMD2(Double(allowed.width ?? 0), Double(allowed.height ?? 0))
    }
}

extension SourceInformation {
    /// Returns the JSON of `/info` with two more members: the media type and the file size under imgproxy's names.
    fileprivate func asImgproxy(_ json: String) -> String {
        "{\"mime_type\":\"\(response.mediaType)\",\"size\":\(response.bytes.count)," + json.dropFirst()
    }
}

extension ImgproxySettings {
    /// Gives a successful response the header fields of imgproxy.
    fileprivate func present(
        _ response: inout ServerResponse, _ picture: PresentedPicture, _ asked: ImgproxyRequest
    ) {
        let isClosed = response["cache-control"].map { $0.contains("no-store") || $0.contains("private") } == true
        if !cacheControlPassthrough, !isClosed,
            let index = response.fields.firstIndex(where: { FieldLines.isSameName($0.name, "cache-control") })
        {
            let rest = asked.expiry.map { max(0, Int($0 - picture.now)) } ?? .max
            response.fields[index].value = "max-age=\(min(ttl, rest)), public"
        }
        let name = PercentText.encoded(asked.fileStem, keeping: "-._~") + "."
        response.fields.append(
            HeaderField(
                "Content-Disposition",
                SourceFields.disposition(
                    asked.isAttachment ? "attachment" : "inline", path: name,
                    picture.format?.fileExtension ?? String(picture.mediaType.dropFirst("image/".count)))))
        // A source that only the server knows is not revealed.
        if baseURL == nil, urlReplacements.isEmpty, let url = try? SourceURL(asked.source), url.userinfo == nil,
            url.redacted == url.normalized
        {
            response.fields.append(HeaderField("Link", "<\(url.normalized)>; rel=\"canonical\""))
        }
    }
}
