/// The name of a batch: 16 lower-case hexadecimal digits.
package struct BatchID: Sendable, Hashable, CustomStringConvertible {
    package let description: String

    /// A random ID.
    package init() {
        let digits = String(UInt64.random(in: .min ... .max), radix: 16)
        description = String(repeating: "0", count: 16 - digits.count) + digits
    }

    /// nil unless the text is an ID, so that no other text becomes part of a key.
    package init?(_ text: String) {
        guard text.utf8.count == 16, text.utf8.allSatisfy({ (0x30...0x39).contains($0) || (0x61...0x66).contains($0) })
        else { return nil }
        description = text
    }

    /// The set of open batches, for workers that serve all of them.
    static let index: RedisWord = "image-pipeline:batches"

    var items: RedisWord { key("items") }
    var results: RedisWord { key("results") }
    var dead: RedisWord { key("dead") }
    var state: RedisWord { key("state") }
    /// In the order in which the scripts expect them.
    var keys: [RedisWord] { [items, results, dead, state] }

    /// The braces give all keys of a batch one hash slot, as scripts require behind a proxy for a cluster.
    private func key(_ name: String) -> RedisWord { RedisWord("image-pipeline:batch:{\(description)}:\(name)") }
}
