import ArgumentParser
import Variants

/// Suggests a command line in place of a command line that the argument parser rejects.
enum UsageHint {
    /// Options of other tools: the commands, the option names, what to write instead, and the default of `VALUE` if the
    /// option has no value.
    private static let options: [(commands: [String], names: [String], meant: String, usual: String)] = [
        (["serve"], ["--port", "-p"], "use `--listen 127.0.0.1:VALUE`", "8080"),
        (["serve"], ["--host", "--bind", "--address"], "use `--listen VALUE:8080`", "127.0.0.1"),
        (["serve"], ["--dir", "--folder", "--root"], "use `pipectl serve VALUE`", "FOLDER"),
        (
            ["cache clear"], ["--all", "-a", "--force", "-f", "--yes", "-y"],
            "to remove everything, use `pipectl cache clear`", ""
        ),
        (["batch"], ["--recursive"], "folders are always read recursively", ""),
        (["batch"], ["--sizes", "--widths"], "use `--srcset VALUE`", "320,640,1280"),
        (["batch"], ["--delete"], "to remove outputs whose sources no longer exist, use `--prune`", ""),
        (making, ["--size", "--resize", "--width", "--thumbnail"], "use `-r thumbnail:VALUE`", "300"),
        (making, ["--quality"], "the quality follows the output, as in `-r thumbnail:300,webp:VALUE`", "80"),
    ]

    private static let making = ["get", "batch", "explain"]

    /// Names that other tools use for commands.
    private static let commands: [String: String] = [
        "server": "serve", "start": "serve", "run": "serve", "listen": "serve", "identify": "info", "inspect": "info",
        "metadata": "info", "show": "info", "config": "settings", "ls": "cache list", "list": "cache list",
        "stats": "cache stats", "clear": "cache clear", "purge": "cache purge", "status": "health",
        "check": "doctor", "version": "--version",
    ]

    /// Words that other tools use for resizing a picture.
    private static let rendering = ["resize", "convert", "thumbnail", "thumb", "scale", "crop", "shrink", "render"]

    /// - Parameters:
    ///   - message: The parser's message.
    ///   - isHelp: Whether the message is the help of a command.
    /// - Returns: nil if the parser's message is good enough.
    static func text(for arguments: [String], _ message: String, isHelp: Bool) -> String? {
        if isHelp {
            return misreadAsHelp(arguments).map { word in
                let isRecipe = (try? Recipe(String(word.dropFirst()))) != nil
                let hint = isRecipe ? "to give a recipe, use `-r \(word.dropFirst())`" : "see --help"
                return "`\(word)` is not an option; \(hint)"
            }
        }
        let (path, subcommands, rest) = command(of: arguments)
        let quoted = message.split(separator: "'", omittingEmptySubsequences: false)
        guard let line = quoted.first, quoted.count > 2 else { return nil }
        // If the command is unknown, its options are also unknown.
        let isCommandUnknown = !subcommands.isEmpty && rest.first?.hasPrefix("-") == false
        if line == "Error: Unknown option ", !isCommandUnknown {
            return meaning(of: String(quoted[1]), of: path, arguments).map { "unknown option `\(quoted[1])`; " + $0 }
        }
        let isUnexpected = line.hasSuffix("nexpected argument ") || line.hasSuffix(" unexpected arguments: ")
        guard isUnexpected || isCommandUnknown else { return nil }
        guard !subcommands.isEmpty, let word = rest.first else {
            guard (try? Recipe(String(quoted[1]))) != nil else { return nil }
            return "unexpected argument `\(quoted[1])`; to give a recipe, use `-r \(quoted[1])`"
        }
        let meant = meaning(of: word, below: path, subcommands, rest.dropFirst().filter { !$0.hasPrefix("-") })
        return "`\(word)` is not a command" + (meant.map { "; did you mean `pipectl \($0)`?" } ?? "; see --help")
    }

    /// Returns the command that the arguments name, its subcommands, and the remaining arguments.
    private static func command(of arguments: [String]) -> (path: String, subcommands: [String], rest: [String]) {
        var subcommands = Pipectl.configuration.subcommands.map { $0.configuration }
        var path: [String] = []
        for word in arguments {
            guard let next = subcommands.first(where: { $0.commandName == word }) else { break }
            subcommands = next.subcommands.map { $0.configuration }
            path.append(word)
        }
        return (
            path.joined(separator: " "), subcommands.compactMap { $0.commandName },
            Array(arguments.dropFirst(path.count))
        )
    }

    private static func meaning(of option: String, of path: String, _ arguments: [String]) -> String? {
        guard let row = options.first(where: { $0.commands.contains(path) && $0.names.contains(option) }) else {
            return nil
        }
        var value: String?
        if let at = arguments.firstIndex(where: { $0 == option || $0.hasPrefix(option + "=") }) {
            let parts = arguments[at].split(separator: "=", maxSplits: 1)
            let next = arguments[(at + 1)...].first.flatMap { $0.hasPrefix("-") ? nil : $0 }
            value = parts.count > 1 ? String(parts[1]) : next
        }
        return row.meant.replacing("VALUE", with: value ?? row.usual)
    }

    /// Returns the command line, without `pipectl`, that an unknown word and the following words probably mean.
    private static func meaning(
        of word: String, below path: String, _ subcommands: [String], _ others: [String]
    ) -> String? {
        if path == "sign" {
            // The word may be a recipe or a source.
            let isRecipe = !others.isEmpty || (try? Recipe(word)) != nil
            return isRecipe ? "sign variant \(word) \(others.first ?? "SOURCE")" : "sign original \(word)"
        }
        let render = "-r thumbnail:300 -o small.jpg"
        if path.isEmpty, rendering.contains(word) {
            return "get \(others.first { Int($0) == nil } ?? "SOURCE") \(render)"
        }
        let known = path.isEmpty ? commands[word] : nil
        if let meant = known ?? NearestName.of(word, in: subcommands) {
            return ((path.isEmpty ? [] : [path]) + [meant] + others).joined(separator: " ")
        }
        guard path.isEmpty else { return nil }
        guard word.firstRange(of: "://") == nil else { return "get \(word) \(render)" }
        switch InputKind.of(path: word) {
        case .folder: return "serve \(word)"
        case .picture: return "get \(word) \(render)"
        default: return nil
        }
    }

    /// Returns a word such as `-thumbnail:300`, which the parser interprets as the flags `-t`, `-h` and so on. Returns
    /// nil if the user requested help.
    private static func misreadAsHelp(_ arguments: [String]) -> String? {
        // Arguments with three dashes come from the shell, which requests completions.
        guard arguments.first != "help", arguments.first?.hasPrefix("---") != true,
            !arguments.contains(where: ["-h", "--help"].contains)
        else { return nil }
        return arguments.first { word in
            word.hasPrefix("-") && !word.hasPrefix("--") && word.contains("h")
                && !word.dropFirst().allSatisfy("hqv".contains)
        }
    }
}
