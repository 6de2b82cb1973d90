@testable import PipelineFetching
import Testing

/// Loads under a manual clock that receive as many bytes a second as a test says.
private struct Loads: ~Copyable {
    struct Load {
        var origin: String
        var bytesPerSecond: Double
        var began: Double?
        var received = 0.0
        var hasEnded = false
    }

    var admission: TransferAdmission<Int>
    var loads: [Load] = []
    var now = 0.0
    /// Numbers of the loads in the order in which they began.
    var order: [Int] = []
    /// Numbers of the loads that gave way.
    var gaveWay: [Int] = []

    init(_ change: (inout FetchConfiguration) -> Void = { _ in }) {
        var configuration = FetchConfiguration()
        change(&configuration)
        admission = TransferAdmission(configuration)
    }

    @discardableResult mutating func add(
        _ origin: String, bytesPerSecond: Double = 0, priority: UInt8 = 5, mayGiveWay: Bool = true
    ) -> Int {
        let number = loads.count
        loads.append(Load(origin: origin, bytesPerSecond: bytesPerSecond))
        admission.add(number, id: UInt64(number), origin: origin, priority: priority, mayGiveWay: mayGiveWay)
        return number
    }

    var underWay: [Int] { loads.indices.filter { loads[$0].began != nil && !loads[$0].hasEnded } }

    mutating func begin() {
        while case .begin(let number) = admission.next(now: now) {
            loads[number].began = now
            order.append(number)
        }
    }

    mutating func end(_ number: Int) {
        loads[number].hasEnded = true
        admission.end(UInt64(number))
    }

    /// Lets time pass in the steps of the loop that runs libcurl.
    mutating func pass(_ seconds: Double) {
        begin()
        for _ in 0..<Int((seconds / 0.05).rounded()) {
            now += 0.05
            for number in underWay {
                loads[number].received += loads[number].bytesPerSecond * 0.05
                admission.note(UInt64(number), received: Int(loads[number].received), now: now)
            }
            while let (id, _) = admission.givingWay(now: now) {
                gaveWay.append(Int(id))
                end(Int(id))
                begin()
            }
            begin()
        }
    }
}

@Suite struct TransferAdmissionTests {
    @Test(arguments: [0, 1, 9_999], [0.0, 0.5, 3, 4, 4.5, 7, 20])
    func `sixteen origins that are silent or slow hold up another one for a second`(
        bytesPerSecond: Int, arrival: Double
    ) {
        var loads = Loads()
        for number in 0..<128 { loads.add("http://slow\(number % 16)", bytesPerSecond: Double(bytesPerSecond)) }
        loads.pass(arrival)
        let good = loads.add("http://good", bytesPerSecond: 1e6)
        loads.pass(1.1)
        #expect(loads.loads[good].began != nil && !loads.gaveWay.contains(good))
        // Within every bound all the time, since none is ever taken back.
        #expect(loads.underWay.count <= 80)
        for number in 0..<16 { #expect(loads.underWay.count { loads.loads[$0].origin == "http://slow\(number)" } <= 6) }
    }

    @Test func `none gives way before a quarter of the time for heads has passed, nor without need`() {
        var loads = Loads { $0.headerSeconds = 40 }
        for number in 0..<80 { loads.add("http://slow\(number % 16)") }
        loads.pass(60)
        #expect(loads.underWay.count == 80 && loads.gaveWay.isEmpty)

        var crowd = Loads { $0.headerSeconds = 40 }
        for number in 0..<81 { crowd.add("http://slow\(number % 16)") }
        crowd.pass(10.9)
        #expect(crowd.underWay.count == 80 && crowd.gaveWay.isEmpty)
        crowd.pass(0.2)
        // The first sixteen began at once and have been slow for longest.
        #expect(crowd.underWay.count == 80 && crowd.gaveWay.count == 1 && crowd.gaveWay[0] < 16)
    }

    @Test func `a load of an origin that has all it may have makes none give way`() {
        var loads = Loads { $0.slots = 1 }
        for number in 0..<5 { loads.add("http://slow\(number)") }
        loads.pass(20)
        #expect(loads.underWay.count == 5)
        var full = Loads { ($0.slots, $0.perHost) = (1, 5) }
        for _ in 0..<6 { full.add("http://slow") }
        full.pass(20)
        #expect(full.underWay.count == 5 && full.gaveWay.isEmpty)
    }

    @Test func `a slow transfer that speeds up holds a slot again, and does not give way`() {
        var loads = Loads { $0.slots = 1 }
        for number in 0..<5 { loads.add("http://slow\(number)") }
        loads.pass(5)
        #expect(loads.underWay.count == 5)
        loads.loads[0].bytesPerSecond = 1e6
        loads.pass(0.1)
        let next = loads.add("http://good", bytesPerSecond: 1e6)
        loads.pass(10)
        // Only transfers that receive hold the slot, so it would be in vain to end a slow one.
        #expect(loads.gaveWay.isEmpty && loads.loads[next].began == nil)
        loads.end(0)
        loads.pass(0.05)
        #expect(loads.loads[next].began != nil && loads.gaveWay.isEmpty)
    }

    @Test func `transfers that receive keep their slots`() {
        var loads = Loads { $0.slots = 2 }
        for number in 0..<4 { loads.add("http://good\(number)", bytesPerSecond: 11_000) }
        loads.pass(30)
        #expect(loads.underWay == [0, 1] && loads.gaveWay.isEmpty)
    }

    @Test func `a request that may change state does not give way`() {
        var loads = Loads { $0.slots = 1 }
        for number in 0..<5 { loads.add("http://slow\(number)", mayGiveWay: number > 0) }
        loads.pass(6)
        loads.add("http://good", bytesPerSecond: 1e6)
        loads.pass(1)
        #expect(loads.gaveWay == [1])
    }

    @Test func `the most urgent is next, then the one whose origin has the fewest, then the oldest`() {
        var loads = Loads { ($0.slots, $0.perHost) = (1, 6) }
        for (origin, priority) in [("a", 5), ("a", 5), ("b", 5), ("c", 1), ("c", 9)] as [(String, UInt8)] {
            loads.add(origin, priority: priority)
        }
        // Slow ones stay under way, so that their origins' counts grow.
        loads.pass(6)
        #expect(loads.order == [4, 0, 2, 1, 3])
    }

    @Test func `origins with as many under way take turns, however many of each wait`() {
        var loads = Loads { $0.slots = 2 }
        for origin in ["a", "b"] { for _ in 0..<3 { loads.add(origin, bytesPerSecond: 20_000) } }
        loads.begin()
        let new = loads.add("c", bytesPerSecond: 20_000)
        for _ in 0..<4 {
            loads.end(loads.underWay[0])
            loads.begin()
        }
        #expect(loads.order == [0, 3, new, 1, 4, 2])
    }

    @Test func `a stream of new origins leaves others their turns`() {
        var loads = Loads { $0.slots = 1 }
        for _ in 0..<3 { loads.add("a", bytesPerSecond: 20_000) }
        loads.begin()
        for number in 0..<6 {
            loads.add("new \(number)", bytesPerSecond: 20_000)
            loads.end(loads.order[loads.order.count - 1])
            loads.begin()
        }
        #expect(loads.order.filter { $0 < 3 }.count == 3)
    }

    @Test func `each eighth is the oldest, and what waits can become more urgent`() {
        var loads = Loads { ($0.slots, $0.perHost) = (1, 100) }
        for _ in 0..<2 { loads.add("a", priority: 1) }
        for _ in 0..<9 { loads.add("a", priority: 5) }
        loads.admission.raise(1, to: 9)
        for _ in 0..<9 {
            loads.begin()
            loads.end(loads.order[loads.order.count - 1])
        }
        #expect(loads.order == [1, 2, 3, 4, 5, 6, 7, 0, 8])
    }

    @Test func `the rate delays what it must, and looking takes nothing from it`() {
        var loads = Loads { $0.rate = 1 }
        for _ in 0..<3 { loads.add("a") }
        let other = loads.add("b")
        loads.begin()
        #expect(loads.underWay == [0, other])
        for _ in 0..<5 {
            guard case .wait(let seconds) = loads.admission.next(now: 0.5) else {
                Issue.record("it began")
                return
            }
            #expect(seconds == 0.5)
            #expect(loads.admission.givingWay(now: 0.5) == nil)
        }
        loads.now = 1
        loads.begin()
        #expect(loads.underWay == [0, 1, other])
    }

    @Test func `what is removed does not begin, and its origin is forgotten`() {
        var loads = Loads { $0.slots = 1 }
        for _ in 0..<3 { loads.add("a") }
        loads.begin()
        #expect(loads.admission.remove(1) && !loads.admission.remove(1) && !loads.admission.remove(0))
        #expect(loads.admission.waitingCount == 1)
        loads.end(0)
        #expect(loads.admission.removeAll() == [2])
        #expect(loads.admission.waitingCount == 0)
    }
}
