import Glibc
import Pipeline
import TestSupport

/// Runs rounds of workers on one folder and kills them at random points; after each round it compares the folder with
/// the ledgers.
struct KillHarness {
    private let program: String
    private let home: String
    private var numbers: Numbers
    private var folder = ""
    private var ledgers: [String] = []
    private var budget = 0
    private var epoch = 0
    private var isRebuilt = false

    private(set) var problems: [String] = []
    private(set) var rounds = 0
    private var processes = 0
    private var kills = 0
    private var windowKills = 0
    private var callsCut = 0
    private var checked = 0
    private var evicted = 0
    private var marks = 0

    /// The output of a worker when it reaches the call in which it will be killed, one of its first `maxCalls`.
    static let mark = "now"
    private static let maxCalls = 80

    /// Rounds in one folder before its index is overwritten or a new folder is used.
    private static let roundsPerEpoch = 6

    init(program: String, home: String, seed: Int) {
        self.program = program
        self.home = home
        numbers = Numbers(seed)
    }

    var summary: String {
        """
        rounds \(rounds), processes \(processes), killed \(kills), of them within a call that writes \(callsCut), between rename and commit \(windowKills)
        entries compared \(checked), gone because evicted \(evicted), renamed and never committed, reclaimed \(marks)
        problems \(problems.count)
        """
    }

    /// - Returns: false if there was a problem; `problems` describes it.
    mutating func round() -> Bool {
        if rounds % Self.roundsPerEpoch == 0 { beginEpoch() }
        rounds += 1
        let count = 2 + numbers.below(3)
        let log = "\(home)/window"
        unlink(log)
        var workers: [HelperProgram] = []
        for id in 0..<count {
            let ledger = "\(home)/ledger-\(epoch)-\(id)"
            if !ledgers.contains(ledger) { ledgers.append(ledger) }
            // Half of the workers kill themselves right after renaming one of their first files into place.
            let dieAt = numbers.below(2) == 0 ? 1 + numbers.below(5) : 0
            let words =
                [program, "work", folder, ledger] + [id, numbers.below(1 << 30), budget, dieAt].map(String.init)
            do {
                let tellAt = 1 + numbers.below(Self.maxCalls)
                workers.append(try HelperProgram(words + [log, String(tellAt)]))
            } catch {
                problems.append("round \(rounds): \(error)")
                return false
            }
        }
        processes += count
        for worker in workers { _ = worker.line(startingWith: "ready") }
        for worker in workers.shuffled(using: &numbers) {
            // The worker announces the chosen call as it begins: the kill hits that call or a later one.
            _ = worker.line(startingWith: Self.mark)
            worker.stop()
        }
        for (id, worker) in workers.enumerated() {
            if worker.waitForEnd() == 128 + SIGKILL { kills += 1 }
            if Ledger.read("\(home)/ledger-\(epoch)-\(id)").last.map({ $0.end == nil }) == true { callsCut += 1 }
            for line in worker.text.split(separator: "\n") where line.hasPrefix("!") {
                problems.append("round \(rounds), worker \(id): \(line.dropFirst(2))")
            }
        }
        var info = stat()
        if stat(log, &info) == 0 { windowKills += Int(info.st_size) }
        do throws(StoreError) {
            try check()
        } catch {
            problems.append("round \(rounds): \(error.code): \(error)")
        }
        return problems.isEmpty
    }

    private mutating func beginEpoch() {
        epoch += 1
        ledgers = []
        // Alternate between a budget so large that nothing may be missing and one too small for most entries.
        budget = epoch % 2 == 1 ? 1 << 30 : 1_500_000
        isRebuilt = epoch % 3 == 0 && !folder.isEmpty
        guard isRebuilt else {
            folder = "\(home)/cache-\(epoch)"
            return
        }
        // Reuse the folder with its index overwritten: the store starts a new index and reclaims the old one's bodies.
        let file = open("\(folder)/cache.sqlite", O_WRONLY)
        let garbage = [UInt8](repeating: 0x5A, count: 8_192)
        _ = pwrite(file, garbage, garbage.count, 0)
        close(file)
    }

    // MARK: Checking

    /// Compares an idle folder with what the ledgers say was stored in it.
    mutating func compare(_ folder: String, ledgers: [String], budget: Int) {
        self.folder = folder
        self.ledgers = ledgers
        self.budget = budget
        do throws(StoreError) {
            try check()
        } catch {
            problems.append("\(error.code): \(error)")
        }
    }

    private mutating func check() throws(StoreError) {
        marks += Self.names("\(folder)/temporary").filter { $0.contains(".") }.count
        let store = try Worker.open(folder, budget: budget, graceSeconds: 0)
        defer { store.close() }
        let expectation = Expectation(ledgers.flatMap(Ledger.read))
        var missingVariants = 0
        // Sources with the same bytes share one entry, which is evicted once.
        var missingBodies: Set<Int> = []
        for worker in 0..<ledgers.count {
            for number in 0..<Contents.keysPerWorker {
                let isMissing = try checkVariant(store, worker, number, expectation.variant(worker, number))
                missingVariants += isMissing ? 1 : 0
            }
            for number in 0..<Contents.sourcesPerWorker {
                try checkRecord(store, worker, number, expectation.record(worker, number))
                guard let seed = expectation.mustHaveBody(worker, number) else { continue }
                checked += 1
                guard let body = try store.originalBody(digest: Contents.digest(seed)) else {
                    missingBodies.insert(seed)
                    continue
                }
                if body != Contents.body(seed) { note("original \(seed) is torn") }
            }
        }
        try checkWhole(store, (missingVariants, missingBodies.count))
    }

    private mutating func note(_ problem: String) { problems.append("round \(rounds): \(problem)") }

    /// - Returns: whether the variant is missing although only eviction could have removed it.
    private mutating func checkVariant(
        _ store: DiskStore, _ worker: Int, _ number: Int, _ allowed: Expectation.Allowed
    ) throws(StoreError) -> Bool {
        checked += 1
        guard let (entry, body) = try Contents.variant(worker, number, in: store) else {
            return !allowed.mayBeAbsent
        }
        let isAllowed = allowed.seeds.contains { Contents.digest($0) == entry.digest }
        if !isAllowed { note("variant \(worker)/\(number) is none of what it may be: \(allowed.description)") }
        if Contents.digest(body) != entry.digest { note("variant \(worker)/\(number) is torn") }
        return false
    }

    private mutating func checkRecord(
        _ store: DiskStore, _ worker: Int, _ number: Int, _ allowed: Expectation.Allowed
    ) throws(StoreError) {
        checked += 1
        let records = try store.records(source: Contents.source(worker, number))
        guard let record = records.first else {
            if !allowed.mayBeAbsent { note("the record of \(worker)/\(number) is gone: \(allowed.description)") }
            return
        }
        let isAllowed = allowed.seeds.contains { Contents.digest($0) == record.digest }
        if records.count > 1 || !isAllowed {
            note("record \(worker)/\(number) is none of what it may be: \(allowed.description)")
        }
    }

    private mutating func checkWhole(
        _ store: DiskStore, _ missing: (variants: Int, originals: Int)
    ) throws(StoreError) {
        let counters = try store.statistics()
        for (name, tier, gone) in [
            ("variants", counters.variants, missing.variants), ("originals", counters.originals, missing.originals),
        ] {
            evicted += gone
            if gone > tier.evictions { note("\(gone) \(name) are gone, \(tier.evictions) were evicted") }
            if tier.bytes > budget { note("\(name) take \(tier.bytes) bytes of \(budget)") }
            if tier.corrupt > 0 { note("\(tier.corrupt) \(name) were found damaged") }
        }
        // Rebuilding the index counts as one corrupt record.
        if counters.records.corrupt > (isRebuilt ? 1 : 0) { note("\(counters.records.corrupt) records were damaged") }
        let report = try store.verify()
        if !report.isClean { note("\(report)") }
        let left = Self.names("\(folder)/temporary")
        if !left.isEmpty { note("left behind: \(left)") }
    }

    private static func names(_ folder: String) -> [String] {
        guard let stream = opendir(folder) else { return [] }
        defer { closedir(stream) }
        var names: [String] = []
        while let item = readdir(stream) {
            let name = withUnsafePointer(to: &item.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names
    }
}
