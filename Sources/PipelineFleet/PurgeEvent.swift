/// Why purges may have been missed.
package enum PurgeLoss: Sendable, Hashable, CustomStringConvertible {
    /// What the node knew of its place is damaged.
    case damagedPlace
    /// The numbers of the stream are smaller than the node's: the server was emptied, or a failover lost writes.
    case smallerNumber(Int, place: Int)
    /// Entries are missing before number `found`, or at the end if that is nil.
    case gap(expected: Int, found: Int?)
    /// The entry of the place is no longer in the stream: it was trimmed while the node was away, or the stream replaced.
    case placeGone(Int)
    /// An entry lacks a field, or has one that cannot be read.
    case garbled(StreamID)

    package var description: String {
        switch self {
        case .damagedPlace: "the place in the stream of purges is damaged"
        case .smallerNumber(let number, let place):
            """
            the stream of purges is at number \(number), this node was at \(place): the server was emptied, or a \
            failover lost writes
            """
        case .gap(let expected, let found?): "purge \(expected) is missing from the stream of purges, \(found) is next"
        case .gap(let expected, nil): "purge \(expected) was published but is missing from the stream of purges"
        case .placeGone(let number):
            """
            the stream of purges no longer has number \(number), the last one applied: it was trimmed while this node \
            was away, or replaced
            """
        case .garbled(let id): "entry \(id) of the stream of purges cannot be read"
        }
    }
}

/// What a node that follows the purges is to do, in this order.
package enum PurgeEvent: Sendable, Hashable {
    case purge(number: Int, payload: [UInt8], node: String)
    /// Purges may have been missed: treat everything stored until now as stale.
    case lost(PurgeLoss)
    case connected
    /// The connection failed; it is tried again by itself. Reported once, and once more if the kind of error changes.
    case disconnected(RedisError)
}
