import PipelineSupport

/// The name of a batch: 16 lower-case hexadecimal digits.
package struct BatchID: Sendable, Hashable, CustomStringConvertible {
    package let description: String

    /// Creates a random ID.
    package init() {
        let digits = String(UInt64.random(in: .min ... .max), radix: 16)
        description = String(repeating: "0", count: 16 - digits.count) + digits
    }

    /// Parses an ID. Returns nil if `text` is not a valid ID, so that only valid IDs become part of a key.
    package init?(_ text: String) {
        guard text.utf8.count == 16, text.utf8.allSatisfy(\.isLowercaseHex)
        else { return nil }
        description = text
    }

    /// The set of open batches, for workers that serve all of them.
    static let index: RedisWord = "image-pipeline:batches"

    var items: RedisWord { key("items") }
    var results: RedisWord { key("results") }
    var dead: RedisWord { key("dead") }
    var state: RedisWord { key("state") }
    /// The keys, in the order that the scripts expect.
    var keys: [RedisWord] { [items, results, dead, state] }

    /// Returns a key. The braces put all keys of a batch in one hash slot, as scripts require behind a cluster proxy.
    private func key(_ name: String) -> RedisWord { RedisWord("image-pipeline:batch:{\(description)}:\(name)") }
}
