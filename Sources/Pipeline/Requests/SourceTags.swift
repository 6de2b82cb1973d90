import HTTPCaching
import PipelineSupport

/// The tags for purging many sources at once, in this cache and in caches in front of it. A source has the tags in the
/// fields of its original, and one tag derived from its name.
package enum SourceTags {
    /// Returns the tag derived from the name of a source: `src-` and the first 16 hexadecimal digits of the SHA-256 of
    /// the name.
    package static func own(_ source: String) -> String { ownPrefix + sha256Hex(Array(source.utf8)).prefix(16) }

    private static let ownPrefix = "src-"
    private static let ownLength = ownPrefix.utf8.count + 16

    static func isOwn(_ tag: String) -> Bool { tag.hasPrefix(ownPrefix) && tag.utf8.count == ownLength }

    /// Returns the tags in header fields, each once and in order. `Cache-Tag` separates tags with commas, and
    /// `Surrogate-Key` separates them with spaces.
    package static func named(in fields: [HeaderField]) -> [String] {
        var (tags, seen): ([String], Set<String>) = ([], [])
        for field in fields {
            let isList = FieldLines.isSameName(field.name, "cache-tag")
            guard isList || FieldLines.isSameName(field.name, "surrogate-key") else { continue }
            for part in field.value.split(whereSeparator: { isList ? $0 == "," : $0 == " " || $0 == "\t" }) {
                let isSpace = { (character: Character) in character == " " || character == "\t" }
                var tag = part.drop(while: isSpace)
                while let last = tag.last, isSpace(last) { tag.removeLast() }
                if !tag.isEmpty, seen.insert(String(tag)).inserted { tags.append(String(tag)) }
            }
        }
        return tags
    }
}
