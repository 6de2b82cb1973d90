import PipelineCaching
import PipelineFetching

/// Selects what to remove from the caches with `ImagePipeline.purge(_:mode:)`: sources by name, prefix or host, or by
/// their tags, masks or overlays.
///
/// ```swift
/// let pipeline = try ImagePipeline()
/// try await pipeline.purge(.source("https://example.org/photo.jpg"))
/// try await pipeline.purge(.prefix("https://example.org/products/17/"))
/// let result = try await pipeline.purge(.tags(["product-17"]), mode: .soft)
/// print(result.records, "records are now stale")
/// ```
public struct PurgeSelection: Sendable, Hashable {
    /// A source, identified in the same way as in a request.
    struct RequestedSource: Sendable, Hashable {
        var source: ImageSource
        var id: String?
    }

    var asked: [RequestedSource] = []
    /// Names of stored sources.
    var names: Set<String> = []
    var prefixes: [String] = []
    /// Prefixes of sources that are written in the same way as in a request. Only the pipeline can relate them to its
    /// providers.
    var askedPrefixes: [String] = []
    var tags: Set<String> = []
    var masks: Set<String> = []
    var overlays: Set<String> = []

    /// Combines several selections.
    ///
    /// - Parameters:
    ///   - names: stored names, as for `name(_:)`.
    ///   - prefixes: prefixes of stored names.
    package init(
        names: Set<String> = [], prefixes: [String] = [], tags: Set<String> = [], masks: Set<String> = [],
        overlays: Set<String> = []
    ) {
        (self.names, self.prefixes, self.tags) = (names, prefixes, tags)
        (self.masks, self.overlays) = (masks, overlays)
    }

    /// Selects a source given as a string: a URL, an original of a provider (`photos:42`) or a path, as in
    /// `image(for:recipe:)`.
    public static func source(_ text: String) -> PurgeSelection { source(ImageSource(text)) }

    /// Selects a source.
    ///
    /// - Parameters:
    ///   - source: the source, written in the same way as in requests.
    ///   - sourceID: the `ImageRequest.sourceID` of the requests, or nil, the default, if they have none.
    public static func source(_ source: ImageSource, sourceID: String? = nil) -> PurgeSelection {
        var selection = PurgeSelection()
        selection.asked = [RequestedSource(source: source, id: sourceID)]
        return selection
    }

    /// Selects a source by its stored name (`OriginalRecord.source`): a normalized URL, `file:` and an absolute path,
    /// `id:` and a `sourceID`, or `bytes:` and the SHA-256 of the supplied bytes.
    public static func name(_ name: String) -> PurgeSelection { PurgeSelection(names: [name]) }

    /// Selects all sources with stored names that begin with `text`.
    ///
    /// An http or https URL is normalized and then compared as a string: `/img` also covers `/img.jpg` and `/imgs/`,
    /// and `https://a.example` covers the complete origin. Text that begins with `id:`, `bytes:` or `file:` is used
    /// unchanged, and so is a prefix of a provider's originals, such as `photos:`. Any other text is a path, resolved
    /// against the working directory.
    ///
    /// Throws `invalidSource` if the text is empty, an invalid URL, or a path that ends in a dot segment.
    public static func prefix(_ text: String) throws(PipelineError) -> PurgeSelection {
        _ = try SourceSelection(prefix: text)
        var selection = PurgeSelection()
        selection.askedPrefixes = [text]
        return selection
    }

    /// Selects all http and https URLs with exactly this host, on any port. `a.example` does not cover `www.a.example`.
    ///
    /// Throws `invalidSource` if the text is not just a host.
    public static func host(_ text: String) throws(PipelineError) -> PurgeSelection {
        PurgeSelection(prefixes: try SourceSelection(host: text).prefixes)
    }

    /// Selects every source that has one of these tags. Tags come from the `Cache-Tag` and `Surrogate-Key` fields of
    /// stored responses. In addition, every source has the tag `src-` followed by the first 16 hexadecimal digits of
    /// the SHA-256 of its stored name.
    ///
    /// The purge searches all records in the cache folder and in memory. A source without a record, for example after
    /// its eviction, is found only by its own tag. Work in flight when the purge starts is not stored, regardless of
    /// its source.
    public static func tags(_ tags: Set<String>) -> PurgeSelection { PurgeSelection(tags: tags) }

    /// Selects all variants of every original that has a stored variant with one of these masks. Originals are kept
    /// with every mode.
    ///
    /// Variants of an earlier version of a mask are never returned, so a purge is needed only if they must not be
    /// stored at all. The purge searches all variants in the cache folder and in memory. Work in flight when the purge
    /// starts is not stored.
    public static func masks(_ names: Set<String>) -> PurgeSelection { PurgeSelection(masks: names) }

    /// Selects variants by overlay. In all other respects, the method behaves like `masks(_:)`.
    public static func overlays(_ names: Set<String>) -> PurgeSelection { PurgeSelection(overlays: names) }
}
