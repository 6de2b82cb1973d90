import PipelineSupport

/// A render that waits, and may share the decode of another one.
protocol GatheringRender {
    /// What it can share; nil if it is rendered alone.
    var shareable: ShareableDecode? { get }
    mutating func share(_ decode: SharedDecode)
}

extension UrgencyQueue where Element: GatheringRender {
    /// The most renders that are taken together, so that others have their turn.
    private static var gatheringLimit: Int { 16 }

    /// The queue of renders: every fourth turn is the oldest one's.
    init() { self.init(oldestEvery: 4) }

    /// Removes the next render, and with it those of the same original that can share its decode: as they are all known
    /// now, the decode is made for exactly these. Renders of that original that come later are taken later.
    mutating func popGathering() -> (first: Element, others: Self)? {
        guard var first = pop() else { return nil }
        guard let mine = first.shareable else { return (first, Self()) }
        let plans = elements.lazy.compactMap(\.shareable).filter { $0.digest == mine.digest }.map(\.plan)
        let found = Array(plans.prefix(Self.gatheringLimit - 1))
        guard let shared = SharedDecode(of: [mine.plan] + found, named: mine.digest), shared.includes(mine.plan) else {
            return (first, Self())
        }
        first.share(shared)
        var looked = 0
        var others = removeFirst { other in
            guard let other = other.shareable, other.digest == mine.digest, looked < found.count else { return false }
            looked += 1
            return shared.includes(other.plan)
        }
        others.update { $0.share(shared) }
        return (first, others)
    }
}
