import ArgumentParser
import Variants

/// What a shell offers while a word is typed, beyond commands and options.
enum Completions {
    /// What follows the parser's script for bash, which would break a word at its colons, and end it behind a step.
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

    /// In zsh, what follows a bare colon would be a description.
    fileprivate static func quoted(_ words: [String]) -> [String] {
        CompletionShell.requesting == .zsh ? words.map { $0.replacing(":", with: "\\:") } : words
    }

    /// The recipe so far with each step and output in place of its last step.
    static func recipes(_ text: String) -> [String] {
        let written = text.lastIndex(of: ",").map { text[...$0] } ?? ""
        return Catalogue.entries.map { written + $0.token }.filter { $0.hasPrefix(text) }
    }

    /// The names of settings, or the values of one that takes certain words.
    static func settings(_ text: String) -> [String] {
        let words: [String]
        if let equals = text.firstIndex(of: "="), let setting = SettingCatalogue.byKey[String(text[..<equals])] {
            words = setting.kind.words.map { setting.key + "=" + $0 }
        } else {
            words = SettingCatalogue.all.map { $0.key + "=" }
        }
        return words.filter { $0.hasPrefix(text) }
    }
}

extension CompletionKind {
    static var recipe: CompletionKind { .custom { _, _, text in Completions.quoted(Completions.recipes(text)) } }
    static var setting: CompletionKind { .custom { _, _, text in Completions.quoted(Completions.settings(text)) } }
}

extension SettingKind {
    /// The words that it takes; empty if it takes anything else.
    fileprivate var words: [String] {
        switch self {
        case .bool: ["true", "false"]
        case .choice(let words): words
        default: []
        }
    }
}
