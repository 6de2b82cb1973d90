import PipelineSupport

/// A moment in a history of purges. Marks from different histories cannot be compared.
package struct PurgeMark: Sendable, Hashable, Comparable {
    package let rawValue: UInt64

    package init(_ rawValue: UInt64) { self.rawValue = rawValue }

    /// Creates a mark from a clock reading in seconds. Marks count microseconds.
    package init(seconds: Double) { rawValue = seconds > 0 ? UInt64(min(seconds * 1e6, 1e18)) : 0 }

    package static func < (left: PurgeMark, right: PurgeMark) -> Bool { left.rawValue < right.rawValue }
}

/// The purges between two marks.
package struct PurgeLog: Sendable, Hashable {
    /// The later mark.
    package var mark: PurgeMark
    /// The purged sources and digests of originals, or nil if they are no longer known or are too many. In that case,
    /// treat everything as purged.
    package var names: Set<String>?
    /// Additional purged sources, selected by prefix. Empty by default.
    package var selections: [SourceSelection]

    package init(mark: PurgeMark, names: Set<String>?, selections: [SourceSelection] = []) {
        self.mark = mark
        self.names = names
        self.selections = selections
    }

    /// The number of names above which emptying memory is faster than searching it.
    static let limit = 10_000
}

/// A history of the latest purges by name. It determines whether work that began at a mark, or an entry with a mark, is
/// older than a purge that covers it.
///
/// The type is a value that uses no lock, clock or I/O. The caller provides the marks. The number of names is limited.
/// If there are too many, the journal first forgets names whose purge a tier has confirmed, and then the older half.
/// Everything that is older than the forgotten names counts as purged.
struct PurgeJournal: Sendable {
    /// The kinds of entries that a purge covers.
    struct Kinds: OptionSet, Sendable, Hashable {
        let rawValue: UInt8
        /// Records, and the bodies of originals.
        static let originals = Kinds(rawValue: 1)
        static let variants = Kinds(rawValue: 2)
        static let all: Kinds = [.originals, .variants]
    }

    private struct Purged: Sendable {
        var originals = PurgeMark(0)
        var variants = PurgeMark(0)
        var isConfirmed = false

        var last: PurgeMark { max(originals, variants) }

        mutating func set(_ kinds: Kinds, _ mark: PurgeMark) {
            if kinds.contains(.originals) { originals = max(originals, mark) }
            if kinds.contains(.variants) { variants = max(variants, mark) }
            isConfirmed = false
        }

        func last(_ kinds: Kinds) -> PurgeMark {
            max(
                kinds.contains(.originals) ? originals : PurgeMark(0),
                kinds.contains(.variants) ? variants : PurgeMark(0))
        }
    }

    /// The last mark that was returned or recorded.
    private(set) var last = PurgeMark(0)
    private var names: [ByteString: Purged] = [:]
    /// The prefixes of purged sources.
    private var prefixes: [(text: ByteString, purged: Purged)] = []
    /// The mark before which the purges are unknown.
    private var floor = PurgeMark(0)
    /// The mark before which all work is invalid, although nothing was removed.
    private var void = PurgeMark(0)

    static let maxNames = 10_000
    static let maxPrefixes = 256

    /// Returns a mark that is later than all previous marks.
    ///
    /// - Parameter clock: a clock reading that the mark must not precede.
    mutating func tick(_ clock: PurgeMark = PurgeMark(0)) -> PurgeMark {
        last = max(PurgeMark(last.rawValue + 1), clock)
        return last
    }

    /// Records a purge.
    mutating func record(_ selection: EntrySelection, _ kinds: Kinds = .all, at mark: PurgeMark) {
        last = max(last, mark)
        for name in selection.sources.union(selection.digests) {
            // The empty name represents work in progress. No source has it.
            if name.isEmpty {
                void = max(void, mark)
            } else {
                names[ByteString(name), default: Purged()].set(kinds, mark)
            }
        }
        for text in selection.prefixes.map(ByteString.init) {
            if let at = prefixes.firstIndex(where: { $0.text == text }) {
                prefixes[at].purged.set(kinds, mark)
            } else {
                var purged = Purged()
                purged.set(kinds, mark)
                prefixes.append((text, purged))
            }
        }
        makeRoom()
    }

    /// Records a purge of everything.
    mutating func recordAll(at mark: PurgeMark) {
        last = max(last, mark)
        (names, prefixes, floor) = ([:], [], max(floor, mark))
    }

    /// Records that the purged entries are gone, so that this purge can be forgotten before purges that are not
    /// confirmed.
    mutating func confirm(_ selection: EntrySelection) {
        for name in selection.sources.union(selection.digests) { names[ByteString(name)]?.isConfirmed = true }
        for text in selection.prefixes.map(ByteString.init) {
            for at in prefixes.indices where prefixes[at].text == text { prefixes[at].purged.isConfirmed = true }
        }
    }

    private var isFull: Bool { names.count > Self.maxNames || prefixes.count > Self.maxPrefixes }

    private mutating func makeRoom() {
        if !isFull { return }
        names = names.filter { !$0.value.isConfirmed }
        prefixes.removeAll(where: \.purged.isConfirmed)
        while isFull {
            let marks = (names.values.map(\.last) + prefixes.map(\.purged.last)).sorted()
            let median = marks[marks.count / 2]
            floor = max(floor, median)
            names = names.filter { $0.value.last > median }
            prefixes.removeAll { $0.purged.last <= median }
        }
    }

    /// Returns whether work that began at a mark may store entries with these names, because no purge that covers them
    /// has happened since.
    ///
    /// - Parameter source: the source among the names, or nil if it is unknown. In that case, every purge by prefix is
    ///   assumed to cover it.
    func isCurrent(_ names: [String], source: String?, _ kinds: Kinds = .all, since mark: PurgeMark) -> Bool {
        if mark >= last { return true }
        if mark < max(floor, void) { return false }
        if names.contains(where: { name in self.names[ByteString(name)].map { $0.last(kinds) > mark } ?? false }) {
            return false
        }
        return !prefixes.contains { text, purged in
            purged.last(kinds) > mark && source.map { $0.utf8.starts(with: text.text.utf8) } ?? true
        }
    }

    /// Returns the last purge of a source or a digest, or the mark up to which purges are unknown. Returns nil if there
    /// is neither.
    func lastPurge(of name: String) -> PurgeMark? {
        var mark = max(floor, names[ByteString(name)]?.last ?? PurgeMark(0))
        for (text, purged) in prefixes where name.utf8.starts(with: text.text.utf8) { mark = max(mark, purged.last) }
        return mark == PurgeMark(0) ? nil : mark
    }
}
