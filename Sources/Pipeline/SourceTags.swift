import HTTPCaching
public import PipelineCaching
import PipelineSupport
import Variants

/// The tags by which many sources are purged together, here and in caches in front: those that an original's own fields
/// name, and one of the source itself.
package enum SourceTags {
    /// `src-` and the first 16 hexadecimal digits of the SHA-256 of the source's name.
    package static func own(_ source: String) -> String { ownPrefix + sha256Hex(Array(source.utf8)).prefix(16) }

    private static let ownPrefix = "src-"
    private static let ownLength = ownPrefix.utf8.count + 16

    /// Whether a tag is one of `own(_:)`.
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

extension ImagePipeline {
    /// Purges every source of which a stored response has one of these tags, in its `Cache-Tag` or `Surrogate-Key`
    /// fields, and those with a tag `src-` and the first 16 hexadecimal digits of the SHA-256 of their name.
    ///
    /// Searches all records of the cache folder and of memory; a source whose record has been evicted is found by its
    /// own tag only. Work in flight when it starts is not stored, whatever its source.
    public func purge(tags: Set<String>, mode: PurgeMode = .hard) async throws(PipelineError) -> PurgeResult {
        let own = tags.filter(SourceTags.isOwn)
        var result = PurgeResult()
        do throws(StoreError) {
            if !own.isEmpty {
                result.add(try await tiers.purge(mode: mode) { own.contains(SourceTags.own($0)) })
            }
            if !tags.isEmpty {
                result.add(
                    try await tiers.purge(recordsContaining: tags.sorted(), mode: mode) { record in
                        SourceTags.named(in: record.response.fields).contains(where: tags.contains)
                    })
            }
        } catch {
            throw PipelineError(error)
        }
        return result
    }
}

extension ImagePipeline {
    /// Removes the variants of every original of which a stored variant uses one of these masks or overlays; originals
    /// stay. A changed mask never meets an old variant, so this is for masks whose variants should not be stored at all.
    ///
    /// Searches all variants of the cache folder and of memory. Work in flight when it starts is not stored.
    public func purge(masks: Set<String>, overlays: Set<String> = []) async throws(PipelineError) -> PurgeResult {
        let names = masks.union(overlays)
        do throws(StoreError) {
            return try await tiers.purge { text in
                guard names.contains(where: { text.contains($0) }) else { return false }
                // A recipe that does not parse may use one: rendering it again does no harm.
                guard let recipe = try? Recipe(text) else { return true }
                return recipe.maskNames.contains(where: masks.contains)
                    || recipe.overlayNames.contains(where: overlays.contains)
            }
        } catch {
            throw PipelineError(error)
        }
    }
}
