import TestSupport
import Testing
import Variants

@testable import Pipeline

@Suite struct LoaderQueueTests {
    private static func key(_ name: String, _ change: (inout ImageRequest) -> Void = { _ in }) -> LoadKey {
        var request = ImageRequest(.url("http://origin.test/\(name)"))
        change(&request)
        return LoadKey(request)
    }

    private static func queue(_ change: (inout LoaderConfiguration) -> Void = { _ in }) -> LoaderQueue {
        var configuration = LoaderConfiguration()
        configuration.maxConcurrentLoads = 1
        change(&configuration)
        return LoaderQueue(configuration)
    }

    /// The loads in the order in which they begin, one at a time.
    private static func order(_ queue: inout LoaderQueue) -> [LoaderQueue.Member] {
        var order: [LoaderQueue.Member] = []
        while let members = queue.next() {
            order += members
            for member in members { queue.end(member) }
        }
        return order
    }

    @Test func `what decides on the bytes makes requests the same`() throws {
        let recipe = try Recipe("thumbnail:30")
        #expect(Self.key("a") == Self.key("a") && Self.key("a") != Self.key("b"))
        #expect(Self.key("a") { $0.recipe = recipe } != Self.key("a"))
        let same = try Recipe("thumbnail:30x30")
        #expect(Self.key("a") { $0.recipe = recipe } == Self.key("a") { $0.recipe = same })
        let changes: [(inout ImageRequest) -> Void] = [
            { $0.policy = .reload }, { $0.storage = [] }, { $0.sourceID = "x" }, { $0.negotiated = [.webp] },
        ]
        for change in changes { #expect(Self.key("a", change) != Self.key("a")) }
        #expect(
            Self.key("a") {
                $0.priority = .high
                $0.delay = .seconds(1)
                $0.finishWhenAbandoned = true
            } == Self.key("a"))
    }

    @Test func `loads begin by urgency, then in the order of the configuration, prefetches last and in theirs`() {
        for isNewestFirst in [false, true] {
            var queue = Self.queue { if isNewestFirst { $0.newestFirst = true } }
            for member in 1...3 { _ = queue.add(UInt64(member), Self.key("p\(member)"), isPrefetch: true) }
            for member in 4...7 { _ = queue.add(UInt64(member), Self.key("\(member)"), isPrefetch: false) }
            queue.setPriority(5, .high)
            queue.setPriority(6, .low)
            let order = Self.order(&queue)
            #expect(order == [5] + (isNewestFirst ? [7, 4] : [4, 7]) + [6, 1, 2, 3])
        }
    }

    @Test func `a prefetch that is raised begins as a load does`() {
        var queue = Self.queue()
        for member in 1...3 as ClosedRange<UInt64> {
            _ = queue.add(member, Self.key("p\(member)"), isPrefetch: true, priority: .low)
        }
        _ = queue.add(4, Self.key("a"), isPrefetch: false)
        queue.setPriority(3, .low)
        queue.setPriority(2, .high)
        #expect(queue.statistics.prefetches == 2)
        #expect(Self.order(&queue) == [2, 4, 1, 3])
        #expect(queue.statistics.ended == 4)
    }

    @Test func `the same request takes one place, and a load makes a prefetch one`() {
        var queue = Self.queue()
        for member in 1...2 { _ = queue.add(UInt64(member), Self.key("a"), isPrefetch: true) }
        _ = queue.add(3, Self.key("b"), isPrefetch: false)
        _ = queue.add(4, Self.key("a"), isPrefetch: false)
        #expect(queue.statistics.waiting == 2 && queue.statistics.prefetches == 0)
        // Asked for later than the other.
        #expect(queue.next() == [3])
        #expect(queue.next() == nil)
        queue.end(3)
        #expect(queue.next() == [1, 2, 4])
        // One that joins what runs begins at once.
        #expect(queue.add(5, Self.key("a"), isPrefetch: true).beginsNow)
        for member in [1, 2, 4] as [UInt64] { queue.end(member) }
        #expect(queue.statistics.running == 1)
        queue.end(5)
        #expect(queue.statistics.running == 0 && queue.statistics.ended == 2)
    }

    @Test func `prefetches have their share of the loads at a time, and one at least`() {
        for (share, count) in [(0.5, 2), (0, 1), (1, 4)] {
            var queue = Self.queue {
                $0.maxConcurrentLoads = 4
                $0.prefetchShare = share
            }
            for member in 1...9 { _ = queue.add(UInt64(member), Self.key("\(member)"), isPrefetch: true) }
            var begun = 0
            while queue.next() != nil { begun += 1 }
            #expect(begun == count)
            _ = queue.add(10, Self.key("10"), isPrefetch: false)
            #expect((queue.next() == [10]) == (count < 4))
        }
    }

    @Test func `a window ends the oldest that waits, then the oldest that runs, and no prefetch`() {
        var queue = Self.queue {
            $0.maxConcurrentLoads = 2
            $0.maxWaiting = 3
        }
        _ = queue.add(1, Self.key("p"), isPrefetch: true)
        for member in 2...4 {
            #expect(queue.add(UInt64(member), Self.key("\(member)"), isPrefetch: false).superseded == [])
        }
        #expect(queue.next() == [2])
        #expect(queue.next() == [3])
        #expect(queue.add(5, Self.key("5"), isPrefetch: false).superseded == [4])
        #expect(queue.add(6, Self.key("5"), isPrefetch: false).superseded == [])
        #expect(queue.add(7, Self.key("7"), isPrefetch: false).superseded == [5, 6])
        #expect(queue.next() == nil)
        var full = Self.queue {
            $0.maxConcurrentLoads = 2
            $0.maxWaiting = 2
        }
        for member in 1...2 { _ = full.add(UInt64(member), Self.key("\(member)"), isPrefetch: false) }
        while full.next() != nil {}
        #expect(full.add(3, Self.key("3"), isPrefetch: false).superseded == [1])
        #expect(full.statistics.superseded == 1 && full.statistics.running == 1 && full.statistics.waiting == 1)
    }

    @Test func `asking again does not put a request behind others, unless the newest come first`() {
        for (isNewestFirst, order) in [(false, [1, 3, 2]), (true, [1, 3, 2])] as [(Bool, [UInt64])] {
            var queue = Self.queue { if isNewestFirst { $0.newestFirst = true } }
            _ = queue.add(1, Self.key("a"), isPrefetch: false)
            _ = queue.add(2, Self.key("b"), isPrefetch: false)
            _ = queue.add(3, Self.key("a"), isPrefetch: false)
            #expect(Self.order(&queue) == order)
        }
    }

    @Test func `a place whose loads have ended is a prefetch again, and keeps it when a window ends its loads`() {
        var queue = Self.queue { $0.maxWaiting = 2 }
        _ = queue.add(1, Self.key("p"), isPrefetch: true)
        _ = queue.add(2, Self.key("x"), isPrefetch: false)
        _ = queue.add(3, Self.key("p"), isPrefetch: false)
        queue.end(3)
        #expect(queue.statistics.prefetches == 1)
        #expect(queue.add(4, Self.key("y"), isPrefetch: false).superseded == [])
        _ = queue.add(5, Self.key("p"), isPrefetch: false)
        #expect(queue.add(6, Self.key("z"), isPrefetch: false).superseded == [4])
        #expect(queue.add(7, Self.key("w"), isPrefetch: false).superseded == [5])
        #expect(queue.statistics.prefetches == 1 && queue.statistics.superseded == 3)
        #expect(Self.order(&queue) == [6, 7, 1])
    }

    @Test func `all end at once`() {
        var queue = Self.queue { $0.maxConcurrentLoads = 2 }
        for member in 1...5 { _ = queue.add(UInt64(member), Self.key("\(member)"), isPrefetch: member > 3) }
        #expect(queue.next() == [1])
        queue.suspend(true)
        queue.removeAll()
        let statistics = queue.statistics
        #expect(statistics.ended == 5 && statistics.waiting + statistics.running + statistics.prefetches == 0)
        #expect(statistics.isSuspended && queue.members.isEmpty)
        queue.end(1)
        queue.suspend(false)
        #expect(queue.statistics.ended == 5 && queue.next() == nil)
    }

    @Test func `no share of prefetches makes it stop`() {
        for share in [Double.nan, -.infinity, .infinity, -1] {
            var queue = Self.queue {
                $0.maxConcurrentLoads = 2
                $0.prefetchShare = share
            }
            for member in 1...3 { _ = queue.add(UInt64(member), Self.key("\(member)"), isPrefetch: true) }
            var begun = 0
            while queue.next() != nil { begun += 1 }
            #expect(begun == (share == .infinity ? 2 : 1))
        }
    }

    @Test func `while it is suspended nothing begins`() {
        var queue = Self.queue()
        _ = queue.add(1, Self.key("a"), isPrefetch: false)
        queue.suspend(true)
        #expect(queue.next() == nil && queue.statistics.isSuspended)
        queue.suspend(false)
        #expect(queue.next() == [1])
    }

    @Test(arguments: 0..<1000) func `any schedule keeps the bounds and begins each load once`(seed: Int) {
        var random = FuzzRandom(seed: UInt64(seed))
        var configuration = LoaderConfiguration()
        configuration.maxConcurrentLoads = 1 + random.below(4)
        configuration.newestFirst = random.below(2) == 1
        configuration.maxWaiting = random.below(2) == 0 ? nil : 1 + random.below(5)
        configuration.prefetchShare = Double(random.below(3)) / 2
        var queue = LoaderQueue(configuration)
        var (begun, open): (Set<LoaderQueue.Member>, Set<LoaderQueue.Member>) = ([], [])
        for step in 1...80 {
            let member = LoaderQueue.Member(step)
            switch random.below(6) {
            case 0...2:
                let isPrefetch = random.below(3) == 0
                let added = queue.add(
                    member, Self.key("\(random.below(8))"), isPrefetch: isPrefetch,
                    priority: member % 3 == 0 ? .high : .normal)
                open.insert(member)
                if added.beginsNow { begun.insert(member) }
                for old in added.superseded { #expect(open.remove(old) != nil && old != member) }
                if let window = configuration.maxWaiting {
                    let statistics = queue.statistics
                    #expect(statistics.waiting + statistics.running - statistics.prefetches <= window)
                }
            case 3:
                if let ended = open.sorted().dropFirst(random.below(max(1, open.count))).first {
                    open.remove(ended)
                    queue.end(ended)
                }
            case 4: queue.suspend(random.below(2) == 0)
            default: break
            }
            while let members = queue.next() {
                for member in members {
                    #expect(open.contains(member) && begun.insert(member).inserted)
                }
            }
            #expect(queue.statistics.running <= configuration.maxConcurrentLoads && Set(queue.members) == open)
        }
        queue.suspend(false)
        // Whatever ends, the rest begins.
        while let member = open.filter({ begun.contains($0) }).min() ?? open.min() {
            while let members = queue.next() {
                for member in members { #expect(begun.insert(member).inserted) }
            }
            #expect(begun.contains(member) || open.contains { begun.contains($0) })
            open.remove(member)
            queue.end(member)
        }
        #expect(queue.statistics.waiting == 0 && queue.statistics.running == 0 && queue.members.isEmpty)
    }
}
