/// Decides from what the stream holds which purges a node has to apply and whether it has missed any.
///
/// A value without I/O. `place` moves with the events that are returned; the caller stores it once it has applied them.
struct PurgeProgress: Sendable, Hashable {
    /// nil until the end of the stream is known: at first, and after a loss that no entry of the stream follows.
    private(set) var place: PurgePlace?
    /// Reported with the next place: a purge published between the loss's handling and the look for a place would be missed.
    private var pending: PurgeLoss?

    init(_ start: PurgeStart) {
        switch start {
        case .new: break
        case .place(let place): self.place = place
        case .damagedPlace: pending = .damagedPlace
        }
    }

    /// Begins at the end of the stream.
    ///
    /// - Parameters:
    ///   - counter: the number of the last purge that any node has published; 0 before the first.
    ///   - last: where the stream ends at the same moment; nil while it is empty.
    mutating func begin(counter: Int, last: StreamID?) -> [PurgeEvent] {
        place = PurgePlace(number: counter, streamID: last ?? .start)
        defer { pending = nil }
        return pending.map { [.lost($0)] } ?? []
    }

    /// Takes what follows the place.
    ///
    /// - Parameters:
    ///   - counter: the number of the last purge that any node has published; 0 before the first.
    ///   - hasPlace: whether the stream still has the entry of the place.
    ///   - entries: the next entries, read after the other two; empty only if there are none.
    mutating func take(counter: Int, hasPlace: Bool, entries: [PurgeEntry]) -> [PurgeEvent] {
        guard var place else { return [] }
        if counter < place.number { return restart(.smallerNumber(counter, place: place.number)) }
        // A stream without entries had none for the place.
        if !hasPlace, place.streamID != .start { return restart(.placeGone(place.number)) }
        if entries.isEmpty, counter > place.number { return restart(.gap(expected: place.number + 1, found: nil)) }
        var events: [PurgeEvent] = []
        for entry in entries {
            let expected = place.number + 1
            place = PurgePlace(number: entry.number ?? place.number, streamID: entry.id)
            guard let number = entry.number, let payload = entry.payload, let node = entry.node else {
                events.append(.lost(.garbled(entry.id)))
                continue
            }
            if number < expected { events.append(.lost(.smallerNumber(number, place: expected - 1))) }
            if number > expected { events.append(.lost(.gap(expected: expected, found: number))) }
            events.append(.purge(number: number, payload: payload, node: node))
        }
        self.place = place
        return events
    }

    private mutating func restart(_ loss: PurgeLoss) -> [PurgeEvent] {
        pending = loss
        place = nil
        return []
    }
}
