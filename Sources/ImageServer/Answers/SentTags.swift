import HTTPCaching
import Pipeline
import PipelineCaching

/// Specifies the header fields that carry purge tags on variants, by which downstream caches purge them:
/// `ServerConfiguration.tags`, or the `tags` setting.
public enum SentTags: String, Sendable, CaseIterable {
    case off
    /// `Cache-Tag`, with commas between tags.
    case cacheTag = "cache-tag"
    /// `Surrogate-Key`, with spaces between tags.
    case surrogateKey = "surrogate-key"
    /// Both fields.
    case both

    /// Returns the fields with the tags of the original's response and the tag of its source.
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
