/// The terms of a batch, which its creator sets.
package struct BatchTerms: Sendable, Hashable {
    /// How often an item is handed out before it is dead. 1 to 1,000, default 3.
    package var tries = 3
    /// Seconds until an item that its worker neither completes nor extends is handed out again. At least 0.001, default
    /// 60.
    package var leaseSeconds = 60.0
    /// Seconds after which Redis removes a batch without submitter and progress. At least 0.001, default 7 days.
    package var keepSeconds = 7 * 86_400.0

    /// Bytes of the largest item, result and options: 64 KiB, so that full reads stay within a connection's limit.
    package static let maxBytes = 64 << 10

    package init() {}
}

/// What Redis stores about a batch.
package struct BatchState: Sendable, Hashable {
    package var terms = BatchTerms()
    /// The bytes that the submitter gave to `create`.
    package var options: [UInt8]
    /// Seconds since 1970 by the server's clock.
    package var created: Int
    /// The number of items submitted so far, which is the next item's number.
    package var submitted: Int
    /// The number of items of the whole batch; nil until `finish`.
    package var total: Int?
    /// The number of items that have a result.
    package var done: Int
    /// How many of these results are failures or dead items.
    package var failed: Int
    /// The number of results that the submitter has not acknowledged.
    package var unacknowledged: Int

    /// Whether every item has a result.
    package var isComplete: Bool { done == total }

    /// From the reply to `BatchScript.state`; nil if it is not one.
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
