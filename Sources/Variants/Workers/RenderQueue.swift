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

    /// Raises what was pushed under an id to at least this priority, if it still waits.
    mutating func raise(id: UInt64, to priority: UInt8) {
        guard let index = entries.firstIndex(where: { $0.id == id }) else { return }
        entries[index].priority = max(entries[index].priority, priority)
    }

    /// Removes what was pushed under an id and returns it; nil if it is not waiting any more.
    mutating func remove(id: UInt64) -> Element? {
        guard let index = entries.firstIndex(where: { $0.id == id }) else { return nil }
        return entries.remove(at: index).element
    }
}
