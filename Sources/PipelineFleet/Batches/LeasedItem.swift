/// An item leased to a worker.
package struct LeasedItem: Sendable, Hashable {
    package let batch: BatchID
    /// The item's entry in the stream of items.
    package let entry: StreamID
    /// The item's number in the batch, starting at 0.
    package let number: Int
    package let payload: [UInt8]
    /// The number of times that the item has been leased, including this time, from 1 to `BatchTerms.tries`.
    package let attempt: Int
    /// Whether the item was leased before and may therefore have killed its worker. A worker does no other work while
    /// it processes such an item.
    package var isAlone: Bool { attempt > 1 }
    /// The number of seconds after which the item may be leased to a different worker, unless the lease is extended.
    package let leaseSeconds: Double
}

/// The result of an item.
package struct ItemResult: Sendable, Hashable {
    package enum Kind: String, Sendable, Hashable {
        /// A worker completed the item.
        case success
        /// A worker completed the item and reported a failure.
        case failure
        /// No worker completed the item in any of its tries. The payload is the payload of the item.
        case dead
    }

    /// The result's entry in the stream of results.
    package let entry: StreamID
    /// The item's number in the batch, starting at 0.
    package let number: Int
    package let kind: Kind
    package let payload: [UInt8]
    /// The number of times that the item was leased.
    package let attempt: Int

    /// Parses an entry. Returns nil if the entry is not a result.
    init?(_ entry: StreamEntry) {
        let fields = entry.fields
        guard let number = fields["number"].flatMap(StreamEntry.number),
            let kind = fields["kind"].flatMap({ Kind(rawValue: String(decoding: $0, as: UTF8.self)) }),
            let attempt = fields["attempt"].flatMap(StreamEntry.number), let payload = fields["payload"]
        else { return nil }
        (self.entry, self.number, self.kind) = (entry.id, number, kind)
        (self.payload, self.attempt) = (payload, attempt)
    }
}

/// An entry in a Redis stream.
struct StreamEntry {
    var id: StreamID
    var fields: [String: [UInt8]]

    /// Parses a pair of an ID and its fields. Returns nil if `reply` has a different form.
    init?(_ reply: RedisReply) {
        guard let pair = reply.elements, pair.count == 2, let id = pair[0].text.flatMap(StreamID.init),
            let fields = Self.fields(pair[1])
        else { return nil }
        (self.id, self.fields) = (id, fields)
    }

    /// Parses alternating names and values. Returns nil if `reply` has a different form.
    static func fields(_ reply: RedisReply) -> [String: [UInt8]]? {
        guard let words = reply.elements, words.count.isMultiple(of: 2) else { return nil }
        var fields: [String: [UInt8]] = [:]
        for index in stride(from: 0, to: words.count, by: 2) {
            guard let name = words[index].text, case .bytes(let value) = words[index + 1] else { return nil }
            fields[name] = value
        }
        return fields
    }

    static func number(_ bytes: [UInt8]) -> Int? { PurgePosition.number(String(decoding: bytes, as: UTF8.self)) }
}
