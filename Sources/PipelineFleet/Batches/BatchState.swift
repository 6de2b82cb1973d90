/// The terms of a batch, set by its creator.
package struct BatchTerms: Sendable, Hashable {
    /// The maximum number of times that an item is leased before it is dead, from 1 to 1,000. Defaults to 3.
    package var tries = 3
    /// The number of seconds after which an item is leased again, unless its worker completes or extends it. Must be at
    /// least 0.001. Defaults to 60.
    package var leaseSeconds = 60.0
    /// The number of seconds after which Redis removes a batch that has no submitter and makes no progress. Must be at
    /// least 0.001. Defaults to 7 days.
    package var keepSeconds = 7 * 86_400.0

    /// The maximum size in bytes of an item, of a result and of the options. It is 64 KiB, so that full reads stay
    /// within a connection's limit.
    package static let maxBytes = 64 << 10

    package init() {}
}

/// The state of a batch in Redis.
package struct BatchState: Sendable, Hashable {
    package var terms = BatchTerms()
    /// The bytes that the submitter passed to `create`.
    package var options: [UInt8]
    /// The time of creation in Unix seconds, according to the server's clock.
    package var created: Int
    /// The number of items submitted so far. It is also the number of the next item.
    package var submitted: Int
    /// The total number of items, or nil if `finish` has not been called yet.
    package var total: Int?
    /// The number of items that have a result.
    package var done: Int
    /// The number of results that are failures or dead items.
    package var failed: Int
    /// The number of results that the submitter has not acknowledged.
    package var unacknowledged: Int

    /// Whether every item has a result.
    package var isComplete: Bool { done == total }

    /// Parses the reply to `BatchScript.state`. Returns nil if the reply is malformed.
    init?(_ reply: RedisReply) {
        let names = ["tries", "lease", "keep", "created", "submitted", "done", "failed"]
        guard let parts = reply.elements, parts.count == 2, case .integer(let unacknowledged) = parts[1],
            let fields = StreamEntry.fields(parts[0]), let options = fields["options"]
        else { return nil }
        let numbers = names.compactMap { fields[$0].flatMap(StreamEntry.number) }
        guard numbers.count == names.count else { return nil }
        terms.tries = numbers[0]
        (terms.leaseSeconds, terms.keepSeconds) = (Double(numbers[1]) / 1000, Double(numbers[2]) / 1000)
        (created, submitted, done, failed) = (numbers[3], numbers[4], numbers[5], numbers[6])
        total = fields["total"].flatMap(StreamEntry.number)
        (self.options, self.unacknowledged) = (options, unacknowledged)
    }
}
