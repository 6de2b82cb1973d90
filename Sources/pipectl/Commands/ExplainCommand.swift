import PipelineSupport
import ArgumentParser
import Pipeline
import Variants

struct ExplainCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "explain",
        abstract: "Show how each stage would handle a source, and why, without sending any request.",
        discussion: """
            Shows what is stored for the source, which stored response the request selects, how fresh that response is and which
            header fields decide this, the request that would be sent, and where the variant would come from.

            Examples:
              pipectl explain https://example.org/photo.jpg
              pipectl explain https://example.org/a.jpg -r thumbnail:300 --policy reload
              pipectl explain https://example.org/a.jpg --field 'Accept-Language: de'
              pipectl explain '/_next/image?url=%2Fa.jpg&w=640&q=75' --config pipectl.yaml
            """)

    @OptionGroup var argument: SourceArgument
    @Option(
        name: .shortAndLong, help: ArgumentHelp("The recipe of the variant.", valueName: "recipe"), completion: .recipe)
    var recipe: String?
    @Option(
        name: .customLong("field"), parsing: .singleValue,
        help: ArgumentHelp("A request header field, for responses with Vary; repeatable.", valueName: "name: value"))
    var fields: [String] = []
    @Option(
        help: ArgumentHelp(
            "Cache policy: protocol, cacheElseLoad, cacheOnly, reload or revalidate.", valueName: "policy"))
    var policy: CachePolicy?
    @Flag(help: "Print one JSON object.")
    var json = false
    @OptionGroup var common: CommonOptions

    private var source: String { argument.text }

    func run() async throws {
        let configuration = try common.configuration()
        let sent = try fields.map { text in
            guard let colon = text.firstIndex(of: ":"), colon > text.startIndex else {
                throw CommandFailure(.usage, "--field `\(text)`: expected `Name: value`")
            }
            return HeaderField(String(text[..<colon]), String(text[text.index(after: colon)...]).trimmed)
        }
        let named = try NamedSource(source, common.collectedSettings(), accept: sent.combined("accept"))
        var request = try named.request(recipe, presets: configuration.recipePresets())
        request.policy = policy
        request.fields = sent
        try await common.withPipeline(configuration) { pipeline in
            do throws(PipelineError) {
                let explanation = try await pipeline.explain(request)
                print(json ? explanation.json(source) : explanation.text(source), terminator: json ? "\n" : "")
                if let refusal = explanation.refusal { throw refusal }
            } catch {
                throw error.hinting(at: source)
            }
        }
    }
}
