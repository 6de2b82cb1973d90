import ArgumentParser
import Pipeline
import PipelineSupport

struct CacheClear: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "clear", abstract: "Remove all entries from the disk tiers, but keep the hit and miss counters.")

    @Flag(help: "Print one JSON object.")
    var json = false
    @OptionGroup var common: CommonOptions

    func run() throws {
        let result = try common.withStore { try $0.clear() }
        if json {
            print(JSONText(result.members).json)
        } else {
            print("removed " + result.text)
        }
    }
}
