import ArgumentParser
import TestSupport
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
                // A wrapped example continues at the left margin.
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

        /// The work of bash at a tab after the words.
        private static let completing = """
            source <("$0" --generate-completion-script bash)
            COMP_WORDS=("$0" "$@"); COMP_CWORD=$#; COMP_LINE="${COMP_WORDS[*]}"; COMP_POINT=${#COMP_LINE}
            function=$(complete -p pipectl | sed 's/.*-F \\([^ ]*\\).*/\\1/')
            "$function" "$0" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
            printf '%s\\n' "${COMPREPLY[@]}"
            """

        @Test(arguments: [
            (["get", "-r", "thumb"], "thumbnail"), (["batch", "x", "-r", "circle,web"], "circle,webp"),
            (["recipe", "gray"], "grayscale"), (["get", "--set", "fetch.slo"], "fetch.slots="),
            (["get", "--set", "render.quality=b"], "render.quality=balanced"), (["get", "holi"], "holiday.jpg"),
            (["batch", "holi"], "holiday.jpg"), (["info", "--config", "pip"], "pipectl.yaml"),
            (["batch", "a.jpg", "-o", "hol"], "holidays"), (["get", "--policy", "cacheO"], "cacheOnly"),
        ])
        func `bash completes steps, settings and file names`(words: [String], expected: String) async throws {
            site.folder.write("x", to: "holiday.jpg")
            site.folder.write("x", to: "pipectl.yaml")
            site.folder.write("x", to: "holidays/x")
            let child = try ChildProgram(
                ["-c", Self.completing, ChildProgram.path] + words, program: "bash", folder: site.folder.path)
            let ended = await child.end
            #expect(ended.lines.contains(Substring(expected)), "\(ended.text) \(ended.errors)")
        }

        @Test(arguments: [
            ("recipe thumbnail:300,gray\t", "thumbnail:300x300,grayscale\n"),
            ("settings --set fetch.slo\t7", "fetch.slots = 7 "),
        ])
        func `in bash a tab completes a step behind a colon, and leaves the word open`(
            keys: String, expected: String
        ) async throws {
            // Readline takes what it reads for keys, from a file too.
            let program = "'\(ChildProgram.path)'"
            site.folder.write(
                "source <(\(program) --generate-completion-script bash)\npipectl() { \(program) \"$@\"; }\n"
                    + "pipectl \(keys)\nexit\n", to: "keys")
            let child = try ChildProgram(
                ["--norc", "-i"], program: "bash", input: site.folder("keys"), folder: site.folder.path)
            let ended = await child.end
            #expect(ended.text.contains(expected), "\(ended.text) \(ended.errors)")
        }

        @Test func `zsh gets its words with colons escaped`() async throws {
            let words = ["pipectl", "get", "-r", "thumbnail:300,gray"]
            let asked = ["---completion", "get", "--", "--recipe", "3", "18"] + words
            let child = try ChildProgram(asked, folder: site.folder.path, environment: ["SAP_SHELL=zsh"])
            #expect(await child.end.text.contains("thumbnail\\:300,grayscale\n"))
        }
    }
}
