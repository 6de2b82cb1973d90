@testable import HTTPCaching
import TestSupport

@testable import Pipeline

extension PipelineFuzzTests {
    /// Lists of entity tags: the tags found, written as a list, are the same tags; each equals itself.
    static let entityTagTarget = FuzzTarget(
        "entity-tag", words: ["W/", "\"", "\"\"", "\"a\"", "W/\"b\"", ",", ", ", "*", "\\", "w/", " ", "\t", "\u{7F}"]
    ) { bytes in
        let tags = EntityTag.list(bytes.fuzzText)
        for tag in tags where !tag.matchesWeakly(tag) || tag.matchesStrongly(tag) == tag.isWeak {
            return "`\(tag)` does not equal itself"
        }
        let again = EntityTag.list(tags.map(\.description).joined(separator: ", "))
        return again.map(\.description) == tags.map(\.description) ? nil : "another list when written and read again"
    }
}
