import PipelineSupport

/// A render that waits, and may share the decode of another one.
protocol GatheringRender {
    /// What it can share; nil if it is rendered alone.
    var shareable: ShareableDecode? { get }
    /// What it is expected to cost.
    var work: RenderWork { get }
    mutating func share(_ decode: SharedDecode)
}

extension UrgencyQueue where Element: GatheringRender {
    /// The most renders that are taken together, so that others have their turn.
    private static var gatheringLimit: Int { 16 }

    /// The queue of renders: every fourth turn is the oldest one's.
    init() { self.init(oldestEvery: 4) }

    /// Removes the next render, and with it those of the same original that can share its decode: as they are all known
    /// now, the decode is made for exactly these. Renders of that original that come later are taken later.
    ///
    /// Among equally urgent renders the short ones come first.
    ///
    /// - Parameters:
    ///   - costs: tell which are long.
    ///   - mayBeLong: whether a long render may begin now. If not, no more are taken together than are short together.
    mutating func popGathering(
        _ costs: RenderCosts = RenderCosts(), mayBeLong: Bool = true
    ) -> (first: Element, others: Self)? {
        guard var first = pop(by: { costs.isLong($0.work) ? mayBeLong ? 1 : nil : 0 }) else { return nil }
        guard let mine = first.shareable else { return (first, Self()) }
        var (plans, together) = ([mine.plan], [first.work])
        for render in elements where render.shareable?.digest == mine.digest && plans.count < Self.gatheringLimit {
            guard let plan = render.shareable?.plan, mayBeLong || !costs.isLong(together + [render.work]) else { break }
            plans.append(plan)
            together.append(render.work)
        }
        guard let shared = SharedDecode(of: plans, named: mine.digest), shared.includes(mine.plan) else {
            return (first, Self())
        }
        first.share(shared)
        var looked = 1
        var others = removeFirst { other in
            guard let other = other.shareable, other.digest == mine.digest, looked < plans.count else { return false }
            looked += 1
            return shared.includes(other.plan)
        }
        others.update { $0.share(shared) }
        return (first, others)
    }
}
