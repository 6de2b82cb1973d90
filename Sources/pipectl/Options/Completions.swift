import ArgumentParser
import Variants

/// The shell completions of words other than commands and options.
enum Completions {
    /// Code appended to the parser's script for bash. Otherwise, bash would split a word at its colons and end the word
    /// after a step.
    static let bash = """
        COMP_WORDBREAKS="${COMP_WORDBREAKS//[:=]/}"
        __pipectl_whole_words() {
            _pipectl "${@}"
            case "${COMP_WORDS[COMP_CWORD - 1]}" in
            -r | --recipe | recipe | --set) compopt +o filenames -o nospace ;;
            esac
        }
        complete -o filenames -F __pipectl_whole_words pipectl
        """

    /// Escapes colons for zsh, which would interpret the part after a colon as a description.
    fileprivate static func quoted(_ words: [String]) -> [String] {
        CompletionShell.requesting == .zsh ? words.map { $0.replacing(":", with: "\\:") } : words
    }

    /// Returns the recipe so far, with its last step replaced with each matching step and output.
    static func recipes(_ text: String) -> [String] {
        let written = text.lastIndex(of: ",").map { text[...$0] } ?? ""
        return Catalog.entries.map { written + $0.token }.filter { $0.hasPrefix(text) }
    }

    /// Returns the names of settings, or the values of a setting that accepts only certain words.
    static func settings(_ text: String) -> [String] {
        let words: [String]
        if let equals = text.firstIndex(of: "="), let setting = SettingCatalog.byKey[String(text[..<equals])] {
            words = setting.kind.words.map { setting.key + "=" + $0 }
        } else {
            words = SettingCatalog.all.map { $0.key + "=" }
        }
        return words.filter { $0.hasPrefix(text) }
    }
}

extension CompletionKind {
    static var recipe: CompletionKind { .custom { _, _, text in Completions.quoted(Completions.recipes(text)) } }
    static var setting: CompletionKind { .custom { _, _, text in Completions.quoted(Completions.settings(text)) } }
}

extension SettingKind {
    /// The words that this kind accepts. Empty if the kind accepts other values.
    fileprivate var words: [String] {
        switch self {
        case .bool: ["true", "false"]
        case .choice(let words): words
        default: []
        }
    }
}
