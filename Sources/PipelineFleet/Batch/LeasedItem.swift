/// An item handed out to a worker.
package struct LeasedItem: Sendable, Hashable {
    package let batch: BatchID
    /// Its place in the stream of items.
    package let entry: StreamID
    /// Its number in the batch, from 0.
    package let number: Int
    package let payload: [UInt8]
    /// How often it has been handed out, this time included; from 1 to `BatchTerms.tries`.
    package let attempt: Int
    /// Whether the item was handed out before, and so may have killed its worker. A worker works on nothing else meanwhile.
    package var isAlone: Bool { attempt > 1 }
    /// Seconds until it may be handed to another worker, unless it is extended.
    package let leaseSeconds: Double
}

/// The one result of an item.
package struct ItemResult: Sendable, Hashable {
    package enum Kind: String, Sendable, Hashable {
        /// A worker completed the item.
        case success
        /// A worker completed it and reported a failure.
        case failure
        /// No worker completed it in any of its tries; the payload is the item's.
        case dead
    }

    /// Its place in the stream of results.
    package let entry: StreamID
    /// The item's number in the batch, from 0.
    package let number: Int
    package let kind: Kind
    package let payload: [UInt8]
    /// How often the item was handed out.
    package let attempt: Int

    /// nil if the entry is not a result.
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

/// An entry of a stream.
struct StreamEntry {
    var id: StreamID
    var fields: [String: [UInt8]]

    /// From a pair of an ID and its fields; nil if that is not what `reply` is.
    init?(_ reply: RedisReply) {
        guard let pair = reply.elements, pair.count == 2, let id = pair[0].text.flatMap(StreamID.init),
            let fields = Self.fields(pair[1])
        else { return nil }
        (self.id, self.fields) = (id, fields)
    }

    /// From alternating names and values; nil if that is not what `reply` is.
    static func fields(_ reply: RedisReply) -> [String: [UInt8]]? {
        guard let words = reply.elements, words.count.isMultiple(of: 2) else { return nil }
        var fields: [String: [UInt8]] = [:]
        for index in stride(from: 0, to: words.count, by: 2) {
            guard let name = words[index].text, case .bytes(let value) = words[index + 1] else { return nil }
            fields[name] = value
        }
        return fields
    }

    static func number(_ bytes: [UInt8]) -> Int? { PurgePlace.number(String(decoding: bytes, as: UTF8.self)) }
}
