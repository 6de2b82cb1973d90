import HTTPCaching
import Pipeline
package import PipelineSupport
package import Variants

/// The URLs of the IIIF Image API 2.1 and 3.0: `{path}/2/{identifier}/…` and `{path}/3/{identifier}/…`.
/// `docs/grammars.md` describes them.
package struct IIIFGrammar: MountableGrammar {
    package static let systemName = "iiif"
    package let path: String
    let settings: IIIFSettings

    package init(at path: String, _ members: inout GrammarMembers) throws(InvalidSetting) {
        self.path = path
        settings = try IIIFSettings(&members)
    }

    package var template: String { path + "/{version}/{identifier}/{region}/{size}/{rotation}/{quality}.{format}" }
    package var decidesAccess: Bool { settings.unsigned != nil || !settings.identifiers.isEmpty }
    package var opensAllSources: Bool { settings.unsigned == true }
    package var formats: [ImageFormat]? { [] }
    package var crossOrigin: CrossOriginRule? { .all }
    package var dependsOnHost: Bool { settings.base == nil }

    package func read(_ target: RequestTarget, _ context: GrammarContext) throws(Problem) -> RoutedRequest {
        let segments = segments(target)
        guard segments.count > 1, let version = IIIFVersion(rawValue: String(segments[0])), !segments[1].isEmpty else {
            throw unknownPath
        }
        guard let base = settings.base ?? context.base.map({ $0 + path }) else {
            throw Problem(.malformedRequest, "the request has no valid `Host`")
        }
        let service = "\(base)/\(version.rawValue)/\(Self.uriText(segments[1]))"
        guard var identifier = Self.decoded(segments[1]) else { throw Problem(.notFound) }
        let page = settings.page(&identifier)
        let (source, grant) = try source(identifier, context)
        var routed = RoutedRequest(answer: .redirect(service + "/info.json"), source: source, grant: grant)
        switch segments.dropFirst(2) {
        case [], [""]: break
        case ["info.json"]: describe(&routed, version, service, page, context)
        case let rest where rest.count == 4: try choose(&routed, version, service, page, rest, context)
        default: throw unknownPath
        }
        return routed
    }

    package func shown(_ target: RequestTarget) -> String {
        var segments = segments(target)
        guard segments.count > 1, let identifier = Self.decoded(segments[1]) else { return RequestLog.hidden(target) }
        segments[1] = Substring(RequestLog.redacted(identifier))
        return path + "/" + segments.joined(separator: "/")
    }

    package func plainText(of problem: Problem) -> (status: Int, text: String)? {
        switch problem.kind {
        case .notFound, .invalidSource: (404, "no image has this identifier")
        case .malformedRequest, .invalidRecipe, .unknownPath, .badSignature, .methodNotAllowed, .referrerRefused:
            (problem.kind.status, problem.detail ?? problem.kind.title)
        // Other details may name a source that only the operator knows.
        default: (problem.kind.status, problem.kind.title)
        }
    }

    // MARK: Path

    /// The segments of the path after the mount point, as sent.
    private func segments(_ target: RequestTarget) -> [Substring] {
        RequestTarget(String(Substring(target.text.utf8.dropFirst(path.utf8.count)))).segments
    }

    private var unknownPath: Problem {
        let start = path + "/3/{identifier}/"
        return Problem(
            .unknownPath,
            "expected \(start)info.json or \(start){region}/{size}/{rotation}/{quality}.{format}, with 2 or 3 as version and "
                + "each `/` in the identifier written as %2F")
    }

    /// Decodes a segment once. Returns nil if the result is not UTF-8.
    private static func decoded(_ segment: Substring) -> String? {
        percentDecoded(segment).flatMap { String(validating: $0, as: UTF8.self) }
    }

    /// Returns an identifier as sent, with characters that a URL cannot contain percent-encoded.
    private static func uriText(_ identifier: Substring) -> String {
        PercentText.encoded(String(identifier), keeping: "%-._~!$&'()*+,;=:@")
    }

    /// Returns the source that an identifier names, and the permission. The operator has opened all sources in
    /// `identifiers` and in the site's base URLs.
    private func source(
        _ identifier: String, _ context: GrammarContext
    ) throws(Problem) -> (text: String, grant: Signature.Grant) {
        if let source = settings.source(of: identifier) ?? (context.isNamed(identifier) ? identifier : nil) {
            return (source, try context.signature.grant(ifUnsigned: true))
        }
        guard IIIFSettings.isURL(identifier) else { throw Problem(.notFound) }
        return (identifier, try context.signature.grant(ifUnsigned: settings.unsigned))
    }

    // MARK: Responses

    private func describe(
        _ routed: inout RoutedRequest, _ version: IIIFVersion, _ service: String, _ page: Int,
        _ context: GrammarContext
    ) {
        let isLinkedData = context.accept.map(Self.namesLinkedData) == true
        let limits = settings.limits(context.outputEdge)
        routed.answer = .information
        routed.describe = { [settings] header in
            header.page(page).map {
                (
                    settings.information(on: $0, version, service, limits),
                    isLinkedData ? "application/ld+json;profile=\"\(version.context)\"" : "application/json"
                )
            }
        }
        guard !isLinkedData else { return }
        routed.present = { response, _ in
            let relation = "http://www.w3.org/ns/json-ld#context"
            response.fields.append(
                HeaderField("Link", "<\(version.context)>;rel=\"\(relation)\";type=\"application/ld+json\""))
        }
    }

    private static func namesLinkedData(_ accept: String) -> Bool {
        accept.split(separator: ",").contains { member in
            let parts = member.split(separator: ";").map { $0.trimmingSpace().lowercased() }
            return parts.first == "application/ld+json" && !parts.contains("q=0")
        }
    }

    private func choose(
        _ routed: inout RoutedRequest, _ version: IIIFVersion, _ service: String, _ page: Int,
        _ segments: ArraySlice<Substring>, _ context: GrammarContext
    ) throws(Problem) {
        let texts = segments.compactMap(Self.decoded)
        guard texts.count == segments.count else {
            throw Problem(.malformedRequest, "a parameter contains a `%` that does not begin an encoded character")
        }
        let parameters = try IIIFParameters(texts, version, settings.formats)
        let limits = settings.limits(context.outputEdge)
        let text = (["iiif", version.rawValue, String(page)] + texts).joined(separator: "/")
        routed.answer = .choice(
            RecipeChoice(text) { header throws(PipelineError) in
                guard let header = header.page(page) else { throw PipelineError(.notFound, "there is no page \(page)") }
                var recipe = try IIIFPicture(parameters, of: header, limits).recipe
                recipe.page = page
                return recipe
            })
        routed.present = { response, picture in
            guard let header = picture.header?.page(page),
                let canonical = try? IIIFPicture(parameters, of: header, limits).canonical
            else { return }
            response.fields.append(
                HeaderField(
                    "Link", "<\(service)/\(canonical)>;rel=\"canonical\",<\(version.profile)>;rel=\"profile\""))
        }
    }
}
