import HTTPCaching
import Pipeline
package import PipelineSupport
package import Variants

/// Parses the URLs of imaginary's pipelines: `{path}/pipeline?operations=[…]`. The picture is the body of a POST request,
/// or `url` names it.
package struct ImaginaryGrammar: MountableGrammar {
    package static let systemName = "imaginary"
    package let path: String
    private let key: [UInt8]?
    private let unsigned: Bool?

    package init(at path: String, _ members: inout GrammarMembers) throws(InvalidSetting) {
        self.path = path
        key = try members.text("key").map { Array($0.utf8) }
        unsigned = try members.flag("unsigned")
        guard key == nil || unsigned != true else {
            throw members.fault("unsigned", "cannot be combined with `key`")
        }
    }

    package var template: String { path + "/pipeline" }
    package var formats: [ImageFormat]? { [.webp] }
    package var takesUploads: Bool { true }
    package var decidesAccess: Bool { key != nil || unsigned == true }
    package var opensAllSources: Bool { unsigned == true }
    package var secretFields: Set<String> { key == nil ? [] : ["api-key"] }
    package var errorType: String { "application/json" }

    package func read(_ target: RequestTarget, _ context: GrammarContext) throws(Problem) -> RoutedRequest {
        let query = FormQuery(target.text)
        let grant = try grant(query, context)
        guard target.text.prefix(while: { $0 != "?" }) == template else {
            throw Problem(
                .unknownPath, "the path must end in \(template); other operations are members of `operations`")
        }
        let isUpload = context.uploadType != nil
        try query.check(isUpload ? ["operations", "key", "field"] : ["operations", "key", "url"], ignoring: [])
        let operations = try ImaginaryOperations(try query.required("operations"))
        let written = try operations.recipe(context.accepted)
        let recipe = try context.sizes?.admitted(written) ?? written
        let choice = RecipeChoice("imaginary \(recipe)") { header in
            guard header.format == .svg, recipe.output?.kind == .original else { return recipe }
            // Most operations need pixels.
            var drawn = recipe
            drawn.output = OutputSpecification(.format(.png))
            drawn.output?.keep = recipe.output?.keep
            return drawn
        }
        var routed = RoutedRequest(answer: .choice(choice), source: "", grant: grant)
        routed.negotiates = operations.negotiates
        routed.mayPrepare = key == nil
        if let type = context.uploadType {
            if FormPart.isForm(type) {
                routed.form = try FormPart(type, field: query["field"].first ?? "file")
            }
        } else {
            routed.source = try query.required("url")
            guard ["http://", "https://"].contains(where: { routed.source.hasPrefix($0) }) else {
                throw Problem(.invalidSource, "`url` must be an http or https URL")
            }
            routed.resolved = BaseURLs.Resolved(text: PercentText.completed(routed.source))
        }
        // Shared caches do not know that the response needs the field.
        let isPrivate = key != nil && context.apiKey != nil
        routed.present = { response, _ in
            if isPrivate, let index = response.fields.firstIndex(where: { $0.name == "Cache-Control" }),
                !VariantAnswer.forbidsSharing(response.fields[index].value)
            {
                response.fields[index].value = "private, " + response.fields[index].value
            }
            let edges = response.picture?.size.split(separator: "x") ?? []
            guard edges.count == 2 else { return }
            response.fields += [
                HeaderField("Image-Width", String(edges[0])), HeaderField("Image-Height", String(edges[1])),
            ]
        }
        return routed
    }

    private func grant(_ query: FormQuery, _ context: GrammarContext) throws(Problem) -> Signature.Grant {
        guard let key, context.checksSecret else { return try context.signature.grant(ifUnsigned: unsigned) }
        let given = query["key"] + [context.apiKey].compactMap(\.self)
        guard given.count == 1, areEqualInConstantTime(Array(given[0].utf8), key) else {
            throw Problem(.badSignature, "the API key is missing or wrong; send `key` or the field `API-Key`")
        }
        return context.signature.grant(until: nil)
    }

    package func shown(_ target: RequestTarget) -> String {
        template + (FormQuery(target.text)["url"].first.map { " " + RequestLog.redacted($0) } ?? "")
    }

    package func plainText(of problem: Problem) -> (status: Int, text: String)? {
        var json = JSONText()
        json.add("message", problem.detail ?? problem.kind.title)
        json.add("status", problem.kind.status)
        return (problem.kind.status, json.closed)
    }
}
