/// Work that waits for a worker: the most urgent first, and first in, first out among equals. Every fourth turn goes to
/// the one that has waited longest, so that a stream of urgent work starves nothing.
struct RenderQueue<Element> {
    private struct Entry {
        var id: UInt64
        var priority: UInt8
        var element: Element
    }

    /// Oldest first; the admission of requests bounds how many wait here.
    private var entries: [Entry] = []
    private var taken = 0

    var count: Int { entries.count }

    mutating func push(_ element: Element, id: UInt64, priority: UInt8) {
        entries.append(Entry(id: id, priority: priority, element: element))
    }

    mutating func pop() -> Element? {
        guard !entries.isEmpty else { return nil }
        taken &+= 1
        if taken % 4 == 0 { return entries.removeFirst().element }
        var best = 0
        for index in entries.indices.dropFirst() where entries[index].priority > entries[best].priority { best = index }
        return entries.remove(at: best).element
    }

    /// Removes what was pushed under an id and returns it; nil if it is not waiting any more.
    mutating func remove(id: UInt64) -> Element? {
        guard let index = entries.firstIndex(where: { $0.id == id }) else { return nil }
        return entries.remove(at: index).element
    }
}

/// A render that waits, and may share the decode of another one.
protocol GatheringRender {
    /// What it can share; nil if it is rendered alone.
    var shareable: ShareableDecode? { get }
    mutating func share(_ decode: SharedDecode)
}

extension RenderQueue where Element: GatheringRender {
    /// The most renders that are taken together, so that others have their turn.
    private static var gatheringLimit: Int { 16 }

    /// Removes the next render, and with it those of the same original that can share its decode: as they are all known
    /// now, the decode is made for exactly these. Renders of that original that come later are taken later.
    mutating func popGathering() -> (first: Element, others: Self)? {
        guard var first = pop() else { return nil }
        var others = Self()
        guard let mine = first.shareable else { return (first, others) }
        var found: [(index: Int, plan: RenderPlan)] = []
        for index in entries.indices {
            guard let other = entries[index].element.shareable, other.digest == mine.digest else { continue }
            found.append((index, other.plan))
            if found.count == Self.gatheringLimit - 1 { break }
        }
        guard let shared = SharedDecode(of: [mine.plan] + found.map(\.plan), named: mine.digest),
            shared.includes(mine.plan)
        else { return (first, others) }
        first.share(shared)
        // From the last, so that the places of those before it stay.
        for (index, plan) in found.reversed() where shared.includes(plan) {
            var other = entries.remove(at: index)
            other.element.share(shared)
            others.entries.append(other)
        }
        others.entries.reverse()
        return (first, others)
    }
}
