import PipelineFetching
import PipelineSupport
import Variants

/// The recipe and the source in a path of the server's own form.
///
///     /{name}/{signature}/{recipe}/{source}    /{name}/{signature}/{source}
///
/// The recipe is one path segment, and the source is the rest of the path. Both are percent-decoded exactly once. The
/// query may contain `exp=UNIX`, which `Signature` checks, and `v=…`, which is ignored.
struct OwnPath {
    /// The recipe, or an empty string if the path has no recipe.
    let recipe: String
    /// The source as the client wrote it.
    let source: String

    /// - Throws: a `Problem` with status 400 if a segment is missing or cannot be decoded, if a proxy may interpret the
    ///   source differently, or if the path has a different query, which may have been meant as part of the source.
    init(_ target: RequestTarget, hasRecipe: Bool = false) throws(Problem) {
        let (segments, query, first) = (target.segments, target.query, hasRecipe ? 3 : 2)
        guard segments.count > first, !segments[first].isEmpty else {
            let template = "/\(segments[0])/{signature}/\(hasRecipe ? "{recipe}/" : ""){source}"
            throw Problem(.invalidSource, "expected \(template), \(Self.howToEncode)")
        }
        let hasQuery = query != nil && query.flatMap(SignedPath.expiry) == nil
        source = try Self.source(segments[first...], hasQuery: hasQuery)
        recipe = hasRecipe ? try Self.text(segments[2], of: .invalidRecipe, called: "recipe") : ""
    }

    /// Returns the recipe in the path of an upload, which has no source. A signature of such a path is therefore valid
    /// for uploads only, and the signature of any other path is not.
    static func uploadRecipe(_ target: RequestTarget) throws(Problem) -> String {
        let segments = target.segments
        guard segments.count == 3 else {
            throw Problem(
                .invalidSource,
                "expected POST /\(segments[0])/{signature}/{recipe}, with the picture as the body and no source")
        }
        guard target.query == nil || target.query.flatMap(SignedPath.expiry) != nil else {
            throw Problem(.malformedRequest, "the query can only contain `v=…` and `exp=…`")
        }
        return try text(segments[2], of: .invalidRecipe, called: "recipe")
    }

    /// Returns the path for the log, without its signature. The recipe stays as sent.
    static func shown(_ target: RequestTarget, hasRecipe: Bool = false) -> String {
        // The segments of other paths may contain secrets.
        if hasRecipe, let text = try? uploadRecipe(target), text.hasPrefix("@") || (try? Recipe(text)) != nil {
            return "/\(target.segments[0])/" + SourceURL.hidingSecrets(String(target.segments[2]))
        }
        guard let name = target.name, let path = try? OwnPath(target, hasRecipe: hasRecipe) else {
            return RequestLog.hidden(target)
        }
        let recipe = hasRecipe ? SourceURL.hidingSecrets(String(target.segments[2])) + "/" : ""
        return "/\(name)/\(recipe)" + RequestLog.redacted(path.source)
    }

    static let howToEncode =
        "with the source percent-encoded (`?` as %3F, `%` as %25, and either all or no `/` as %2F) "
        + "or as `b64:` followed by its base64url form"

    static func source(_ segments: ArraySlice<Substring>, hasQuery: Bool) throws(Problem) -> String {
        guard !hasQuery else {
            throw Problem(
                .invalidSource,
                "an unencoded `?` ends the source, and can only be followed by `v=…` or `exp=…`; expected a path \(howToEncode)"
            )
        }
        // Clients and proxies resolve dot segments, and some decode %2F. They would interpret the path differently.
        for segment in segments where segments.count > 1 {
            let folded = segment.lowercased().replacing("%2e", with: ".")
            guard folded != ".", folded != ".." else {
                throw Problem(
                    .invalidSource,
                    "the source contains the segment `\(segment)`, which clients and proxies would resolve; remove it")
            }
            guard !folded.contains("%2f") else {
                throw Problem(.invalidSource, "the source contains both `/` and %2F; expected a path \(howToEncode)")
            }
        }
        let source = try text(segments.joined(separator: "/"), of: .invalidSource, called: "source")
        for scheme in ["http:/", "https:/", "s3:/"]
        where segments.count > 1 && source.hasPrefix(scheme) && !source.hasPrefix(scheme + "/") {
            throw Problem(
                .invalidSource,
                "only one slash follows `\(scheme.dropLast())`, possibly because a proxy merged two (nginx: set `merge_slashes off`); "
                    + "correct that, or write each slash as %2F"
            )
        }
        guard source.hasPrefix("b64:") else { return source }
        guard let bytes = Base64.urlDecoded(source.dropFirst(4)),
            let plain = String(validating: bytes, as: UTF8.self)
        else {
            throw Problem(.invalidSource, "the text after `b64:` is not the base64url form of a UTF-8 string")
        }
        return plain
    }

    private static func text(
        _ segment: some StringProtocol, of kind: Problem.Kind, called name: String
    ) throws(Problem) -> String {
        guard let bytes = percentDecoded(segment) else {
            throw Problem(
                kind, "the \(name) contains a `%` without two hexadecimal digits; write a percent sign as %25")
        }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw Problem(kind, "the percent-decoded \(name) is not valid UTF-8")
        }
        return text
    }
}
