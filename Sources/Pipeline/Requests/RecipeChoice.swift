package import HTTPCaching
package import Variants

/// A recipe that depends on the original, for example a crop in percent. The render stage settles it to a plain recipe
/// before it makes the key, so that all requests for the same picture share one variant.
package struct RecipeChoice: Sendable, Hashable {
    /// Text that identifies the choice. Choices with the same text settle to the same recipes.
    package var text: String
    /// The names of the overlays that the recipe may use.
    package var overlayNames: [String]
    /// Whether an SVG is sent as SVG in its own size, unless the configuration draws or refuses SVG.
    package var keepsVectors: Bool
    /// The maximum size of the original in bytes, in addition to the configuration's limit. Nil means none.
    package var byteLimit: Int?
    /// Returns the recipe for an original with this header. Returns nil if the response is the original itself. Throws
    /// `invalidRecipe` if the choice makes no sense for the original.
    package var settle: @Sendable (ImageHeader) throws(PipelineError) -> Recipe?

    package init(
        _ text: String, overlayNames: [String] = [], keepsVectors: Bool = false, byteLimit: Int? = nil,
        settle: @escaping @Sendable (ImageHeader) throws(PipelineError) -> Recipe?
    ) {
        (self.text, self.overlayNames, self.keepsVectors) = (text, overlayNames, keepsVectors)
        (self.byteLimit, self.settle) = (byteLimit, settle)
    }

    package static func == (left: Self, right: Self) -> Bool { left.text == right.text }
    package func hash(into hasher: inout Hasher) { hasher.combine(text) }
}

extension AdmittedRequest {
    /// Returns the recipe for an original with this header, or nil if the response is the original itself.
    func recipe(for header: ImageHeader, _ svg: SVGHandling) throws(PipelineError) -> Recipe? {
        guard let choice = self.request.choice else { return self.request.recipe }
        if choice.keepsVectors, header.format == .svg, svg == .pass { return Recipe().original() }
        return try choice.settle(header)
    }
}

extension RenderStage {
    /// Returns the recipe for an original, or nil if the response is the original itself. A choice requires the header
    /// of the original.
    func recipe(of original: Original, _ admitted: AdmittedRequest) throws(PipelineError) -> Recipe? {
        guard admitted.isForVariant, let choice = admitted.request.choice else { return admitted.request.recipe }
        if let limit = choice.byteLimit, original.record.length > limit {
            throw PipelineError(
                .overLimit,
                "\(admitted.displayName): the original has \(original.record.length) bytes, more than the \(limit) that the URL allows"
            )
        }
        return try admitted.recipe(for: header(of: original, admitted), limits.svg)
    }
}

extension ImageRequest {
    /// Returns how to use a stored response according to `minFreshness` and `staleWhileRevalidate`. Returns nil if they
    /// do not apply, and HTTP's rules decide.
    func verdict(
        on stored: StoredResponse, now: Double, _ caching: CachingConfiguration
    ) -> CacheFinding.Verdict? {
        guard minFreshness != nil || staleWhileRevalidate != nil, mayAssumeFreshness(of: stored) else { return nil }
        let fresh = freshness(of: stored, now: now, caching)
        if fresh > 0 { return minFreshness == nil ? nil : .reuse(isStale: false) }
        return fresh > -(staleWhileRevalidate?.inSeconds ?? 0) ? .reuseAndValidate : nil
    }

    /// Returns the remaining freshness of a stored response in seconds, at least what is left of `minFreshness`.
    package func freshness(of stored: StoredResponse, now: Double, _ caching: CachingConfiguration) -> Double {
        let remaining = Freshness.remaining(of: stored, now: now, configuration: caching)
        guard let minFreshness, mayAssumeFreshness(of: stored) else { return remaining }
        return max(remaining, minFreshness.inSeconds - (now - stored.responseTime))
    }

    /// Whether `minFreshness` and `staleWhileRevalidate` apply to a stored response.
    package func mayAssumeFreshness(of stored: StoredResponse) -> Bool {
        let control = CacheControl(fields: stored.fields)
        return stored.isOK && !stored.isSoftPurged && !stored.isInDoubt && !control.has("no-store")
            && !control.has("private")
    }
}
