import PipelineFetching
public import HTTPCaching
package import PipelineCaching
package import Variants

/// Describes how the pipeline would answer a request, and why, as far as this is known without contacting an origin.
///
/// ```swift
/// let pipeline = try ImagePipeline()
/// let request = ImageRequest(.url("https://example.org/photo.jpg"), recipe: .thumbnail(300))
/// let explanation = try await pipeline.explain(request)
/// print(explanation.answer, "because", explanation.reason)
/// ```
public struct Explanation: Sendable {
    /// A stored response for the source, and how it was evaluated.
    package struct Stored: Sendable {
        /// The status, fields, times and digest of the response.
        package var record: OriginalRecord
        /// Whether the request selects this response. A request selects at most one response.
        package var isSelected: Bool
        /// The reason why the response is selected or not selected.
        package var reason: String
        /// The tier that holds the body, or nil if the body has been evicted.
        package var body: ImageResponse.Outcome?
        /// The freshness lifetime, and the rule that determines it.
        package var lifetime: FreshnessLifetime
        /// The field lines that the lifetime was computed from, as received.
        package var basis: [HeaderField]
        /// The limit that earlier redirects set on the lifetime, in seconds, or nil if there is no limit.
        package var lifetimeLimit: Double?
        /// The components of the age calculation.
        package var age: AgeArithmetic
        /// The remaining freshness in seconds, which is negative if the response is stale.
        package var remaining: Double
    }

    /// The step that follows the look-up.
    package enum Decision: String, Sendable {
        /// Use the stored response without contacting the origin.
        case reuse
        /// Use the stored response although it is stale.
        case reuseStale
        /// Use the stored response although it is stale, and validate it in the background.
        case reuseAndValidate
        /// Validate the stored response with the origin.
        case validate
        /// Request the complete response from the origin.
        case fetch
        /// Check the file, and read it if it has changed.
        case readFile
        /// Fail, because no stored response can be used and the policy forbids contacting the origin.
        case refuse
    }

    /// The variant that the request would return, and whether it is stored.
    package struct VariantFinding: Sendable {
        /// The variant key, or nil if the key depends on the bytes of the original.
        package var key: String?
        /// The recipe. A choice of recipes is settled if the original is stored.
        package var recipe: Recipe?
        /// The output with all options written out, or nil if `key` is nil.
        package var output: ResolvedOutput?
        /// The reason why the pixels would be encoded although the recipe says `transcode`. Otherwise nil.
        package var refusedTranscoding: String?
        /// The stored entry, or nil if the variant is not stored.
        package var entry: VariantEntry?
        /// The tier that holds the variant, or nil if the variant would be rendered.
        package var tier: ImageResponse.Outcome?
    }

    /// The name that records of the source are stored under: the normalized URL, `id:` and the source ID, `file:` and
    /// the path, or `bytes:` and the digest.
    public var source: String
    /// The policy for using stored responses.
    public var policy: CachePolicy
    /// The time that ages were computed for, in Unix seconds.
    public var now: Double
    /// The stored responses for the source.
    package var stored: [Stored]
    /// The next step of the request.
    package var decision: Decision
    /// The reason for the decision, as a sentence.
    public var reason: String
    /// The request that would be sent: the request line, then the fields. Connection-specific fields are omitted. Empty
    /// if no request would be sent.
    public var request: [HeaderField]
    /// The URL that would be requested, without credentials, or nil if no request would be sent.
    public var url: String?
    /// The variant, or nil if the request has no recipe.
    package var variant: VariantFinding?
    /// A description of the expected response.
    public var answer: String
    /// The error that the request would fail with, or nil if no such error is known yet.
    public var refusal: PipelineError?
}

extension ImagePipeline {
    /// Explains how `respond(to:)` would answer a request now. Reads the caches as a request does, but contacts no
    /// origin and stores nothing.
    ///
    /// Throws `invalidSource`, `sourceRefused` and `maskUnavailable` in the same cases as `respond(to:)`. Any other
    /// error that can be predicted without contacting an origin or rendering is returned in `refusal`.
    public func explain(_ request: ImageRequest) async throws(PipelineError) -> Explanation {
        let admitted = try await observe.stage(.admit, await admit(request))
        let finding = try await observe.stage(.lookUp, await lookUp(admitted, isForReport: true))
        let now = now()
        var explanation = Explanation(
            source: admitted.source, policy: admitted.policy, now: now, stored: [], decision: .fetch, reason: "",
            request: [], url: nil, variant: nil, answer: "")
        for record in finding.records {
            explanation.stored.append(await explained(record, finding, admitted, now))
        }
        explanation.decision = fetch.decision(finding, admitted)
        explanation.reason = Self.reason(
            explanation.decision, finding, admitted, remaining: explanation.stored.first(where: \.isSelected)?.remaining
        )
        if [.validate, .fetch].contains(explanation.decision) {
            explanation.url = admitted.url.redacted
            explanation.request = fetch.requestFields(for: finding, admitted)
        }
        if admitted.isForVariant { explanation.variant = await variant(finding, admitted) }
        explanation.answer = Self.answer(explanation)
        do throws(PipelineError) {
            if explanation.decision == .refuse { throw FetchStage.unavailable(admitted) }
            try await refuseWhatIsKnown(
                finding, admitted, asks: explanation.url != nil, isStored: explanation.variant?.tier != nil)
        } catch {
            explanation.refusal = error
            explanation.answer = "an error, `\(error.code)`"
        }
        return explanation
    }

    private func explained(
        _ record: OriginalRecord, _ finding: CacheFinding, _ admitted: AdmittedRequest, _ now: Double
    ) async -> Explanation.Stored {
        let stored = record.response
        let lifetime = Freshness.lifetime(of: stored, configuration: caching)
        let isSelected = record == finding.record
        return Explanation.Stored(
            record: record, isSelected: isSelected,
            reason: isSelected
                ? Self.selectionReason(record, among: finding.records) : Self.rejection(record, finding, admitted),
            body: await tiers.tierOfOriginal(record.digest).map { ImageResponse.Outcome($0) }, lifetime: lifetime,
            basis: Self.basis(of: lifetime.basis, in: stored, caching), lifetimeLimit: stored.lifetimeLimit,
            age: Age.arithmetic(of: stored, now: now),
            remaining: Freshness.remaining(of: stored, now: now, configuration: caching))
    }

    private static func selectionReason(_ record: OriginalRecord, among all: [OriginalRecord]) -> String {
        let names = Variation.names(in: record.response.fields) ?? []
        let match =
            names.isEmpty
            ? "the response has no Vary" : "the request has the same \(names.joined(separator: ", ")) (Vary)"
        return all.count > 1 ? match + ", and no other matching response is newer" : match
    }

    private static func rejection(
        _ record: OriginalRecord, _ finding: CacheFinding, _ admitted: AdmittedRequest
    ) -> String {
        if finding.isLocal { return "an earlier version of the file" }
        guard let names = Variation.names(in: record.response.fields) else { return "Vary: * matches no request" }
        let fields = admitted.request.fields
        let differing = names.filter { name in
            Variation.selectingFields(of: [HeaderField("Vary", name)], requestFields: fields)?[name]
                != record.response.selecting[name]
        }
        if differing.isEmpty { return "a newer response has the same selecting fields" }
        return "the request has different values of \(differing.joined(separator: ", ")) (Vary)"
    }

    /// Returns the field lines that a lifetime was computed from.
    private static func basis(
        of basis: FreshnessLifetime.Basis, in stored: StoredResponse, _ caching: CachingConfiguration
    ) -> [HeaderField] {
        let targeted = Set(caching.targetedFields.map { $0.lowercased() })
        let names: Set<String>
        switch basis {
        case .expires: names = ["expires", "date"]
        case .heuristic: names = ["last-modified", "date"]
        case .sharedMaxAge, .maxAge:
            let present = stored.fields.filter { targeted.contains($0.name.lowercased()) }
            names = present.isEmpty ? ["cache-control"] : targeted
        default: names = []
        }
        return stored.fields.filter { names.contains($0.name.lowercased()) }
    }

    private static func reason(
        _ decision: Explanation.Decision, _ finding: CacheFinding, _ admitted: AdmittedRequest, remaining: Double?
    ) -> String {
        let policy = admitted.policy
        let reason: String
        switch finding.verdict {
        case .given: return "nothing is stored for the source"
        case .local:
            return finding.record == nil
                ? "nothing is stored for the source"
                : "a file is fresh while its device, inode, size and times do not change"
        case .reuse(let isStale):
            if !isStale, let remaining, remaining <= 0 {
                return "the response is within the minimum freshness of the request"
            }
            let isUnusable = finding.record?.isUnusable == true && policy != .cacheOnly
            return
                (isStale
                ? "the response is stale, but the policy `\(policy.rawValue)` accepts it" : "the response is fresh")
                + (isUnusable ? ", but it is not an image, so an image is requested again after `errorMaxAge`" : "")
        case .reuseAndValidate: return "the response is stale, but within its stale-while-revalidate period"
        case .unavailable: return "no stored response can be used"
        case .validate: reason = staleness(policy, remaining, hasValidator: finding.hasValidator)
        case .missing:
            reason =
                finding.records.isEmpty
                ? "nothing is stored for the source"
                : "the stored responses are for requests with different header fields"
        }
        return decision == .refuse ? reason + "; the policy `cacheOnly` forbids contacting the origin" : reason
    }

    private static func staleness(_ policy: CachePolicy, _ remaining: Double?, hasValidator: Bool) -> String {
        var reason: String
        if policy == .reload || policy == .revalidate {
            reason = "the policy `\(policy.rawValue)` always contacts the origin"
        } else if let remaining, remaining > 0 {
            reason =
                "the response is within its lifetime, but the origin requires validation, or the clock was set back"
        } else {
            reason = "the response is stale"
        }
        if policy == .reload { return reason }
        return reason + (hasValidator ? "" : ", and it has no validator for a conditional request")
    }

    private func variant(
        _ finding: CacheFinding, _ admitted: AdmittedRequest
    ) async -> Explanation.VariantFinding {
        var result = Explanation.VariantFinding()
        guard let record = finding.record, record.header != nil else { return result }
        let original = Original(
            record: record, outcome: nil, mayStore: true, marks: finding.marks)
        do throws(PipelineError) { result.recipe = try render.recipe(of: original, admitted) } catch { return result }
        guard let recipe = result.recipe, let plan = try? await render.plan(recipe, of: original, admitted) else {
            return result
        }
        result.key = plan.key
        result.output = plan.output
        result.refusedTranscoding = recipe.refusedTranscoding(of: plan.header)
        if let (stored, _) = await lookUpVariant(plan, of: original) {
            result.entry = stored.entry
            result.tier = stored.outcome
        }
        return result
    }

    private static func answer(_ explanation: Explanation) -> String {
        if explanation.decision == .refuse { return "an error, `notCached`" }
        if let tier = explanation.variant?.tier?.rawValue {
            switch explanation.decision {
            case .reuse: return "the variant from \(tier)"
            case .reuseStale: return "the variant from \(tier), stale"
            case .reuseAndValidate: return "the variant from \(tier), stale; validated in the background"
            case .readFile: return "the variant from \(tier) if the file is unchanged, otherwise a newly rendered one"
            default: return "the variant from \(tier) after a 304 or equal bytes, otherwise a newly rendered one"
            }
        }
        let original =
            switch explanation.decision {
            case .reuse, .refuse: "the stored original"
            case .reuseStale: "the stored original, stale"
            case .reuseAndValidate: "the stored original, stale; validated in the background"
            case .validate: "the stored original if the origin answers 304, otherwise the origin's new response"
            case .fetch: "the origin's response if it is a picture"
            default: "the file"
            }
        guard let variant = explanation.variant else { return original }
        return variant.key == nil
            ? "a variant rendered from \(original), unless it has been rendered from equal bytes before"
            : "a variant rendered from \(original)"
    }
}
