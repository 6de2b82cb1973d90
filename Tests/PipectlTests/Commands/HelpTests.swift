import ArgumentParser
import Testing

@testable import pipectl

extension CommandTests {
    @Suite struct HelpTexts {
        private let site = CommandSite()

        private static func names(_ type: any ParsableCommand.Type, _ path: [String] = []) -> [[String]] {
            [path] + type.configuration.subcommands.flatMap { names($0, path + [$0._commandName]) }
        }

        @Test func `no example is broken where help is 80 columns wide`() async throws {
            for words in Self.names(Pipectl.self) {
                let text = try await site.plain(words + ["--help"]).text
                let lines = text.split(separator: "\n")
                // An example that was wrapped goes on at the left margin.
                for (line, next) in zip(lines, lines.dropFirst())
                where line.hasPrefix("  ") && line.contains("pipectl ") {
                    let isNew = next.hasPrefix(" ") || next.first?.isUppercase == true
                    #expect(line.count <= 80 && isNew, "\(words): \(line)\n\(next)")
                }
            }
        }

        @Test(arguments: ["bash", "zsh", "fish"]) func `the shell completes every subcommand`(shell: String)
            async throws
        {
            let script = try await site.plain(["--generate-completion-script", shell])
            #expect(script.exit == 0)
            for words in Self.names(Pipectl.self) {
                for word in words { #expect(script.text.contains(word), "\(word)") }
            }
        }
    }
}
