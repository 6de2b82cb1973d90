import Testing

@testable import PipelineCaching

/// The work that a purge makes invalid.
struct PurgeJournalTests {
    private static func names(_ names: String...) -> EntrySelection { EntrySelection(sources: Set(names)) }

    @Test func `work is void after a purge of one of its names or digests, and other work is not`() {
        var journal = PurgeJournal()
        let before = journal.last
        #expect(journal.isCurrent(["a"], source: nil, since: before))
        let first = journal.tick()
        journal.record(EntrySelection(sources: ["b"], digests: ["c"]), at: first)
        #expect(journal.isCurrent(["a", "d"], source: "a", since: before))
        for name in ["b", "c"] { #expect(!journal.isCurrent(["a", name], source: "a", since: before)) }
        #expect(journal.isCurrent(["b", "c"], source: "b", since: first))
        #expect(journal.lastPurge(of: "b") == first && journal.lastPurge(of: "a") == nil)
    }

    @Test func `a purge by prefix voids work on what begins so, and on what has no known source`() {
        var journal = PurgeJournal()
        let before = journal.last
        let mark = journal.tick()
        journal.record(EntrySelection(prefixes: ["http://a/e\u{301}"]), at: mark)
        for (source, isCurrent) in [("http://a/e\u{301}x", false), ("http://a/\u{E9}x", true), ("http://b/", true)] {
            #expect(journal.isCurrent([source], source: source, since: before) == isCurrent)
            #expect((journal.lastPurge(of: source) == nil) == isCurrent)
        }
        #expect(!journal.isCurrent(["digest"], source: nil, since: before))
        #expect(journal.isCurrent(["digest"], source: nil, since: mark))
    }

    @Test(arguments: [
        (PurgeJournal.Kinds.all, false, false), (.originals, false, true), (.variants, true, false),
    ]) func `a purge concerns originals, variants or both`(
        kinds: PurgeJournal.Kinds, originals: Bool, variants: Bool
    ) {
        var journal = PurgeJournal()
        let before = journal.last
        for selection in [Self.names("a"), EntrySelection(prefixes: ["a"])] {
            journal.record(selection, kinds, at: journal.tick())
            #expect(journal.isCurrent(["a"], source: "a", .originals, since: before) == originals)
            #expect(journal.isCurrent(["a"], source: "a", .variants, since: before) == variants)
        }
    }

    @Test
    func `a purge of everything voids all work and counts for every name, and one of work in flight only voids it`() {
        var journal = PurgeJournal()
        let before = journal.last
        let voided = journal.tick()
        journal.record(.workInFlight, at: voided)
        #expect(!journal.isCurrent(["a"], source: "a", since: before) && journal.lastPurge(of: "a") == nil)
        let all = journal.tick()
        journal.recordAll(at: all)
        #expect(!journal.isCurrent(["a"], source: "a", since: voided) && journal.lastPurge(of: "a") == all)
        #expect(journal.isCurrent(["a"], source: "a", since: all))
    }

    @Test func `marks only grow, and do not lie before the clock`() {
        var journal = PurgeJournal()
        #expect(journal.tick(PurgeMark(seconds: 2)) == PurgeMark(2_000_000))
        #expect(journal.tick(PurgeMark(seconds: 1)) == PurgeMark(2_000_001))
        journal.record(Self.names("a"), at: PurgeMark(9_000_000))
        journal.record(Self.names("a"), at: PurgeMark(8_000_000))
        #expect(journal.lastPurge(of: "a") == PurgeMark(9_000_000) && journal.last == PurgeMark(9_000_000))
        for seconds in [-1, -Double.infinity, Double.nan, 0] { #expect(PurgeMark(seconds: seconds) == PurgeMark(0)) }
        #expect(PurgeMark(seconds: .infinity) == PurgeMark(1_000_000_000_000_000_000))
    }

    @Test func `beyond its bound the older half is forgotten, and what is older counts as purged`() {
        var journal = PurgeJournal()
        let before = journal.last
        var marks: [PurgeMark] = []
        for number in 0...PurgeJournal.maxNames {
            marks.append(journal.tick())
            journal.record(Self.names("\(number)"), at: marks[number])
        }
        let middle = marks[marks.count / 2]
        #expect(!journal.isCurrent(["other"], source: "other", since: before))
        #expect(journal.lastPurge(of: "other") == middle && journal.lastPurge(of: "0") == middle)
        #expect(journal.isCurrent(["other"], source: "other", since: middle))
        #expect(!journal.isCurrent(["\(PurgeJournal.maxNames)"], source: nil, since: middle))
        let many = journal.tick()
        journal.record(EntrySelection(sources: Set((0..<20_000).map { "many \($0)" })), at: many)
        #expect(!journal.isCurrent(["other"], source: "other", since: middle))
        #expect(journal.isCurrent(["other"], source: "other", since: many))
        for number in 0...PurgeJournal.maxPrefixes {
            journal.record(EntrySelection(prefixes: ["\(number)/"]), at: journal.tick())
        }
        #expect(!journal.isCurrent(["other"], source: "other", since: many))
        #expect(journal.isCurrent(["other"], source: "other", since: journal.last))
    }

    @Test func `purges that were confirmed are forgotten first, and what is older still counts as current`() {
        var journal = PurgeJournal()
        journal.record(Self.names("pending"), at: journal.tick())
        let most = Set((1..<PurgeJournal.maxNames).map { "\($0)" })
        let confirmed = EntrySelection(sources: most, prefixes: ["confirmed/"])
        journal.record(confirmed, at: journal.tick())
        journal.confirm(confirmed)
        #expect(journal.lastPurge(of: "1") != nil && journal.lastPurge(of: "confirmed/1") != nil)
        journal.record(Self.names("one more"), at: journal.tick())
        #expect(journal.lastPurge(of: "1") == nil && journal.lastPurge(of: "confirmed/1") == nil)
        #expect(journal.lastPurge(of: "other") == nil)
        #expect(journal.lastPurge(of: "pending") != nil && journal.lastPurge(of: "one more") != nil)
    }
}
