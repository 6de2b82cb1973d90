import PipelineCaching
import PipelineFleet
import PipelineSupport

/// A purge as requested, so that every machine of a fleet can apply it.
struct Purge: Sendable, Hashable {
    /// The names of stored sources.
    var sources: Set<String> = []
    /// The prefixes of the names of further sources.
    var prefixes: Set<String> = []
    var tags: Set<String> = []
    var masks: Set<String> = []
    var overlays: Set<String> = []
    var mode = PurgeMode.hard
    /// Whether the selection of the purge is unknown, so that the purge covers every entry.
    var isUnknown = false

    static let unknown = Purge(isUnknown: true)

    /// Merges another purge with the same mode into this one. Returns false if the two cannot be merged.
    mutating func merge(_ other: Purge) -> Bool {
        if isUnknown { return true }
        // Swift strings can be equal although their bytes differ, and a set would keep only one of them. ASCII strings,
        // such as URLs, are safe.
        let isPlain = other.sources.union(other.prefixes).allSatisfy { $0.utf8.allSatisfy { $0 < 0x80 } }
        guard mode == other.mode, !other.isUnknown, isPlain else { return false }
        for (_, set) in Self.sets { self[keyPath: set].formUnion(other[keyPath: set]) }
        return true
    }
}

/// The serialized form is `purge 1 MODE`, followed by a line for each source, prefix, tag, mask and overlay. The form
/// of an unknown purge is `unknown 1`. Control characters and `%` are percent-encoded.
extension Purge {
    private static var sets: [(word: String, set: WritableKeyPath<Purge, Set<String>>)] {
        [
            ("source", \.sources), ("prefix", \.prefixes), ("tag", \.tags), ("mask", \.masks), ("overlay", \.overlays),
        ]
    }

    private static let textOfUnknown = "unknown 1\n"

    /// The serialized purge, split into parts that fit in a stream entry. If a single name does not fit, the result is
    /// an unknown purge.
    var parts: [[UInt8]] { parts(atMost: PurgeStream.maxPayloadBytes) }

    /// The serialized purge in one part, whatever its size.
    var text: String { String(decoding: parts(atMost: .max)[0], as: UTF8.self) }

    private func parts(atMost most: Int) -> [[UInt8]] {
        let unknown = [Array(Self.textOfUnknown.utf8)]
        if isUnknown { return unknown }
        let head = Array("purge 1 \(mode.rawValue)\n".utf8)
        var parts = [head]
        for (word, set) in Self.sets {
            for name in self[keyPath: set].sorted() {
                let line = Array("\(word) ".utf8) + Self.encoded(name) + [0x0A]
                if head.count + line.count > most { return unknown }
                if parts.last!.count + line.count > most { parts.append(head) }
                parts[parts.count - 1] += line
            }
        }
        return parts
    }

    /// Parses a serialized purge. Returns nil if this version does not know the form.
    init?(_ payload: [UInt8]) {
        guard let text = String(validating: payload, as: UTF8.self), text.utf8.last == 0x0A else { return nil }
        if text == Self.textOfUnknown {
            self = .unknown
            return
        }
        var lines = text.utf8.dropLast().split(separator: 0x0A, omittingEmptySubsequences: false)[...]
        let head = lines.removeFirst().split(separator: 0x20).map { String($0) ?? "" }
        guard head.count == 3, head[0] == "purge", head[1] == "1", let mode = PurgeMode(rawValue: head[2]) else {
            return nil
        }
        self.mode = mode
        for line in lines {
            let word = line.prefix { $0 != 0x20 }
            guard let set = Self.sets.first(where: { $0.word == String(word) })?.set,
                let bytes = percentDecoded(Substring(line.dropFirst(word.count + 1))),
                let name = String(validating: bytes, as: UTF8.self)
            else { return nil }
            self[keyPath: set].insert(name)
        }
    }

    private static func encoded(_ name: String) -> [UInt8] {
        name.utf8.flatMap { byte -> [UInt8] in
            if byte >= 0x20, byte != 0x7F, byte != 0x25 { return [byte] }
            return [0x25] + Array(withUnsafeBytes(of: byte) { hex($0) }.utf8)
        }
    }
}
