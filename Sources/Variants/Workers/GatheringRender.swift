import PipelineSupport

/// A waiting render that may share the decode of another render.
protocol GatheringRender {
    /// The properties for sharing a decode, or nil if the render decodes alone.
    var shareable: ShareableDecode? { get }
    /// The expected cost.
    var work: RenderWork { get }
    mutating func share(_ decode: SharedDecode)
}

/// A queue of waiting renders. The most urgent renders come first and, among equally urgent renders, the short ones.
/// Every fourth render that is dequeued is the oldest one.
struct RenderQueue<Element: GatheringRender> {
    private typealias Lane = UrgencyQueue<Element>

    /// The maximum number of renders that are dequeued together, so that other renders are not delayed too long.
    private static var gatheringLimit: Int { 16 }
    private static var oldestEvery: Int { 4 }

    /// Each render is in one of the two lanes, according to its expected cost when it was last considered.
    private var short = Lane(oldestEvery: oldestEvery)
    private var long = Lane(oldestEvery: oldestEvery)
    /// The renders of each original that can share its decode, oldest first.
    private var byDigest: [String: IndexedHeap<UInt64>] = [:]
    private var turn = 0

    var count: Int { short.count + long.count }
    var isEmpty: Bool { short.isEmpty && long.isEmpty }

    /// - Parameter id: the number that determines the position in the queue, as in `UrgencyQueue`. A render that
    ///   returns to the queue keeps its ID.
    mutating func push(_ render: Element, id: UInt64, priority: UInt8, _ costs: RenderCosts = RenderCosts()) {
        if let digest = render.shareable?.digest { byDigest[digest, default: IndexedHeap()][id] = id }
        if costs.isLong(render.work) {
            long.push(render, id: id, priority: priority)
        } else {
            short.push(render, id: id, priority: priority)
        }
    }

    mutating func remove(id: UInt64) -> Element? {
        guard let render = short.remove(id: id) ?? long.remove(id: id) else { return nil }
        if let digest = render.shareable?.digest {
            byDigest[digest]?[id] = nil
            if byDigest[digest]?.isEmpty == true { byDigest[digest] = nil }
        }
        return render
    }

    @discardableResult
    mutating func raise(id: UInt64, to priority: UInt8) -> Bool {
        short.raise(id: id, to: priority) || long.raise(id: id, to: priority)
    }

    /// Removes and returns the next render and the waiting renders of the same original that can share its decode. All
    /// of them are known at this time, so the decode is made for exactly these renders. Renders of the same original
    /// that arrive later are dequeued separately.
    ///
    /// - Parameters:
    ///   - costs: the costs that determine which renders are long.
    ///   - mayBeLong: whether a long render may begin now. If false, the total cost of the renders that are dequeued
    ///     together must not be long either.
    mutating func pop(
        _ costs: RenderCosts = RenderCosts(), mayBeLong: Bool = true
    ) -> (first: Element, others: UrgencyQueue<Element>)? {
        var others = UrgencyQueue<Element>(oldestEvery: Self.oldestEvery)
        guard let id = next(costs, mayBeLong: mayBeLong), var first = remove(id: id) else { return nil }
        turn &+= 1
        guard let mine = first.shareable, var same = byDigest.removeValue(forKey: mine.digest) else {
            return (first, others)
        }
        var (ids, plans, together) = ([UInt64](), [mine.plan], [first.work])
        while plans.count < Self.gatheringLimit, let id = same.first?.id, let render = short[id] ?? long[id],
            let plan = render.shareable?.plan, mayBeLong || !costs.isLong(together + [render.work])
        {
            _ = same.popFirst()
            ids.append(id)
            plans.append(plan)
            together.append(render.work)
        }
        let shared = SharedDecode(of: plans, named: mine.digest).flatMap { $0.includes(mine.plan) ? $0 : nil }
        for (id, plan) in zip(ids, plans.dropFirst()) {
            if shared?.includes(plan) == true {
                short.move(id, to: &others)
                long.move(id, to: &others)
            } else {
                same[id] = id
            }
        }
        if !same.isEmpty { byDigest[mine.digest] = same }
        if let shared {
            first.share(shared)
            others.update { $0.share(shared) }
        }
        return (first, others)
    }

    /// Returns the next render. Returns nil if no render may begin.
    private mutating func next(_ costs: RenderCosts, mayBeLong: Bool) -> UInt64? {
        let isOldests = (turn + 1) % Self.oldestEvery == 0
        func first(_ lane: Lane) -> UInt64? { isOldests ? lane.oldest : lane.mostUrgent?.id }
        // The expected costs may have changed since the renders were pushed.
        while let id = first(short), let render = short[id], costs.isLong(render.work) { short.move(id, to: &long) }
        while let id = first(long), let render = long[id], !costs.isLong(render.work) { long.move(id, to: &short) }
        guard mayBeLong, let other = first(long) else { return first(short) }
        guard let one = first(short) else { return other }
        if isOldests { return min(one, other) }
        return short.mostUrgent!.priority >= long.mostUrgent!.priority ? one : other
    }
}
