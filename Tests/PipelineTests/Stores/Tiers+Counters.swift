@testable import PipelineCaching

extension Tiers {
    /// Changes dropped because a tier fell too far behind, and errors of tiers, so far.
    var counters: (dropped: Int, failures: Int) {
        tierCounters.reduce((0, 0)) { ($0.0 + $1.dropped, $0.1 + $1.failures) }
    }
}

extension DiskStore {
    /// Whether a variant is stored; counts no access and does not read its body, which may turn out to be damaged.
    func holdsVariant(key: String, of original: String) throws(StoreError) -> Bool {
        try variantEntry(key: key, of: original) != nil
    }
}
