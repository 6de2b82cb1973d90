import CacheTierConformance
import HTTPCaching
import PipelineSupport
import Synchronization
import Testing

@testable import PipelineCaching

/// An object store as a tier: its promises, and what several nodes do to each other in one bucket.
struct ObjectTierTests {
    private let bucket = PlainObjectStore.Bucket()

    private func node(clockOffset: Double = 0) -> ObjectTier {
        ObjectTier(PlainObjectStore(bucket: bucket, clockOffset: clockOffset))
    }

    private func mark(_ tier: ObjectTier) -> PurgeMark { tier.mark }

    private func keep(
        _ record: OriginalRecord, _ body: [UInt8]?, in tier: ObjectTier, mark: PurgeMark? = nil
    ) async throws {
        let kind = EntryChange.Kind.original(record, body: body.map { .bytes($0) })
        try await tier.store([EntryChange(kind, mark: mark ?? self.mark(tier))])
    }

    private func records(_ source: String, in tier: ObjectTier) async throws -> [OriginalRecord] {
        guard case .records(let records)? = try await tier.find(.records(source: source), .description) else {
            return []
        }
        return records
    }

    private func body(_ entry: VariantEntry, in tier: ObjectTier) async throws -> [UInt8]? {
        guard case .variant(_, let body?)? = try await tier.find(.variant(entry.key, of: entry.originalDigest), .body)
        else { return nil }
        return body
    }

    @Test(arguments: CacheTierConformance.checks)
    func `it keeps its promises`(_ check: CacheTierConformance.Check) async {
        #expect(await CacheTierConformance.violations(of: check, by: node()) == [])
    }

    @Test func `records come back with everything they have, at one round trip`() async throws {
        var original = record("http://a/é", [1], selecting: ["accept": "x", "dpr": nil])
        original.response.assignedLifetime = 0.1
        original.response.lifetimeLimit = 1.0 / 3
        original.response.fields = [HeaderField("A", ""), HeaderField("A", "ü\u{0}")]
        original.finalURL = "http://b/"
        original.media = nil
        try await keep(original, [1], in: node())
        let other = node()
        #expect(try await records(original.source, in: other) == [original])
        let before = bucket.state.withLock(\.roundTrips)
        #expect(try await records(original.source, in: other) == [original])
        #expect(bucket.state.withLock(\.roundTrips) == before + 1)
    }

    @Test func `of two nodes that store records of one source, each record is right, and both may stay`() async throws {
        let (a, b) = (node(), node())
        let bodies = (0..<8).map { [UInt8($0)] }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (number, body) in bodies.enumerated() {
                let tier = number % 2 == 0 ? a : b
                group.addTask {
                    try await self.keep(
                        record("http://a/", body, selecting: ["accept": "\(number)"]), body, in: tier)
                }
            }
            try await group.waitForAll()
        }
        let found = try await records("http://a/", in: node())
        #expect(!found.isEmpty)
        for record in found {
            let number = try #require(record.response.selecting["accept"].flatMap { $0 }.flatMap { Int($0) })
            #expect(record.digest == digest(bodies[number]))
        }
        // One after the other they all stay.
        try await keep(record("http://b/", [1], selecting: ["accept": "1"]), [1], in: a)
        try await keep(record("http://b/", [2], selecting: ["accept": "2"]), [2], in: b)
        #expect(try await records("http://b/", in: a).count == 2)
    }

    /// How long a node's own clock, and how long ago the purge was, make no difference.
    @Test(arguments: [false, true], [0.0, 3_600])
    func `what a node stores after another node's purge is void if it was begun before`(
        bySelection: Bool, later: Double
    ) async throws {
        let (a, b) = (node(), node())
        let old = record("http://a/1", [1])
        let entry = variant("v", of: old.digest, [1, 2])
        try await keep(old, [1], in: a)
        let begun = mark(b)
        #expect(try await records(old.source, in: b) == [old])
        _ = try await a.purge(
            bySelection
                ? EntrySelection(matching: SourceSelection(prefixes: ["http://a/"]))
                : EntrySelection(sources: [old.source]))
        #expect(try await records(old.source, in: a) == [])
        if bySelection { b.purges.expire() }
        #expect(try await records(old.source, in: b) == [])
        try await keep(old, [1], in: b, mark: begun)
        try await b.store([EntryChange(.variant(entry, body: [1, 2], source: old.source), mark: begun)])
        for reader in [a, b] { #expect(try await records(old.source, in: reader) == []) }
        if bySelection { #expect(try await body(entry, in: a) == nil) }
        // Begun after it, it stays, whichever node has made it.
        bucket.pass(later)
        for tier in later > 0 ? [a, b] : [a] {
            let new = record("http://a/1", [2])
            try await keep(new, [2], in: tier)
            for reader in [a, b, node()] { #expect(try await records(new.source, in: reader) == [new]) }
            try await tier.store([EntryChange(.removedRecord(new), mark: mark(tier))])
        }
    }

    @Test func `a record that a slow node writes over a purge is void`() async throws {
        let old = record("http://a/1", [1])
        let a = node()
        // It has looked whether it may store, and is held up before it writes.
        let slow = ObjectTier(
            PlainObjectStore(
                bucket: bucket,
                beforePut: { key in
                    guard key.hasPrefix("s/") else { return }
                    _ = try? await a.purge(EntrySelection(sources: ["http://a/1"]))
                    _ = try? await a.purge(EntrySelection(matching: SourceSelection(prefixes: ["http://b/"])))
                }))
        try await keep(old, [1], in: slow)
        #expect(bucket.keys.contains { $0.hasPrefix("s/") })
        for reader in [a, slow, node()] { #expect(try await records(old.source, in: reader) == []) }
        try await keep(record("http://b/1", [1]), [1], in: slow)
        for reader in [a, node()] { #expect(try await records("http://b/1", in: reader) == []) }
    }

    @Test func `a purge while the bucket is away is an error, and counts for nothing`() async throws {
        let tier = node()
        let original = record("http://a/", [1])
        try await keep(original, [1], in: tier)
        bucket.faults { _, _ in .failure(StoreError(.unavailable, "away")) }
        await #expect(throws: StoreError.self) { try await tier.purge(EntrySelection(sources: ["http://a/"])) }
        await #expect(throws: StoreError.self) {
            try await tier.purge(EntrySelection(matching: SourceSelection(prefixes: ["http://a/"])))
        }
        await #expect(throws: StoreError.self) { try await tier.find(.records(source: "http://a/"), .description) }
        bucket.works()
        #expect(try await records(original.source, in: tier) == [original])
    }

    @Test func `times are kept by the bucket's clock, so that nodes ten minutes apart agree on an age`() async throws {
        let (ahead, behind) = (node(clockOffset: -600), node(clockOffset: 600))
        // Fetched when the bucket's clock showed 10,000.
        var original = record("http://a/", [1])
        (original.response.requestTime, original.response.responseTime) = (10_599, 10_600)
        try await keep(original, [1], in: ahead)
        let seen = try await records("http://a/", in: behind)
        #expect(seen.map(\.response.responseTime) == [9_400] && seen.map(\.response.requestTime) == [9_399])
        #expect(try await records("http://a/", in: ahead) == [original])
        // A purge holds for both, and what is made after it too.
        _ = try await behind.purge(EntrySelection(sources: ["http://a/"]))
        #expect(try await records("http://a/", in: ahead) == [])
        bucket.pass(10)
        try await keep(original, [1], in: ahead)
        #expect(try await records("http://a/", in: behind).count == 1)
    }

    @Test func `no object that is cut, changed, empty or another one's is believed`() async throws {
        let original = record("http://a/", [1])
        let entry = variant("v", of: original.digest, [1, 2])
        let tier = node()
        try await keep(original, [1], in: tier)
        try await keep(record("http://b/", [2]), [2], in: tier)
        try await tier.store([EntryChange(.variant(entry, body: [1, 2], source: original.source), mark: mark(tier))])
        let objects = bucket.state.withLock(\.objects)
        for (key, object) in objects where key.hasPrefix("s/") || key.hasPrefix("v/") {
            let isVariant = key.hasPrefix("v/")
            var wrong: [[UInt8]] = objects.filter { $0.key != key && !$0.key.hasPrefix("o/") }.map(\.value.bytes)
            for at in object.bytes.indices {
                wrong.append(Array(object.bytes[..<at]))
                var flipped = object.bytes
                flipped[at] ^= 1 << UInt8(at % 8)
                wrong.append(flipped)
            }
            wrong.append(object.bytes + [0])
            for bytes in wrong {
                bucket.faults { asked, own in .success(asked == key ? bytes : own) }
                await #expect(throws: StoreError.self, "\(key) of \(bytes.count) bytes") {
                    if isVariant {
                        _ = try await tier.find(.variant(entry.key, of: entry.originalDigest), .body)
                    } else {
                        _ = try await tier.find(.records(source: "http://a/"), .description)
                        _ = try await tier.find(.records(source: "http://b/"), .description)
                    }
                }
            }
        }
        // The next stored object replaces a damaged one.
        bucket.faults { asked, own in .success(asked.hasPrefix("s/") ? [] : own) }
        try await keep(record("http://a/", [3]), [3], in: tier)
        bucket.works()
        #expect(try await records("http://a/", in: tier).map(\.digest) == [digest([3])])
    }

    @Test func `a purge that is damaged lets nothing be believed, and says what to do`() async throws {
        let a = node()
        try await keep(record("http://a/", [1]), [1], in: a)
        _ = try await a.purge(EntrySelection(matching: SourceSelection(prefixes: ["http://b/"])))
        bucket.faults { key, own in .success(key.hasPrefix("q/") ? [1, 2] : own) }
        let error = await #expect(throws: StoreError.self) { try await self.records("http://a/", in: self.node()) }
        #expect(error?.message.contains("delete the object q/") == true)
        bucket.faults { key, own in .success(key.hasPrefix("p/") ? [1, 2] : own) }
        await #expect(throws: StoreError.self) { try await self.records("http://a/", in: self.node()) }
    }

    @Test func `without originals or variants it neither asks for them nor stores them`() async throws {
        let store = PlainObjectStore(bucket: bucket)
        let none = ObjectTier(store, originals: false, variants: false)
        let original = record("http://a/", [1])
        let entry = variant("v", of: original.digest, [1, 2])
        let changes: [EntryChange.Kind] = [
            .original(original, body: .bytes([1])), .freshenedRecord(original),
            .removedRecord(record("http://a/", [])),
            .variant(entry, body: [1, 2], source: "http://a/"),
        ]
        for change in changes { try await none.store([EntryChange(change, mark: mark(none))]) }
        for key in [
            EntryKey.records(source: "http://a/"), .original(original.digest), .variant(entry.key, of: original.digest),
        ] {
            let error = await #expect(throws: StoreError.self) { _ = try await none.find(key, .body) }
            #expect(error?.code == .skipped)
        }
        #expect(bucket.state.withLock(\.requests) == [])
    }

    @Test func `what is known of purges is used for twenty seconds at most, and other tools' objects are left alone`()
        async throws
    {
        let tier = node()
        try await keep(record("http://a/", [1]), [1], in: tier)
        _ = try await PlainObjectStore(bucket: bucket).put("q/", [], type: "x")
        _ = try await PlainObjectStore(bucket: bucket).put("q/else.txt", [1], type: "x")
        #expect(try await records("http://a/", in: node()).count == 1)
        bucket.faults { key, own in
            key == "q/" ? .failure(StoreError(.unavailable, "no listing")) : .success(own)
        }
        tier.purges.expire()
        await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<8 {
                group.addTask {
                    do {
                        return try await self.records("http://a/", in: tier).isEmpty
                    } catch {
                        return true
                    }
                }
            }
            for await isRefused in group { #expect(isRefused) }
        }
    }

    @Test func `a record that is void is not carried along`() async throws {
        let (a, b) = (node(), node())
        try await keep(record("http://a/", [1], selecting: ["accept": "1"]), [1], in: a)
        _ = try await b.purge(EntrySelection(matching: SourceSelection(prefixes: ["http://a/"])))
        try await keep(record("http://a/", [2], selecting: ["accept": "2"]), [2], in: b)
        let object = try #require(try await b.stored("http://a/").object)
        #expect(object.records.map(\.record.digest) == [digest([2])])
    }

    @Test(arguments: PurgeMode.allCases, [1, 3])
    func `a purge by source takes three round trips at most`(_ mode: PurgeMode, sources: Int) async throws {
        // A request that begins late, because the machine is busy, counts as a round trip of its own, and nothing makes
        // the count smaller. So the fewest round trips of several purges are the ones that depend on each other.
        var fewest = Int.max
        for _ in 0..<20 where fewest > 3 { fewest = try await min(fewest, roundTrips(mode, sources: sources)) }
        #expect(fewest <= 3)
    }

    /// Purges sources with records, bodies and variants from a bucket, and returns the round trips.
    private func roundTrips(_ mode: PurgeMode, sources: Int) async throws -> Int {
        let bucket = PlainObjectStore.Bucket()
        let tier = ObjectTier(PlainObjectStore(bucket: bucket))
        let names = (0..<sources).map { "http://a/\($0)" }
        for name in names {
            for byte in 0..<UInt8(3) {
                let original = record(name, [byte], selecting: ["accept": "\(byte)"])
                try await keep(original, [byte], in: tier)
                for number in 0..<3 {
                    let entry = variant("\(name) \(number)", of: original.digest, [1, 2])
                    try await tier.store([EntryChange(.variant(entry, body: [1, 2], source: name), mark: mark(tier))])
                }
            }
        }
        let before = bucket.state.withLock(\.roundTrips)
        let purged = try await tier.purge(EntrySelection(sources: Set(names), mode: mode))
        let roundTrips = bucket.state.withLock(\.roundTrips) - before
        #expect(purged.sources == sources && purged.digests.count == 3)
        let left = Set(bucket.keys.map { $0.prefix(2) })
        switch mode {
        case .hard: #expect(left == ["p/"] && purged.originals == 3 && purged.variants == 9 * sources)
        case .soft: #expect(left.contains("v/") && left.contains("p/") && purged.variants == 0)
        case .variantsOnly: #expect(left == ["d/", "o/", "s/"] && purged.records == 0)
        }
        return roundTrips
    }

    @Test func `a purge that could not remove everything can be repeated`() async throws {
        let tier = node()
        let original = record("http://a/", [1])
        let entry = variant("v", of: original.digest, [1, 2])
        try await keep(original, [1], in: tier)
        try await tier.store([EntryChange(.variant(entry, body: [1, 2], source: original.source), mark: mark(tier))])
        let isFailing = Atomic(true)
        bucket.faults { key, own in
            // Its removal, not its listing.
            key.hasPrefix("v/") && key.utf8.count > 70 && isFailing.load(ordering: .relaxed)
                ? .failure(StoreError(.unavailable, "made to fail")) : .success(own)
        }
        await #expect(throws: StoreError.self) { try await tier.purge(EntrySelection(sources: ["http://a/"])) }
        isFailing.store(false, ordering: .relaxed)
        _ = try await tier.purge(EntrySelection(sources: ["http://a/"]))
        #expect(bucket.keys.allSatisfy { $0.hasPrefix("p/") })
    }

    @Test func `a purge removes bodies that no other source has had, and keeps the others`() async throws {
        let tier = node()
        try await keep(record("http://a/", [1]), [1], in: tier)
        try await keep(record("http://b/", [1]), [1], in: tier)
        let first = try await tier.purge(EntrySelection(sources: ["http://a/"]))
        #expect(first.records == 1 && first.originals == 0 && bucket.keys.contains("o/" + digest([1])))
        let second = try await tier.purge(EntrySelection(sources: ["http://b/"]))
        #expect(second.originals == 1)
        // Only the fact of a purge is left.
        #expect(bucket.keys.allSatisfy { $0.hasPrefix("p/") } && bucket.keys.count == 2)
    }
}
