import HTTPCaching
import Pipeline
import PipelineCaching

/// The fields in which variants carry tags, by which caches in front purge them: the setting `tags`.
package enum SentTags: String, Sendable, CaseIterable {
    case off
    case cacheTag = "cache-tag"
    case surrogateKey = "surrogate-key"
    case both

    /// `Cache-Tag`, separated by commas, and `Surrogate-Key`, by spaces: the tags that the original's fields name, and
    /// that of its source.
    func fields(of record: OriginalRecord) -> [HeaderField] {
        if self == .off { return [] }
        let tags = SourceTags.named(in: record.response.fields) + [SourceTags.own(record.source)]
        var fields: [HeaderField] = []
        if self != .surrogateKey {
            fields.append(HeaderField("Cache-Tag", tags.filter { !$0.contains(",") }.joined(separator: ",")))
        }
        if self != .cacheTag {
            fields.append(HeaderField("Surrogate-Key", tags.filter { !$0.contains(" ") }.joined(separator: " ")))
        }
        return fields
    }
}
