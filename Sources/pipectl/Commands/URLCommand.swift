import ArgumentParser
import ImageServer
import PipelineSupport
import Variants

struct URLCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "url",
        abstract: "Print the URL of a variant in the form of another system.",
        discussion: """
            SYSTEM is next, vercel, imgproxy or iiif, with its settings in `grammars` (docs/grammars.md). Keys of the grammar sign the URL.
            The URL is printed without the server's address. A recipe that the URLs of the system cannot express is an error.

            Examples:
              pipectl url next thumbnail:640x,auto:75 /photos/a.jpg --config pipectl.yaml
              pipectl url imgproxy thumbnail:300,webp:80 https://example.org/a.jpg
            """)

    @Argument(help: "The name of the system in `grammars`.")
    var system: String
    @Argument(help: "Recipe text.")
    var recipe: String
    @Argument(help: "The source as the system's URLs contain it.")
    var source: String
    @Option(
        help: ArgumentHelp(
            "When the URL expires: 90s, 15m, 1h or 7d from now, or Unix seconds.", valueName: "time"))
    var expires: String?
    @OptionGroup var common: CommonOptions

    func run() throws {
        let configuration = try common.collectedSettings().configuration(
            serves: true, only: ["grammars", "presets", "limits.steps", "server.mountPoint"])
        let recipe = try Recipe(usage: recipe, presets: configuration.recipePresets())
        let expiry = try expires.map { try SigningOptions.expiry($0, now: SystemClock.unix.seconds) }
        do {
            let mounted = try configuration.site.mountedGrammars().first { $0.name == system }
            guard let grammar = mounted as? any URLWritingGrammar else {
                throw CommandFailure(
                    .usage,
                    mounted == nil
                        ? "`grammars` has no member `\(system)`; mount it, for example with --config"
                        : "URLs of \(system) cannot be written; the systems are next, vercel, imgproxy and iiif")
            }
            let target = try grammar.target(recipe, source: source, expiry: expiry)
            // The server must understand the URL, for example because it lists the width.
            _ = try configuration.site.mountedRequest(target)
            print(configuration.site.mountPoint + target)
        } catch let error as InvalidSetting {
            throw CommandFailure(.usage, error.message)
        } catch let problem as Problem {
            throw CommandFailure(.usage, "the server would refuse this URL: \(problem.detail ?? "")")
        }
    }
}
