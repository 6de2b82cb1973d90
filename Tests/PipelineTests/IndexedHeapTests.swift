import PipelineSupport
import Synchronization
import TestSupport
import Testing

@Suite struct IndexedHeapTests {
    /// A key that counts comparisons.
    private struct Counted: Comparable {
        static let comparisons = Atomic<Int>(0)
        let value: Int

        static func < (left: Self, right: Self) -> Bool {
            comparisons.add(1, ordering: .relaxed)
            return left.value < right.value
        }
    }

    @Test func `ten thousand members cost a multiple of log n comparisons each, also those that are removed`() {
        let count = 10_000
        for isRemoved in [false, true] {
            Counted.comparisons.store(0, ordering: .relaxed)
            var heap = IndexedHeap<Counted>()
            for id in 0..<count { heap[UInt64(id)] = Counted(value: id * 7919 % count) }
            for id in 0..<count { heap[UInt64(id)] = Counted(value: id * 104_729 % count) }
            if isRemoved {
                for id in 0..<count { heap[UInt64(id)] = nil }
            } else {
                while heap.popFirst() != nil {}
            }
            #expect(heap.isEmpty)
            // Each of the three loops moves a member by at most 14 levels, with two comparisons each.
            #expect(Counted.comparisons.load(ordering: .relaxed) < 3 * 2 * 15 * count)
        }
    }

    @Test(arguments: 0..<200) func `any sequence of changes leaves the members in order`(seed: Int) {
        var random = FuzzRandom(seed: UInt64(seed))
        var heap = IndexedHeap<Int>()
        var expected: [UInt64: Int] = [:]
        for _ in 0..<200 {
            let id = UInt64(random.below(40))
            let key = random.below(4) == 0 ? nil : random.below(20)
            heap[id] = key
            expected[id] = key
            #expect(heap.count == expected.count && heap[id] == key)
            #expect(heap.first?.key == expected.values.min())
        }
        var order: [Int] = []
        while let key = heap.first?.key, let id = heap.popFirst() {
            #expect(expected.removeValue(forKey: id) == key)
            order.append(key)
        }
        #expect(order == order.sorted() && expected.isEmpty && heap.isEmpty)
    }
}
