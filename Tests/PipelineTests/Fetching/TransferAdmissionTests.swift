@testable import PipelineFetching
import Testing

/// Loads under a manual clock that receive as many bytes a second as a test says.
private struct Loads: ~Copyable {
    struct Load {
        var origin: String
        var bytesPerSecond: Double
        /// The seconds that it takes; nil if it never ends.
        var seconds: Double?
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
        _ origin: String, at address: String? = nil, bytesPerSecond: Double = 0, seconds: Double? = nil,
        priority: UInt8 = 5, mayGiveWay: Bool = true
    ) -> Int {
        let number = loads.count
        loads.append(Load(origin: origin, bytesPerSecond: bytesPerSecond, seconds: seconds))
        admission.add(
            number, id: UInt64(number), origin: origin, address: address.flatMap { IPAddress($0) }, priority: priority,
            mayGiveWay: mayGiveWay, now: now)
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
                if let seconds = loads[number].seconds, now - (loads[number].began ?? now) >= seconds { end(number) }
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
    /// Returns an address in a separate network, or in a network that sixty origins share.
    private static func address(_ number: Int, isShared: Bool) -> String {
        isShared ? "10.\(number / 60).0.\(number % 60)" : "10.\(number / 200).\(number % 200).1"
    }

    @Test(arguments: [1, 16, 60, 240], [0, 1_000, 15_000, 100_000])
    func `origins that are silent or drip at any rate hold up another one for half a second`(
        origins: Int, bytesPerSecond: Int
    ) {
        for isShared in [false, true] {
            var loads = Loads()
            for number in 0..<origins {
                let address = Self.address(number, isShared: isShared)
                for _ in 0..<6 { loads.add("http://\(address)", at: address, bytesPerSecond: Double(bytesPerSecond)) }
            }
            for arrival in [0, 0.5, 3] {
                loads.pass(arrival)
                let good = loads.add("http://192.0.2.\(arrival)", at: "192.0.2.1", bytesPerSecond: 1e6, seconds: 0.2)
                loads.pass(0.6)
                #expect(loads.loads[good].began != nil && loads.gaveWay.isEmpty, "after \(arrival) s")
            }
            #expect(loads.underWay.count <= 512)
        }
    }

    @Test func `an origin that is quick has its share beside slow ones`() {
        var loads = Loads()
        for number in 0..<60 { loads.add("http://slow\(number)", bytesPerSecond: 100_000) }
        loads.pass(3)
        let good = (0..<30).map { _ in loads.add("http://good", bytesPerSecond: 1e6, seconds: 0.2) }
        loads.pass(2.2)
        #expect(good.allSatisfy { loads.loads[$0].hasEnded })
    }

    @Test(arguments: [0.0, 9_000]) func `origins that take long do not make each other give way`(bytesPerSecond: Double)
    {
        var loads = Loads()
        for number in 0..<180 { loads.add("http://late\(number / 6)", bytesPerSecond: bytesPerSecond, seconds: 6) }
        loads.pass(30)
        #expect(loads.loads.allSatisfy(\.hasEnded) && loads.gaveWay.isEmpty)
    }

    @Test func `what receives keeps its slots, and others of the same origins wait`() {
        var loads = Loads { $0.maxConcurrentTransfers = 2 }
        for number in 0..<6 { loads.add("http://good\(number % 2)", bytesPerSecond: 11_000) }
        loads.pass(30)
        #expect(loads.underWay == [0, 1] && loads.gaveWay.isEmpty)
        loads.end(0)
        loads.pass(0.05)
        #expect(loads.underWay == [1, 2])
    }

    @Test func `a slow transfer that speeds up holds a slot again`() {
        var loads = Loads { $0.maxConcurrentTransfers = 1 }
        loads.add("http://a")
        loads.pass(2)
        loads.loads[0].bytesPerSecond = 1e6
        loads.pass(0.1)
        let next = loads.add("http://a", bytesPerSecond: 1e6)
        loads.pass(10)
        #expect(loads.loads[next].began == nil)
        loads.end(0)
        loads.pass(0.05)
        #expect(loads.loads[next].began != nil && loads.gaveWay.isEmpty)
    }

    @Test func `a network has a quarter of all, whatever its origins are called, and the others what they need`() {
        var loads = Loads()
        for number in 0..<300 { loads.add("http://\(number)", at: "2001:db8:0:\(number)::1") }
        loads.pass(20)
        #expect(loads.underWay.count == 128 && loads.gaveWay.isEmpty)
        let other = loads.add("http://other", at: "2001:db8:1::1")
        loads.pass(0.6)
        #expect(loads.loads[other].began != nil)
        for number in 0..<128 { loads.end(number) }
        loads.pass(0.6)
        #expect(loads.underWay.count == 129)
    }

    @Test func `a name is counted with the network that it leads to, and waits if that has all it may have`() throws {
        let (full, free) = (try #require(IPAddress("192.0.2.7")), try #require(IPAddress("198.51.100.1")))
        var loads = Loads { $0.maxConcurrentTransfers = 1 }
        for number in 0..<10 { loads.add("http://name\(number)") }
        loads.pass(0.6)
        // Of 32 in all, eight may be in one network, and another may be in any other one.
        let admitted = (0..<10).map { loads.admission.connect(UInt64($0), to: $0 == 9 ? free : full) }
        #expect(admitted == (0..<10).map { $0 != 8 } && loads.underWay.count == 10)
        loads.loads[8].began = nil
        loads.admission.putBack(8, priority: 5)
        loads.pass(3)
        #expect(loads.admission.waitingCount == 1 && loads.loads[8].began == nil)
        loads.end(3)
        loads.pass(0.05)
        #expect(loads.loads[8].began != nil && loads.admission.connect(8, to: full))
        for number in loads.underWay { loads.end(number) }
        #expect(loads.admission.underWayCount == 0 && loads.admission.waitingCount == 0)
    }

    @Test func `at the limit one gives way to a new origin, after a quarter of the time for heads`() {
        var loads = Loads { ($0.maxConcurrentTransfers, $0.headTimeout) = (1, .seconds(40)) }
        for number in 0..<32 { loads.add("http://slow\(number)", at: "10.0.\(number > 4 ? number : 5).1") }
        // Of an origin that has one.
        loads.add("http://slow7", at: "10.0.7.1")
        loads.pass(30)
        #expect(loads.underWay.count == 32 && loads.gaveWay.isEmpty)
        let crowd = loads.add("http://crowd")
        loads.pass(0.6)
        // The network 10.0.5 has six of them, and the first began before the others.
        #expect(loads.gaveWay == [0] && loads.loads[crowd].began != nil)
        let next = loads.add("http://next")
        loads.pass(0.6)
        #expect(loads.gaveWay == [0, 1] && loads.loads[next].began != nil && loads.underWay.count == 32)

        var early = Loads { ($0.maxConcurrentTransfers, $0.headTimeout) = (1, .seconds(40)) }
        for number in 0..<33 { early.add("http://slow\(number)") }
        early.pass(10.9)
        #expect(early.underWay.count == 32 && early.gaveWay.isEmpty)
        early.pass(0.2)
        #expect(early.gaveWay == [0])
    }

    @Test func `a request that may change state does not give way`() {
        var loads = Loads { $0.maxConcurrentTransfers = 1 }
        for number in 0..<32 { loads.add("http://slow\(number)", mayGiveWay: number > 0) }
        loads.pass(6)
        loads.add("http://good", bytesPerSecond: 1e6)
        loads.pass(1)
        #expect(loads.gaveWay == [1])
    }

    @Test func `the most urgent is next, then the one whose origin has the fewest, then the oldest`() {
        var loads = Loads { ($0.maxConcurrentTransfers, $0.maxConcurrentTransfersPerHost) = (1, 6) }
        for (origin, priority) in [("a", 5), ("a", 5), ("b", 5), ("c", 1), ("c", 9)] as [(String, UInt8)] {
            loads.add(origin, priority: priority)
        }
        // Slow ones stay under way, so that their origins' counts grow.
        loads.pass(6)
        #expect(loads.order == [4, 0, 2, 1, 3])
    }

    @Test func `origins with as many under way take turns, however many of each wait`() {
        var loads = Loads { $0.maxConcurrentTransfers = 2 }
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
        var loads = Loads { $0.maxConcurrentTransfers = 1 }
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
        var loads = Loads { ($0.maxConcurrentTransfers, $0.maxConcurrentTransfersPerHost) = (1, 100) }
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
        var loads = Loads { $0.maxRequestsPerSecond = 1 }
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
        var loads = Loads { $0.maxConcurrentTransfers = 1 }
        for _ in 0..<3 { loads.add("a") }
        loads.begin()
        #expect(loads.admission.remove(1) && !loads.admission.remove(1) && !loads.admission.remove(0))
        #expect(loads.admission.waitingCount == 1)
        loads.end(0)
        #expect(loads.admission.removeAll() == [2])
        #expect(loads.admission.waitingCount == 0)
    }
}
