/// Up to where a node has applied the fleet's purges: an entry's number and its place in the stream.
package struct PurgePlace: Sendable, Hashable {
    package var number: Int
    package var streamID: StreamID

    package init(number: Int, streamID: StreamID) { (self.number, self.streamID) = (number, streamID) }

    /// A number as Redis writes it, up to 2⁵³, to which its scripts count exactly; nil for other texts.
    static func number(_ text: String) -> Int? {
        guard let number = Int(text), (0...1 << 53).contains(number), String(number) == text else { return nil }
        return number
    }
}

/// What a node that has to follow the stream already knows.
package enum PurgeStart: Sendable, Hashable {
    /// Nothing: it is new, and has nothing to purge.
    case new
    case place(PurgePlace)
    /// It had a place that cannot be read any more.
    case damagedPlace
}

/// The place of an entry in a Redis stream, `MILLISECONDS-SEQUENCE`.
package struct StreamID: Sendable, Hashable, CustomStringConvertible {
    package var milliseconds: UInt64 = 0
    package var sequence: UInt64 = 0

    /// Before the first entry of any stream.
    package static let start = StreamID()

    private init() {}

    /// nil unless the text is written as Redis writes it.
    package init?(_ text: String) {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2, let milliseconds = UInt64(parts[0]), let sequence = UInt64(parts[1]) else { return nil }
        (self.milliseconds, self.sequence) = (milliseconds, sequence)
        guard text == description else { return nil }
    }

    package var description: String { "\(milliseconds)-\(sequence)" }

    /// The ID that follows this one.
    var next: StreamID {
        var next = self
        next.sequence &+= 1
        if next.sequence == 0 { next.milliseconds &+= 1 }
        return next
    }
}
