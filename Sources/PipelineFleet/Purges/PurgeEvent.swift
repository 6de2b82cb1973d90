/// The reason why purges may have been missed.
package enum PurgeLoss: Sendable, Hashable, CustomStringConvertible {
    /// The node's stored position is missing or damaged.
    case damagedPosition
    /// The numbers in the stream are smaller than the node's number, because the server was emptied or a failover lost
    /// writes.
    case smallerNumber(Int, position: Int)
    /// Entries are missing before number `found`, or at the end if `found` is nil.
    case gap(expected: Int, found: Int?)
    /// The entry at the node's position is no longer in the stream, because it was trimmed while the node was away or
    /// the stream was replaced.
    case positionGone(Int)
    /// The stream was created again, or another node has lost purges.
    case otherEpoch
    /// An entry lacks a field, or a field cannot be parsed.
    case garbled(StreamID)

    package var description: String {
        switch self {
        case .damagedPosition: "this node's position in the stream of purges is missing or damaged"
        case .smallerNumber(let number, let position):
            """
            the stream of purges is at number \(number), but this node was at \(position): the server was emptied, or a \
            failover lost writes
            """
        case .gap(let expected, let found?):
            "purge \(expected) is missing from the stream of purges; the next one is \(found)"
        case .gap(let expected, nil): "purge \(expected) was published but is missing from the stream of purges"
        case .positionGone(let number):
            """
            the stream of purges no longer contains number \(number), the last one applied: it was trimmed while this node \
            was disconnected, or replaced
            """
        case .otherEpoch: "the stream of purges was created again, or another node detected that purges were lost"
        case .garbled(let id): "entry \(id) of the stream of purges cannot be read"
        }
    }
}

/// A step for a node that follows the purges. The steps must be performed in order.
package enum PurgeEvent: Sendable, Hashable {
    case purge(number: Int, payload: [UInt8], node: String)
    /// Purges may have been missed. Treat everything stored until now as stale.
    case lost(PurgeLoss)
    case connected
    /// The connection failed and will be retried. This is reported once, and again if the kind of error changes.
    case disconnected(RedisError)
}
