import Variants

/// Puts originals and variants into the tiers, behind the answer.
struct StoreStage: Sendable {
    let tiers: CacheTiers

    /// A fetched original; a file's body stays where it is.
    func callAsFunction(_ original: Original) {
        guard original.mayStore else { return }
        if case .bytes = original.admitted.origin { return }
        var body = original.body
        if case .file = original.admitted.origin { body = nil }
        tiers.store(
            original.record, body: body, storage: original.admitted.request.storage, generation: original.generation)
    }

    /// A 304's new fields and times.
    func freshen(_ original: Original) {
        guard original.mayStore else { return }
        tiers.freshen(
            original.record, storage: original.admitted.request.storage, generation: original.generation)
    }

    /// A rendered variant, stored exactly where its original may be.
    func callAsFunction(_ variant: Variant) {
        guard variant.original.mayStore, let entry = variant.entry, variant.outcome == .rendered else { return }
        tiers.store(
            entry, body: variant.bytes, of: variant.original.admitted.source,
            storage: variant.original.admitted.request.storage,
            generation: variant.original.generation)
    }
}
