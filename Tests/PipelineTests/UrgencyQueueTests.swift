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

    @Test func `a moved element is as urgent as it was`() {
        var (queue, other) = (UrgencyQueue<String>(oldestEvery: 100), UrgencyQueue<String>(oldestEvery: 100))
        queue.push("a", id: 1, priority: 5)
        queue.push("b", id: 2, priority: 9)
        other.push("c", id: 3, priority: 7)
        for id in [1, 2, 4] as [UInt64] { queue.move(id, to: &other) }
        #expect(queue.isEmpty && [other.pop(), other.pop(), other.pop(), other.pop()] == ["b", "c", "a", nil])
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
