import HTTPCaching
import PipelineSupport

/// The tags by which many sources are purged together, here and in caches in front: those that an original's own fields
/// name, and one of the source itself.
package enum SourceTags {
    /// `src-` and the first 16 hexadecimal digits of the SHA-256 of the source's name.
    package static func own(_ source: String) -> String { ownPrefix + sha256Hex(Array(source.utf8)).prefix(16) }

    private static let ownPrefix = "src-"
    private static let ownLength = ownPrefix.utf8.count + 16

    static func isOwn(_ tag: String) -> Bool { tag.hasPrefix(ownPrefix) && tag.utf8.count == ownLength }

    /// The tags that fields name: `Cache-Tag` separates them by commas, `Surrogate-Key` by spaces. Each once, in order.
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
