import PipelineSupport
import Testing

@Suite struct UrgencyQueueTests {
    @Test func `the most urgent goes first, and equals in the order they came`() {
        var queue = UrgencyQueue<String>(oldestEvery: 4)
        for (id, (name, priority)) in [("a", 1), ("b", 9), ("c", 9), ("d", 5)].enumerated() {
            queue.push(name, id: UInt64(id), priority: UInt8(priority))
        }
        #expect([queue.pop(), queue.pop(), queue.pop(), queue.pop(), queue.pop()] == ["b", "c", "d", "a", nil])
    }

    @Test func `a stream of urgent work holds nothing up for ever`() {
        var queue = UrgencyQueue<Int>(oldestEvery: 4)
        queue.push(-1, id: 0, priority: 0)
        var taken: [Int] = []
        for number in 1...8 {
            queue.push(number, id: UInt64(number), priority: 9)
            if let next = queue.pop() { taken.append(next) }
        }
        #expect(taken.prefix(4).contains(-1))
    }

    @Test func `what is taken out is not given to a worker`() {
        var queue = UrgencyQueue<String>(oldestEvery: 4)
        queue.push("a", id: 1, priority: 0)
        queue.push("b", id: 2, priority: 0)
        #expect(queue.remove(id: 1) == "a" && queue.remove(id: 1) == nil)
        #expect(queue.pop() == "b" && queue.count == 0)
    }

    @Test func `of equally urgent work the lowest rank goes first, and what may not begin now stays`() {
        var queue = UrgencyQueue<Int>(oldestEvery: 100)
        for (id, number) in [3, 1, 2, 1].enumerated() { queue.push(number, id: UInt64(id), priority: 5) }
        queue.push(9, id: 9, priority: 6)
        #expect(queue.pop { $0 } == 9)
        #expect(queue.pop { $0 == 1 ? nil : $0 } == 2 && queue.pop { $0 == 1 ? nil : $0 } == 3)
        #expect(queue.pop { $0 == 1 ? nil : $0 } == nil && queue.count == 2)
        #expect(queue.pop { $0 } == 1 && queue.pop { $0 } == 1)
    }

    @Test func `the turn of the oldest goes to the oldest that may begin, and no turn is used up in vain`() {
        var queue = UrgencyQueue<Int>(oldestEvery: 2)
        for number in 0..<4 { queue.push(number, id: UInt64(number), priority: UInt8(number)) }
        #expect(queue.pop { _ in nil } == nil)
        #expect(queue.pop() == 3)
        #expect(queue.pop { $0 == 0 ? nil : $0 } == 1)
        #expect(queue.pop() == 2 && queue.pop() == 0)
    }

    @Test func `what waits becomes more urgent, never less`() {
        var queue = UrgencyQueue<String>(oldestEvery: 100)
        queue.push("a", id: 1, priority: 1)
        queue.push("b", id: 2, priority: 5)
        #expect(queue.raise(id: 1, to: 9) && queue.raise(id: 2, to: 2) && !queue.raise(id: 3, to: 9))
        queue.push("c", id: 3, priority: 4)
        #expect([queue.pop(), queue.pop(), queue.pop()] == ["a", "b", "c"])
    }
}
