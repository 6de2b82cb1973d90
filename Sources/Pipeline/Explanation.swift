import PipelineFetching
public import HTTPCaching
public import PipelineCaching
package import Variants

/// What the pipeline would do with a request, and why, as far as it is known without contacting an origin.
public struct Explanation: Sendable {
    /// A stored response of the source, and how it was evaluated.
    public struct Stored: Sendable {
        /// Status, fields, times and digest.
        public var record: OriginalRecord
        /// Whether the request selects this response; it selects at most one.
        public var isSelected: Bool
        /// Why it is selected, or why not.
        public var reason: String
        /// The tier that holds its body: `memory`, `disk`, or `none` if it was evicted.
        public var body: OriginalOutcome
        /// Its freshness lifetime, and the rule that gives it.
        package var lifetime: FreshnessLifetime
        /// The field lines that the lifetime comes from, as received.
        public var basis: [HeaderField]
        /// Seconds that redirects on the way to the response limit the lifetime to; nil if they set no limit.
        public var lifetimeLimit: Double?
        /// Every term of its age.
        package var age: AgeArithmetic
        /// Seconds of freshness left, negative when stale.
        public var remaining: Double
    }

    /// What would happen next. New decisions may be added.
    public struct Decision: RawRepresentable, Sendable, Hashable {
        /// The name, as in `reuse`.
        public let rawValue: String
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The stored response is used as it is.
        public static let reuse = Decision(rawValue: "reuse")
        /// The stored response is used although it is stale.
        public static let reuseStale = Decision(rawValue: "reuseStale")
        /// The stored response is used although it is stale, and the origin is asked in the background.
        public static let reuseAndValidate = Decision(rawValue: "reuseAndValidate")
        /// The stored response is validated with the origin.
        public static let validate = Decision(rawValue: "validate")
        /// The whole response is requested from the origin.
        public static let fetch = Decision(rawValue: "fetch")
        /// The file is checked, and read if it has changed.
        public static let readFile = Decision(rawValue: "readFile")
        /// No stored response can be used, and the policy forbids contacting the origin.
        public static let refuse = Decision(rawValue: "refuse")
    }

    /// What is known about the variant.
    public struct VariantFinding: Sendable {
        /// The variant key; nil if computing it takes the original's bytes.
        public var key: String?
        /// The output with every option written out; nil if the key is.
        package var output: ResolvedOutput?
        /// The entry, if it is stored.
        public var entry: VariantEntry?
        /// The tier that holds it; nil if it would be rendered.
        public var tier: Outcome?
    }

    /// The name records are stored under: the normalised URL, `id:` + source ID, `file:` + path, or `bytes:` + digest.
    public var source: String
    /// How far stored responses are trusted.
    public var policy: CachePolicy
    /// Unix seconds that ages were computed for.
    public var now: Double
    /// Everything stored of the source.
    public var stored: [Stored]
    /// What would happen next.
    public var decision: Decision
    /// The sentence that says why.
    public var reason: String
    /// The request that would be sent, request line first, without connection fields; empty if none would be sent.
    public var request: [HeaderField]
    /// The URL that would be requested, without credentials; nil if none would be.
    public var url: String?
    /// The variant; nil without a recipe.
    public var variant: VariantFinding?
    /// The answer as far as it is known.
    public var answer: String
    /// The error the request would fail with, as far as it is known; nil if none is known.
    public var refusal: PipelineError?
}

extension ImagePipeline {
    /// Explains what `respond(to:)` would do now. Reads the caches as a look-up; contacts no origin, stores nothing.
    ///
    /// Throws `invalidSource`, `sourceRefused` and `maskUnavailable` as a request would. Any other error it would fail
    /// with, as far as it is known without contacting an origin or rendering, is in `refusal`.
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
        decide(&explanation, finding, admitted)
        if explanation.url != nil { explanation.request = fetch.requestFields(for: finding, admitted) }
        if let recipe = request.recipe { explanation.variant = await variant(recipe, finding, admitted) }
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
                ? Self.selectionReason(record, among: finding.records) : Self.rejection(record, admitted),
            body: OriginalOutcome(await tiers.tierOfOriginal(record.digest)), lifetime: lifetime,
            basis: Self.basis(of: lifetime.basis, in: stored, caching), lifetimeLimit: stored.lifetimeLimit,
            age: Age.arithmetic(of: stored, now: now),
            remaining: Freshness.remaining(of: stored, now: now, configuration: caching))
    }

    private static func selectionReason(_ record: OriginalRecord, among all: [OriginalRecord]) -> String {
        let names = Variation.names(in: record.response.fields) ?? []
        let match =
            names.isEmpty ? "it has no Vary" : "the request has the same \(names.joined(separator: ", ")) (Vary)"
        return all.count > 1 ? match + ", and none of the matching ones is more recent" : match
    }

    private static func rejection(_ record: OriginalRecord, _ admitted: AdmittedRequest) -> String {
        if admitted.transport.isLocal { return "another state of the file" }
        guard let names = Variation.names(in: record.response.fields) else { return "Vary: * matches no request" }
        let fields = admitted.request.fields
        let differing = names.filter { name in
            Variation.selectingFields(of: [HeaderField("Vary", name)], requestFields: fields)?[name]
                != record.response.selecting[name]
        }
        if differing.isEmpty { return "an older response with the same selecting fields" }
        return "the request differs in \(differing.joined(separator: ", ")), which its Vary names"
    }

    /// The lines that a lifetime was read from.
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

    private func decide(
        _ explanation: inout Explanation, _ finding: CacheFinding, _ admitted: AdmittedRequest
    ) {
        let url = admitted.url
        guard !admitted.transport.isLocal else {
            explanation.decision = admitted.transport.keepsRecords ? .readFile : .reuse
            explanation.reason =
                finding.record == nil
                ? "nothing is stored for it"
                : "a file is fresh while device, inode, size and times are what they were"
            return
        }
        let policy = admitted.policy
        let remaining = explanation.stored.first(where: \.isSelected)?.remaining
        switch finding.verdict {
        case .reuse(let isStale):
            explanation.decision = isStale ? .reuseStale : .reuse
            explanation.reason =
                isStale ? "stale, but the policy `\(policy.rawValue)` accepts it" : "it is fresh"
            if finding.record?.isUnusable == true, policy != .cacheOnly {
                explanation.reason += "; but no image, so that a request for one asks again after `errorMaxAge`"
            }
        case .reuseAndValidate:
            explanation.decision = .reuseAndValidate
            explanation.reason = "stale, within its stale-while-revalidate"
        case .validate:
            explanation.url = url.redacted
            let hasValidator = finding.record.map { Validation.hasValidator($0.response) } ?? false
            explanation.decision = hasValidator ? .validate : .fetch
            explanation.reason = Self.staleness(policy, remaining, hasValidator: hasValidator)
        case .missing:
            explanation.url = url.redacted
            explanation.reason =
                finding.records.isEmpty
                ? "nothing is stored for it" : "the stored responses are for other request fields"
        case .unavailable:
            explanation.decision = .refuse
            explanation.reason = "no stored response can be used"
        }
        if policy == .cacheOnly, explanation.url != nil {
            explanation.url = nil
            explanation.decision = .refuse
            explanation.reason += "; the policy `cacheOnly` forbids contacting the origin"
        }
    }

    private static func staleness(_ policy: CachePolicy, _ remaining: Double?, hasValidator: Bool) -> String {
        var reason: String
        if policy == .reload || policy == .revalidate {
            reason = "the policy `\(policy.rawValue)` always asks the origin"
        } else if let remaining, remaining > 0 {
            reason = "fresh by its times, but the origin demands validation, or the clock was set back"
        } else {
            reason = "it is stale"
        }
        if policy == .reload { return reason }
        return reason + (hasValidator ? "" : ", and it has no validator to ask with")
    }

    private func variant(
        _ recipe: Recipe, _ finding: CacheFinding, _ admitted: AdmittedRequest
    ) async -> Explanation.VariantFinding {
        var result = Explanation.VariantFinding()
        guard let record = finding.record, record.header != nil else { return result }
        let original = Original(
            record: record, outcome: .none, mayStore: true, marks: finding.marks)
        guard let plan = try? await render.plan(recipe, of: original, admitted) else { return result }
        result.key = plan.key
        result.output = plan.output
        if let stored = await lookUp.variant(plan.key, of: original) {
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
            case .reuseAndValidate: return "the variant from \(tier), stale; a validation in the background"
            case .readFile: return "the variant from \(tier) if the file is unchanged, otherwise a newly rendered one"
            default: return "the variant from \(tier) after a 304 or equal bytes, otherwise a newly rendered one"
            }
        }
        let original =
            switch explanation.decision {
            case .reuse, .refuse: "the stored original"
            case .reuseStale: "the stored original, stale"
            case .reuseAndValidate: "the stored original, stale, with a validation in the background"
            case .validate: "the stored original if the origin answers 304, or what it sends instead"
            case .fetch: "what the origin sends, if the origin sends a picture"
            default: "the file"
            }
        guard let variant = explanation.variant else { return original }
        return variant.key == nil
            ? "a variant rendered from \(original), unless equal bytes were rendered before"
            : "a variant rendered from \(original)"
    }
}
