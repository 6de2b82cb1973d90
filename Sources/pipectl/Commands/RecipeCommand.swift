import ArgumentParser
import Pipeline
import PipelineSupport
import Variants

struct RecipeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "recipe",
        abstract: "Show the canonical text of a recipe and what each step does.",
        discussion: "Example:\n  pipectl recipe 'thumbnail:0300x200:fill,rounded-mask:8%,webp:80'")

    @Argument(help: "Recipe text.", completion: .recipe)
    var text: String
    @Flag(help: "Print one JSON object.")
    var json = false
    @OptionGroup var common: CommonOptions

    func run() throws {
        let configuration = try common.configuration(only: ["presets", "limits.steps"])
        let recipe = try Recipe(usage: text, presets: try configuration.recipePresets())
        if json {
            print(JSONText(["recipe": recipe.description, "steps": recipe.explanation]).json)
        } else {
            print(recipe.description)
            for (index, line) in recipe.explanation.enumerated() { print("  \(index + 1). \(line)") }
        }
    }
}

struct RecipesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "recipes",
        abstract: "List all recipe steps and all outputs that this machine can write, with their ranges.")

    @Flag(help: "Print JSON Lines, one object per step.")
    var json = false
    @OptionGroup var common: CommonOptions

    func run() async throws {
        let configuration = try common.configuration().pipelineConfiguration()
        let entries = Catalog.entries(with: await ImagePipeline.libraries(of: configuration))
        guard json else { return print(Catalog.listing(of: entries), terminator: "") }
        for entry in entries {
            print(
                JSONText([
                    "name": entry.token, "grammar": entry.grammar, "summary": entry.summary, "ranges": entry.ranges,
                    "example": entry.example,
                ]).json)
        }
    }
}
