import Glibc
import PipelineSupport
import Testing

@testable import Pipeline
@testable import PipelineFetching

/// The cost of a queue's calls must not grow with what waits: eight times as many elements may cost 25 times as much,
/// while a queue that looks at all of them for each costs some 64 times as much.
@Suite(.serialized) struct QueueCostTests {
    /// CPU seconds of the calling thread, the least of a few rounds.
    private static func cost(_ body: () -> Void) -> Double {
        func now() -> Double {
            var time = timespec()
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
            return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
        }
        return (0..<3).map { _ in
            let began = now()
            body()
            return now() - began
        }.min() ?? 0
    }

    private static func expectNearlyLinear(_ what: String, _ body: (Int) -> Void) {
        let (few, many) = (cost { body(500) }, cost { body(4000) })
        #expect(many < 25 * few, "\(what): \(few) s for 500, \(many) s for 4,000")
    }

    @Test func `work that is pushed and popped or removed`() {
        Self.expectNearlyLinear("popped") { count in
            var queue = UrgencyQueue<Int>(oldestEvery: 4)
            for id in 0..<count { queue.push(id, id: UInt64(id), priority: UInt8(id % 3)) }
            while queue.pop() != nil {}
        }
        Self.expectNearlyLinear("raised and removed") { count in
            var queue = UrgencyQueue<Int>(oldestEvery: 4)
            for id in 0..<count { queue.push(id, id: UInt64(id), priority: 1) }
            for id in (0..<count).reversed() {
                queue.raise(id: UInt64(id), to: 2)
                _ = queue.remove(id: UInt64(id))
            }
            #expect(queue.isEmpty)
        }
    }

    @Test(arguments: [1, 1000]) func `transfers that begin and end, or are cancelled while they wait`(origins: Int) {
        func admission(_ count: Int) -> TransferAdmission<Int> {
            var admission = TransferAdmission<Int>(FetchConfiguration())
            for id in 0..<count {
                admission.add(id, id: UInt64(id), origin: "http://\(id % origins).test", priority: 5, now: 0)
            }
            return admission
        }
        Self.expectNearlyLinear("ended") { count in
            var admission = admission(count)
            while case .begin(let id) = admission.next(now: 0) { admission.end(UInt64(id)) }
            #expect(admission.waitingCount == 0)
        }
        Self.expectNearlyLinear("cancelled") { count in
            var admission = admission(count)
            for id in (0..<count).reversed() { _ = admission.remove(UInt64(id)) }
            #expect(admission.waitingCount == 0)
        }
    }

    @Test func `loads of a loader that begin and end, or are cancelled while they wait`() {
        func queue(_ keys: [LoadKey], isPrefetch: Bool) -> LoaderQueue {
            var queue = LoaderQueue(LoaderConfiguration())
            for (id, key) in keys.enumerated() { _ = queue.add(UInt64(id + 1), key, isPrefetch: isPrefetch) }
            return queue
        }
        let keys = (0..<4000).map { LoadKey(ImageRequest(.url("http://origin.test/\($0)"))) }
        for isPrefetch in [false, true] {
            Self.expectNearlyLinear("ended") { count in
                var queue = queue(Array(keys.prefix(count)), isPrefetch: isPrefetch)
                while let members = queue.next() { for member in members { queue.end(member) } }
                #expect(queue.members.isEmpty)
            }
            Self.expectNearlyLinear("cancelled") { count in
                var queue = queue(Array(keys.prefix(count)), isPrefetch: isPrefetch)
                for member in (1...UInt64(count)).reversed() { queue.end(member) }
                #expect(queue.members.isEmpty)
            }
        }
    }

    /// How many values a value consists of.
    private static func size(of value: Any) -> Int {
        Mirror(reflecting: value).children.reduce(1) { $0 + size(of: $1.value) }
    }

    @Test func `a loader's queue keeps nothing of what has ended or joined another load`() {
        let key = LoadKey(ImageRequest(.url("http://origin.test/a")))
        var queue = LoaderQueue(LoaderConfiguration())
        queue.suspend(true)
        for (round, isPrefetch) in [true, false, true].enumerated() {
            _ = queue.add(UInt64(round * 1000 + 1), key, isPrefetch: isPrefetch)
            let one = Self.size(of: queue)
            for member in 2...1000 {
                _ = queue.add(UInt64(round * 1000 + member), key, isPrefetch: isPrefetch)
                queue.end(UInt64(round * 1000 + member))
            }
            #expect(Self.size(of: queue) <= one + 8)
        }
    }
}
