/// The position up to which a node has applied the fleet's purges: an entry's number and its ID in the stream.
///
/// The string form contains the number, the stream ID and the epoch, separated by spaces.
package struct PurgePosition: Sendable, Hashable, CustomStringConvertible {
    package var number: Int
    package var streamID: StreamID
    /// The epoch of the stream. It is empty if an earlier version stored the position.
    package var epoch = ""

    package init(number: Int, streamID: StreamID, epoch: String = "") {
        (self.number, self.streamID, self.epoch) = (number, streamID, epoch)
    }

    /// Parses a position. Returns nil if the string is malformed.
    package init?(_ text: String) {
        let words = text.split(separator: " ", omittingEmptySubsequences: false).map { String($0) }
        guard words.count == 3, let number = Self.number(words[0]), let id = StreamID(words[1]) else { return nil }
        self.init(number: number, streamID: id, epoch: words[2])
    }

    package var description: String { "\(number) \(streamID) \(epoch)" }

    /// Parses a number as Redis writes it. Returns nil if `text` is not such a number or exceeds 2⁵³, the limit up to
    /// which Redis scripts count exactly.
    static func number(_ text: String) -> Int? {
        guard let number = Int(text), (0...1 << 53).contains(number), String(number) == text else { return nil }
        return number
    }
}

/// The state in which a node begins to follow the stream.
package enum PurgeStart: Sendable, Hashable {
    /// The node is new and has nothing to purge.
    case new
    case position(PurgePosition)
    /// The stored position cannot be parsed, or is missing although the node has stored entries.
    case damagedPosition
}

/// The ID of an entry in a Redis stream, `MILLISECONDS-SEQUENCE`.
package struct StreamID: Sendable, Hashable, CustomStringConvertible {
    package var milliseconds: UInt64 = 0
    package var sequence: UInt64 = 0

    /// The ID that precedes the first entry of any stream.
    package static let start = StreamID()

    private init() {}

    /// Parses an ID as Redis writes it. Returns nil if `text` is not such an ID.
    package init?(_ text: String) {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2, let milliseconds = UInt64(parts[0]), let sequence = UInt64(parts[1]) else { return nil }
        (self.milliseconds, self.sequence) = (milliseconds, sequence)
        guard text == description else { return nil }
    }

    package var description: String { "\(milliseconds)-\(sequence)" }

    /// The next possible ID.
    var next: StreamID {
        var next = self
        next.sequence &+= 1
        if next.sequence == 0 { next.milliseconds &+= 1 }
        return next
    }
}
