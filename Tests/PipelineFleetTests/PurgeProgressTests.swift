import Testing

@testable import PipelineFleet

@Suite struct PurgeProgressTests {
    /// A row: what the stream holds when a node is at number 5, and what the node has to do.
    struct Row: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var counter = 5
        var hasPosition = true
        var entries: [PurgeEntry] = []
        var events: [PurgeEvent] = []
        /// The stream's epoch; the node's is `e`.
        var epoch: String? = "e"
        /// nil if the node begins at the end of the stream again.
        var number: Int?
        /// The loss reported with the new beginning.
        var loss: PurgeLoss?
        /// Whether the node tells the other nodes of the loss.
        var isPublished: Bool {
            let isSmaller = events.contains { if case .lost(.smallerNumber) = $0 { true } else { false } }
            return (loss != nil || isSmaller) && epoch == "e"
        }
    }

    private static func id(_ milliseconds: Int) -> StreamID { StreamID("\(milliseconds)-0") ?? .start }
    private static func entry(_ number: Int?, at milliseconds: Int) -> PurgeEntry {
        PurgeEntry(id: id(milliseconds), number: number, payload: [1], node: "n")
    }
    private static func purge(_ number: Int) -> PurgeEvent { .purge(number: number, payload: [1], node: "n") }

    static let rows = [
        Row(
            testDescription: "another epoch", counter: 7, entries: [entry(6, at: 60), entry(7, at: 70)], epoch: "f",
            loss: .otherEpoch),
        Row(testDescription: "no epoch", epoch: nil, loss: .otherEpoch),
        Row(
            testDescription: "a smaller counter and another epoch", counter: 4, epoch: "f",
            loss: .smallerNumber(4, position: 5)),
        Row(testDescription: "nothing new", number: 5),
        Row(
            testDescription: "the next ones", counter: 7, entries: [entry(6, at: 60), entry(7, at: 70)],
            events: [purge(6), purge(7)], number: 7),
        Row(
            testDescription: "part of what there is", counter: 9, entries: [entry(6, at: 60)], events: [purge(6)],
            number: 6),
        Row(
            testDescription: "one published after the counter was read", entries: [entry(6, at: 60)],
            events: [purge(6)], number: 6),
        Row(testDescription: "a smaller counter", counter: 4, loss: .smallerNumber(4, position: 5)),
        Row(
            testDescription: "a smaller counter and entries", counter: 1, hasPosition: false,
            entries: [entry(1, at: 60)],
            loss: .smallerNumber(1, position: 5)),
        Row(testDescription: "the place is gone", counter: 5, hasPosition: false, loss: .positionGone(5)),
        Row(
            testDescription: "trimmed", counter: 900, hasPosition: false, entries: [entry(801, at: 60)],
            loss: .positionGone(5)),
        Row(
            testDescription: "another stream that has come as far", counter: 6, hasPosition: false,
            entries: [entry(6, at: 60)], loss: .positionGone(5)),
        Row(testDescription: "a larger counter but no entries", counter: 7, loss: .gap(expected: 6, found: nil)),
        Row(
            testDescription: "a gap before the first", counter: 8, entries: [entry(8, at: 60)],
            events: [.lost(.gap(expected: 6, found: 8)), purge(8)], number: 8),
        Row(
            testDescription: "a gap between two", counter: 8, entries: [entry(6, at: 60), entry(8, at: 80)],
            events: [purge(6), .lost(.gap(expected: 7, found: 8)), purge(8)], number: 8),
        Row(
            testDescription: "a number once more", counter: 5, entries: [entry(5, at: 60)],
            events: [.lost(.smallerNumber(5, position: 5)), purge(5)], number: 5),
        Row(
            testDescription: "a smaller number", counter: 5, entries: [entry(1, at: 60), entry(2, at: 70)],
            events: [.lost(.smallerNumber(1, position: 5)), purge(1), purge(2)], number: 2),
        Row(
            testDescription: "an entry without a number", counter: 6, entries: [entry(nil, at: 60), entry(6, at: 70)],
            events: [.lost(.garbled(id(60))), purge(6)], number: 6),
        Row(
            testDescription: "an entry without a payload", counter: 7,
            entries: [PurgeEntry(id: id(60), number: 6, payload: nil, node: "n"), entry(7, at: 70)],
            events: [.lost(.garbled(id(60))), purge(7)], number: 7),
        Row(
            testDescription: "an entry without a node", counter: 6,
            entries: [PurgeEntry(id: id(60), number: 6, payload: [], node: nil)], events: [.lost(.garbled(id(60)))],
            number: 6),
    ]

    @Test(arguments: rows)
    func `decides what to purge and whether purges were lost`(row: Row) {
        var progress = PurgeProgress(.position(PurgePosition(number: 5, streamID: Self.id(50), epoch: "e")))
        let events = progress.take(
            counter: row.counter, hasPosition: row.hasPosition, entries: row.entries, epoch: row.epoch)
        #expect(events == row.events)
        #expect(progress.position?.number == row.number && progress.outdated == (row.isPublished ? "e" : nil))
        guard row.number == nil else {
            #expect(progress.position?.streamID == row.entries.last?.id ?? Self.id(50))
            return
        }
        // The loss is reported once, with the place that the node continues from.
        #expect(progress.begin(counter: row.counter, last: Self.id(90), epoch: "g") == row.loss.map { [.lost($0)] })
        #expect(progress.position == PurgePosition(number: row.counter, streamID: Self.id(90), epoch: "g"))
        #expect(progress.take(counter: row.counter, hasPosition: true, entries: [], epoch: "g") == [])
        #expect(progress.outdated == nil)
    }

    @Test func `a new node begins at the end and has lost nothing`() {
        var progress = PurgeProgress(.new)
        #expect(progress.begin(counter: 12, last: Self.id(50)) == [])
        #expect(progress.position == PurgePosition(number: 12, streamID: Self.id(50)))
    }

    @Test func `a node with a damaged place has lost purges once`() {
        var progress = PurgeProgress(.damagedPosition)
        #expect(progress.begin(counter: 12, last: Self.id(50)) == [.lost(.damagedPosition)])
        #expect(progress.begin(counter: 12, last: Self.id(50)) == [])
    }

    @Test func `an epoch that a node has set is not another one`() {
        var progress = PurgeProgress(.position(PurgePosition(number: 5, streamID: Self.id(50), epoch: "e")))
        _ = progress.take(counter: 5, hasPosition: true, entries: [Self.entry(5, at: 60)], epoch: "e")
        #expect(progress.needsEpoch)
        progress.adopt("f")
        #expect(!progress.needsEpoch && progress.outdated == nil)
        #expect(
            progress.take(counter: 5, hasPosition: true, entries: [], epoch: "f") == []
                && progress.position?.number == 5)
    }

    @Test func `a node that began with an empty stream follows from its first entry`() {
        var progress = PurgeProgress(.new)
        #expect(progress.begin(counter: 0, last: nil) == [])
        #expect(progress.take(counter: 0, hasPosition: false, entries: []) == [])
        #expect(progress.take(counter: 1, hasPosition: false, entries: [Self.entry(1, at: 60)]) == [Self.purge(1)])
    }

    @Test(arguments: [
        ("5-0", true), ("18446744073709551615-18446744073709551615", true), ("5", false), ("05-0", false),
        ("+5-0", false), ("5-", false), ("5-0-0", false), ("18446744073709551616-0", false), ("", false),
    ])
    func `a stream ID is read only as Redis writes it`(text: String, isValid: Bool) {
        #expect(StreamID(text)?.description == (isValid ? text : nil))
    }
}
