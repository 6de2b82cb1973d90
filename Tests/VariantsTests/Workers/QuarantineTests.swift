import Testing

@testable import Variants

@Suite struct QuarantineTests {
    private func original(_ bytes: [UInt8]) -> Quarantine.Fingerprint {
        bytes.withUnsafeBytes { Quarantine.Fingerprint($0) }
    }

    private func variant(_ recipe: String, _ format: ImageFormat = .png) -> Quarantine.Variant {
        Quarantine.Variant(recipe: recipe, output: ResolvedOutput(format: format), quality: .balanced, light: .auto)
    }

    @Test func `a variant is refused until its time is over, and no other original is`() {
        var list = Quarantine()
        let original = original([1, 2, 3])
        list.add(original, variant("a"), .crash(.pixels), reason: "it crashed", now: 100, seconds: 60)
        #expect(list.mayContain(count: 3) && !list.mayContain(count: 4))
        #expect(list.entry(self.original([1, 2, 4]), variant("a"), now: 101) == nil)
        let entry = list.entry(original, variant("a"), now: 159)
        #expect(entry?.since == 100 && entry?.until == 160 && entry?.reason == "it crashed")
        #expect(list.entry(original, variant("a"), now: 160) == nil)
        #expect(list.entry(original, variant("a", .webp), now: 101) == nil)
    }

    @Test(arguments: [
        Quarantine.Failure.crash(.encode), .deadline(.pixels, isExpected: true), .deadline(.encode),
    ]) func `a failed encoder and an expensive recipe's deadline quarantine only their variants`(
        failure: Quarantine.Failure
    ) {
        var list = Quarantine()
        let original = original([1, 2, 3])
        for recipe in ["a", "b", "c"] {
            list.add(original, variant(recipe), failure, reason: "", now: 100, seconds: 60)
            #expect(list.entry(original, variant(recipe), now: 159)?.failure == failure)
        }
        #expect(list.entry(original, variant("d"), now: 101) == nil)
        // One crash in the decode pass adds nothing to that; a second one under another recipe does.
        list.add(original, variant("e"), .crash(.pixels), reason: "", now: 110, seconds: 60)
        #expect(list.entry(original, variant("d"), now: 111) == nil)
    }

    @Test func `crashes of the decode pass under two recipes quarantine the original`() {
        var list = Quarantine()
        let original = original([1, 2, 3])
        for time in [100.0, 110] {
            list.add(original, variant("a"), .crash(.pixels), reason: "one", now: time, seconds: 60)
            #expect(list.entry(original, variant("c"), now: 111) == nil)
        }
        list.add(original, variant("b"), .crash(.pixels), reason: "two", now: 120, seconds: 60)
        #expect(list.entry(original, variant("c"), now: 179)?.reason == "two")
        #expect(list.entry(original, variant("c"), now: 180) == nil)
        // The first recipe's crash is forgotten.
        list.add(original, variant("b"), .crash(.pixels), reason: "two", now: 190, seconds: 60)
        #expect(list.entry(original, variant("c"), now: 191) == nil)
    }

    @Test func `a passed deadline of the decode pass quarantines the original`() {
        var list = Quarantine()
        let original = original([1, 2, 3])
        list.add(original, variant("a"), .deadline(.pixels), reason: "too long", now: 100, seconds: 60)
        for recipe in ["a", "b"] {
            #expect(list.entry(original, variant(recipe), now: 159)?.reason == "too long")
            #expect(list.entry(original, variant(recipe), now: 160) == nil)
        }
        #expect(list.entry(self.original([3, 2, 1]), variant("a"), now: 101) == nil)
    }

    @Test func `the table is bounded, and forgets the oldest`() {
        var list = Quarantine(limit: 3)
        for value in UInt8(0)..<5 {
            let original = original([value])
            list.add(original, variant(""), .deadline(.encode), reason: "", now: Double(value), seconds: 100)
        }
        #expect(list.count == 3)
        #expect(list.entry(original([1]), variant(""), now: 5) == nil)
        #expect(list.entry(original([2]), variant(""), now: 5) != nil)
    }
}
