import PipelineSupport
import Testing

@testable import Variants

@Suite struct GatheringRenderTests {
    /// A render of an original of 4000 × 3000 pixels.
    private struct Waiting: GatheringRender {
        var job: RenderJob
        var shareable: ShareableDecode? { job.shareable }
        var work: RenderWork { RenderWork(job) }
        var edge: Int { (job.recipe.steps.first as? Thumbnail)?.box.width ?? 0 }

        mutating func share(_ decode: SharedDecode) { job.shared = decode }

        init(_ edge: Int, of digest: String?, _ more: String = "") throws {
            job = RenderFixture.job([], .jpeg, 4000, 3000, try Recipe("thumbnail:\(edge)x\(edge)" + more))
            job.digest = digest
        }
    }

    private static func queue(_ renders: [Waiting], urgent: Int? = nil) -> RenderQueue<Waiting> {
        var queue = RenderQueue<Waiting>()
        for (id, render) in renders.enumerated() {
            queue.push(render, id: UInt64(id), priority: render.edge == urgent ? 9 : 5)
        }
        return queue
    }

    private static func edges(_ queue: UrgencyQueue<Waiting>) -> [Int] {
        var (queue, edges) = (queue, [Int]())
        while let next = queue.pop() { edges.append(next.edge) }
        return edges
    }

    private static func edges(_ queue: RenderQueue<Waiting>) -> [Int] {
        var (queue, edges) = (queue, [Int]())
        while let (first, others) = queue.pop() { edges += [first.edge] + Self.edges(others) }
        return edges
    }

    @Test func `the most urgent takes those along that share its decode, and they keep order and urgency`() throws {
        var queue = Self.queue(
            try [
                Waiting(1000, of: "a"), Waiting(30, of: "b"), Waiting(500, of: "a"), Waiting(60, of: "a", ",sharpen"),
                Waiting(50, of: nil), Waiting(400, of: "a"), Waiting(300, of: "a"),
            ], urgent: 400)
        let popped = queue.pop()
        let (first, others) = try #require(popped)
        #expect(first.edge == 400 && Self.edges(others) == [1000, 500, 300])
        #expect(first.job.shared?.targets.map(\.size.width) == [1000, 500, 400, 300])
        #expect(first.job.shared?.members == 4 && first.job.shared?.name == "a")
        var left = others
        while let other = left.pop() { #expect(other.job.shared == first.job.shared) }
        #expect(Self.edges(queue) == [30, 60, 50])
        // Later renders form the next gathering.
        queue.push(try Waiting(200, of: "b"), id: 9, priority: 5)
        let second = queue.pop()
        let next = try #require(second)
        #expect(next.first.edge == 30 && Self.edges(next.others) == [200] && queue.count == 2)
    }

    @Test func `one that is alone, of no name or too large to share decodes for itself`() throws {
        for (renders, left) in try [
            ([Waiting(100, of: "a")], [Int]()), ([Waiting(100, of: nil), Waiting(90, of: nil)], [90]),
            ([Waiting(100, of: "a"), Waiting(90, of: "b")], [90]),
            ([Waiting(3999, of: "a"), Waiting(3900, of: "a"), Waiting(3800, of: "a")], [3900, 3800]),
        ] {
            var queue = Self.queue(renders)
            let popped = queue.pop()
            let (first, others) = try #require(popped)
            #expect(first.edge == renders[0].edge && first.job.shared == nil && others.count == 0)
            #expect(Self.edges(queue) == left)
        }
        var empty = RenderQueue<Waiting>()
        let none = empty.pop()
        #expect(none.map { $0.others.count } == nil)
    }

    @Test func `at most sixteen are taken together`() throws {
        var queue = Self.queue(try (0..<40).map { _ in try Waiting(100, of: "a") })
        var sizes: [Int] = []
        while let (first, others) = queue.pop() {
            #expect(first.job.shared?.members == others.count + 1)
            sizes.append(others.count + 1)
        }
        #expect(sizes == [16, 16, 8])
    }

    /// Renders of `short` milliseconds or so, and of seconds.
    private static func mixed(_ edges: [Int], digest: String? = nil) throws -> RenderQueue<Waiting> {
        var queue = RenderQueue<Waiting>()
        for (id, edge) in edges.enumerated() {
            queue.push(try Waiting(edge, of: digest, edge > 1000 ? ":up,blur:60" : ""), id: UInt64(id), priority: 5)
        }
        return queue
    }

    private static func popped(_ queue: inout RenderQueue<Waiting>, mayBeLong: Bool) -> Int? {
        queue.pop(mayBeLong: mayBeLong)?.first.edge
    }

    @Test func `short renders go first, and each fourth turn is the oldest one's`() throws {
        var queue = try Self.mixed([5000, 5001, 30, 31, 32, 33, 34])
        var order: [Int] = []
        while let next = Self.popped(&queue, mayBeLong: true) { order.append(next) }
        #expect(order == [30, 31, 32, 5000, 33, 34, 5001])
    }

    @Test func `if no long render may begin, the oldest turn is that of a short one, and long ones stay`() throws {
        var queue = try Self.mixed([5000, 30, 31, 32, 33, 5001])
        var order: [Int] = []
        while let next = Self.popped(&queue, mayBeLong: false) { order.append(next) }
        #expect(order == [30, 31, 32, 33] && queue.count == 2)
        #expect(Self.popped(&queue, mayBeLong: true) == 5000)
    }

    @Test func `a more urgent long render goes before short ones`() throws {
        var queue = try Self.mixed([30, 31])
        queue.push(try Waiting(5000, of: nil, ":up,blur:60"), id: 9, priority: 9)
        #expect(Self.popped(&queue, mayBeLong: true) == 5000)
        #expect(Self.popped(&queue, mayBeLong: false) == 30)
    }

    @Test func `if no long render may begin, only as many share a decode as are short together`() throws {
        func queue() throws -> RenderQueue<Waiting> {
            // Some 90 ms each as PNG, and 70 for the decode.
            try Self.mixed([700, 699, 698, 697, 696], digest: "a")
        }
        func isLong(_ group: (first: Waiting, others: UrgencyQueue<Waiting>)) -> Bool {
            RenderCosts().isLong([group.first.work] + group.others.elements.map(\.work))
        }
        var (free, bound) = (try queue(), try queue())
        let taken = free.pop(mayBeLong: true)
        let all = try #require(taken)
        #expect(all.others.count == 4 && isLong(all))
        let some = bound.pop(mayBeLong: false)
        let group = try #require(some)
        #expect(!isLong(group) && (1...3).contains(group.others.count) && bound.count == 4 - group.others.count)
        #expect(group.first.job.shared?.members == group.others.count + 1)
    }

    /// How many values a value consists of.
    private static func size(of value: Any) -> Int {
        Mirror(reflecting: value).children.reduce(1) { $0 + size(of: $1.value) }
    }

    @Test func `what is removed leaves nothing behind, and learned costs sort renders again`() throws {
        var queue = RenderQueue<Waiting>()
        let empty = Self.size(of: queue)
        for id in 0..<200 { queue.push(try Waiting(100, of: "\(id % 3)"), id: UInt64(id), priority: UInt8(id % 2)) }
        for id in (0..<200).reversed() { #expect(queue.remove(id: UInt64(id)) != nil) }
        #expect(queue.isEmpty && Self.size(of: queue) == empty && queue.pop() == nil)
        queue = try Self.mixed([700, 30])
        var costs = RenderCosts()
        let render = try Waiting(700, of: nil)
        costs.learn(render.work, milliseconds: 8 * (render.work.decode + render.work.rest))
        #expect(costs.isLong(render.work) && queue.pop(costs, mayBeLong: false)?.first.edge == 30)
        #expect(queue.pop(costs, mayBeLong: false) == nil && queue.pop(costs)?.first.edge == 700)
    }
}
