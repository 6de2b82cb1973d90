import Testing

@testable import Variants

@Suite struct RenderQueueTests {
    @Test func `the most urgent goes first, and equals in the order they came`() {
        var queue = RenderQueue<String>()
        for (id, (name, priority)) in [("a", 1), ("b", 9), ("c", 9), ("d", 5)].enumerated() {
            queue.push(name, id: UInt64(id), priority: UInt8(priority))
        }
        #expect([queue.pop(), queue.pop(), queue.pop(), queue.pop(), queue.pop()] == ["b", "c", "d", "a", nil])
    }

    @Test func `a stream of urgent work holds nothing up for ever`() {
        var queue = RenderQueue<Int>()
        queue.push(-1, id: 0, priority: 0)
        var taken: [Int] = []
        for number in 1...8 {
            queue.push(number, id: UInt64(number), priority: 9)
            if let next = queue.pop() { taken.append(next) }
        }
        #expect(taken.prefix(4).contains(-1))
    }

    @Test func `what becomes more urgent goes before what was, and nothing becomes less so`() {
        var queue = RenderQueue<String>()
        for (id, name) in ["a", "b", "c"].enumerated() { queue.push(name, id: UInt64(id), priority: 5) }
        queue.raise(id: 2, to: 9)
        queue.raise(id: 0, to: 1)
        queue.raise(id: 7, to: 9)
        #expect([queue.pop(), queue.pop(), queue.pop(), queue.pop()] == ["c", "a", "b", nil])
    }

    @Test func `what is taken out is not given to a worker`() {
        var queue = RenderQueue<String>()
        queue.push("a", id: 1, priority: 0)
        queue.push("b", id: 2, priority: 0)
        #expect(queue.remove(id: 1) == "a" && queue.remove(id: 1) == nil)
        #expect(queue.pop() == "b" && queue.count == 0)
    }
}

@Suite struct StartBackoffTests {
    @Test func `each failure in a row doubles the pause, up to half a minute, and a start that works ends it`() {
        var backoff = StartBackoff()
        var pauses: [Double] = []
        for _ in 0..<12 {
            #expect(backoff.delay(now: 1000 + 100) == 0)
            backoff = {
                var next = backoff; next.failed(RenderError(.workerUnavailable, "why"), now: 1000); return next
            }()
            pauses.append(backoff.delay(now: 1000))
        }
        let expected = [0.1, 0.2, 0.4, 0.8]
        #expect(zip(pauses, expected).allSatisfy { abs($0 - $1) < 1e-9 })
        #expect(pauses.last == 30 && backoff.reason?.message == "why")
        backoff.succeeded()
        #expect(backoff.delay(now: 1000) == 0 && backoff.reason == nil)
    }
}
