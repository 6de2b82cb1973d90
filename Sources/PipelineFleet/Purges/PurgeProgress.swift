/// Decides, from the content of the stream, which purges a node must apply and whether it has missed any.
///
/// The type is a value and performs no I/O. `position` advances with the returned events. The caller stores the position
/// after it has applied the events.
struct PurgeProgress: Sendable, Hashable {
    /// The node's position, or nil if the end of the stream is not known. This is the case initially, and after a loss
    /// that no entry in the stream follows.
    private(set) var position: PurgePosition?
    /// A loss to report with the next position. If it were reported earlier, a purge that is published between the
    /// handling of the loss and the search for a position would be missed.
    private var pending: PurgeLoss?
    /// The epoch to replace, so that the other nodes notice the loss, or nil if another node has replaced it.
    private(set) var outdated: String?

    init(_ start: PurgeStart) {
        switch start {
        case .new: break
        case .position(let position): self.position = position
        case .damagedPosition: pending = .damagedPosition
        }
    }

    /// Begins at the end of the stream.
    ///
    /// - Parameters:
    ///   - counter: the number of the last purge that any node has published, or 0 before the first purge.
    ///   - last: the last entry of the stream at the same moment, or nil if the stream is empty.
    ///   - epoch: the stream's epoch.
    mutating func begin(counter: Int, last: StreamID?, epoch: String = "") -> [PurgeEvent] {
        position = PurgePosition(number: counter, streamID: last ?? .start, epoch: epoch)
        defer { (pending, outdated) = (nil, nil) }
        return pending.map { [.lost($0)] } ?? []
    }

    /// Processes the entries after the position.
    ///
    /// - Parameters:
    ///   - counter: the number of the last purge that any node has published, or 0 before the first purge.
    ///   - hasPosition: whether the entry at the position is still in the stream.
    ///   - entries: the next entries, read after the other values. They are empty only if the stream has no more
    ///     entries.
    ///   - epoch: the stream's epoch, or nil if it has none.
    mutating func take(
        counter: Int, hasPosition: Bool, entries: [PurgeEntry], epoch: String? = ""
    ) -> [PurgeEvent] {
        guard var position else { return [] }
        var loss: PurgeLoss?
        if counter < position.number {
            loss = .smallerNumber(counter, position: position.number)
        } else if !hasPosition, position.streamID != .start {
            // An empty stream does not contain the entry at the position.
            loss = .positionGone(position.number)
        } else if epoch != position.epoch {
            loss = .otherEpoch
        } else if entries.isEmpty, counter > position.number {
            loss = .gap(expected: position.number + 1, found: nil)
        }
        if let loss {
            (pending, outdated, self.position) = (loss, epoch == position.epoch ? epoch : nil, nil)
            return []
        }
        var events: [PurgeEvent] = []
        for entry in entries {
            let expected = position.number + 1
            (position.number, position.streamID) = (entry.number ?? position.number, entry.id)
            guard let number = entry.number, let payload = entry.payload, let node = entry.node else {
                events.append(.lost(.garbled(entry.id)))
                continue
            }
            if number < expected {
                events.append(.lost(.smallerNumber(number, position: expected - 1)))
                outdated = epoch
            }
            if number > expected { events.append(.lost(.gap(expected: expected, found: number))) }
            events.append(.purge(number: number, payload: payload, node: node))
        }
        self.position = position
        return events
    }

    /// Whether the next read must create an epoch: the stream's epoch is outdated, or an earlier version stored the
    /// position.
    var needsEpoch: Bool { outdated != nil || position?.epoch.isEmpty == true }

    /// Adopts the stream's current epoch.
    mutating func adopt(_ epoch: String) {
        position?.epoch = epoch
        outdated = nil
    }
}
