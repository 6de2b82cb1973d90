import PipelineCaching
import PipelineSupport
import Variants

/// Encoding frequently requested variants again.
extension ImagePipeline {
    package var secondPassStatistics: SecondPassCounters? { secondPass?.counters }

    /// The maximum `max-age` of responses with a first version, or nil if there is no second pass.
    package var maxAgeOfFirstPass: Duration? { secondPass?.configuration.maxAge }

    /// Makes the second passes that are due now, regardless of the interval between checks.
    package func makeSecondPasses() async { await secondPass?.runAll { await self.improve($0) } }

    /// Returns the stored variant of a plan. If it is missing, stores a copy of the variant for recipes that name the
    /// format, which a batch may have rendered, as the first version.
    func storedVariant(
        _ plan: RenderStage.Plan, of original: Original, _ admitted: AdmittedRequest
    ) async -> Variant? {
        guard let (found, isCopy) = await lookUpVariant(plan, of: original) else { return nil }
        return isCopy ? keep(found, of: original, admitted) : found
    }

    /// Like `storedVariant(_:of:_:)`, but stores nothing.
    func lookUpVariant(_ plan: RenderStage.Plan, of original: Original) async -> (variant: Variant, isCopy: Bool)? {
        if let stored = await lookUp.variant(plan.key, of: original) { return (withPass(stored, of: plan), false) }
        guard let key = plan.commonKey, var copy = await lookUp.variant(key, of: original) else { return nil }
        copy.entry?.key = plan.key
        copy.entry?.firstLength = nil
        return (withPass(copy, of: plan), true)
    }

    /// Returns a stored variant that is marked if a second pass may replace it.
    func withPass(_ stored: Variant, of plan: RenderStage.Plan) -> Variant {
        var variant = stored
        variant.isRefinable = plan.isRefinable && secondPass?.hasFailed(plan.key) != true
        return variant
    }

    /// Makes the second pass of a first version if the request asks for it. Otherwise remembers the variant for a second
    /// pass.
    func finishingPasses(
        _ derived: DerivedVariant, _ plan: RenderStage.Plan, _ admitted: AdmittedRequest
    ) async throws(PipelineError) -> DerivedVariant {
        guard let secondPass, let first = derived.variant.entry, derived.variant.pass == 1, derived.original.mayStore
        else { return derived }
        var kept = admitted
        (kept.onEvent, kept.onProgress, kept.onInterim) = (nil, nil, nil)
        (kept.request.gate, kept.request.fields) = (nil, [])
        let candidate = SecondPass.Candidate(
            admitted: kept, original: derived.original.withoutBody, plan: plan,
            first: first, pixels: derived.variant.width * derived.variant.height)
        guard admitted.request.makesSecondPass else {
            secondPass.note(candidate) { [weak self] in await self?.improve($0) ?? SecondPass.Result() }
            return derived
        }
        guard let whole = await originalForSecondPass(candidate) else { return derived }
        var result = derived
        var second: Variant
        do throws(PipelineError) {
            second = try await self.second(candidate, derived.variant.bytes, of: whole)
        } catch {
            if error.isCancellation { throw error }
            observe.warn("the first version is kept, because its second pass failed: \(error.message)", stage: .render)
            return derived
        }
        second.timings = derived.variant.timings
        result.variant = keep(second, of: derived.original, admitted)
        return result
    }

    /// Makes the second pass of a variant, and replaces the variant in every tier. The first version stays if the second
    /// pass fails, or if the variant is evicted, purged or replaced in the meantime.
    private func improve(_ candidate: SecondPass.Candidate) async -> SecondPass.Result {
        let key = candidate.plan.key
        guard let held = tiers.variants.peek(key), held.value == candidate.first else {
            return SecondPass.Result()
        }
        // Another machine may already have made it.
        let (source, marks) = (candidate.admitted.source, candidate.original.marks)
        if let length = await tiers.adoptSecondPass(of: held.value, from: source, marks) {
            return SecondPass.Result(length: length, isAdopted: true)
        }
        guard let whole = await originalForSecondPass(candidate) else { return SecondPass.Result() }
        let began = ContinuousClock.now
        let second: Variant
        do throws(PipelineError) {
            second = try await self.second(candidate, held.body, of: whole)
        } catch {
            if error.isCancellation || error.code == .workersUnavailable { return SecondPass.Result() }
            observe.warn("the first version is kept, because its second pass failed: \(error.message)", stage: .render)
            // The CPU time is not known. Most of the wall time may have been spent waiting for a processor.
            let most = (render.limits.timeout + render.limits.encodeTimeout).inSeconds
            return SecondPass.Result(seconds: min(began.duration(to: .now).inSeconds, most), hasFailed: true)
        }
        guard let entry = second.entry, tiers.variants.peek(key)?.value == candidate.first else {
            return SecondPass.Result(seconds: second.secondsOfCPU)
        }
        _ = keep(second, of: candidate.original, candidate.admitted)
        return SecondPass.Result(seconds: second.secondsOfCPU, length: entry.length)
    }

    /// Encodes a variant again.
    ///
    /// - Parameter bytes: the first version.
    /// - Returns: the second version, or the first version if no other is smaller. Its entry is nil if the libraries have
    ///   been updated.
    private func second(
        _ candidate: SecondPass.Candidate, _ bytes: [UInt8], of whole: Original
    ) async throws(PipelineError) -> Variant {
        try await render.secondPass(candidate.plan, of: whole, candidate.admitted, replacing: candidate.first, bytes)
    }

    /// Returns the original with its body, without contacting an origin. Returns nil if no tier has the body, or if a
    /// local original has changed.
    private func originalForSecondPass(_ candidate: SecondPass.Candidate) async -> Original? {
        if let whole = await lookUp.body(of: candidate.original) { return whole }
        guard candidate.admitted.transport.isLocal,
            let whole = try? await withBody(candidate.original, candidate.admitted)
        else { return nil }
        return whole.record.digest == candidate.original.record.digest ? whole : nil
    }
}
