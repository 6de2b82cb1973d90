import FaultyCalls
import Glibc
import Pipeline
import TestSupport

/// The program of the store's crash tests.
///
///     store-worker work FOLDER LEDGER ID SEED BUDGET DIE_AT LOG TELL_AT    works until killed; announces one call
///     store-worker kill HOME ROUNDS SEED                   runs ROUNDS rounds of killing workers, checks after each
///     store-worker fail HOME KINDS ERROR INTERVAL SEED     works while system calls fail, checks afterwards
///     store-worker hold FOLDER                             looks up while system calls of a writer are blocked
///     store-worker overlap FOLDER COUNTERS COUNT           stores and counts overlaps with others' checkpoints
///     store-worker stress FOLDER READS SEED                checks READS bodies while the store changes
///     store-worker render-worker MEMORY                    renders in a worker, as a program that never asks whether it is one
@main struct StoreWorker {
    static func main() {
        let words = CommandLine.arguments
        switch words.dropFirst().first {
        case "work" where words.count == 10: work(Array(words.dropFirst(2)))
        case "kill" where words.count == 5: torture(Array(words.dropFirst(2)))
        case "fail" where words.count == 7: endure(Array(words.dropFirst(2)))
        case "hold" where words.count == 3: report { try Contention.lookUpWhileHeld(words[2]) }
        case "overlap" where words.count == 5:
            report { try Contention.storeWatched(words[2], words[3], Int(words[4]) ?? 0) }
        case "stress" where words.count == 5:
            report { try Contention.stress(words[2], reads: Int(words[3]) ?? 0, seed: Int(words[4]) ?? 0) }
        case "render-worker": OwnWorker.render()
        default:
            fail(
                "usage: store-worker work FOLDER LEDGER ID SEED BUDGET DIE_AT LOG TELL_AT | kill HOME ROUNDS SEED | fail HOME KINDS ERROR INTERVAL SEED | hold FOLDER | overlap FOLDER COUNTERS COUNT | stress FOLDER READS SEED"
            )
        }
    }

    private static func say(_ text: String) {
        let bytes = Array((text + "\n").utf8)
        _ = write(STDOUT_FILENO, bytes, bytes.count)
    }

    private static func fail(_ text: String) -> Never {
        say("! \(text)")
        exit(1)
    }

    /// Prints the result of `work` and exits; an error makes the exit status 1.
    private static func report(_ work: () throws -> String) {
        do { say(try work()) } catch { fail("\(error)") }
        exit(0)
    }

    private static func work(_ words: [String]) {
        guard let ledger = Ledger(path: words[1]), let id = Int(words[2]), let seed = Int(words[3]),
            let budget = Int(words[4]), let dieAt = Int(words[5]), let tellAt = Int(words[7])
        else { fail("bad arguments") }
        var worker = Worker(folder: words[0], ledger: ledger, id: id, seed: seed)
        if dieAt > 0 { faulty_die_after_renames(Int32(dieAt), words[6]) }
        do {
            let store = try Worker.open(words[0], budget: budget)
            say("ready")
            var calls = 0
            while true {
                calls += 1
                if calls == tellAt { say(KillHarness.mark) }
                if let problem = worker.step(store) { fail(problem) }
                if let failure = worker.failures.first { fail("a call failed: \(failure.value.last)") }
            }
        } catch {
            fail("\(error)")
        }
    }

    /// Works in a folder; in every other turn, each INTERVALth system call of KINDS on it fails with the errno ERROR.
    private static func endure(_ words: [String]) {
        guard let kinds = Int32(words[1]), let error = Int32(words[2]), let interval = Int32(words[3]),
            let seed = Int(words[4]), let ledger = Ledger(path: "\(words[0])/ledger")
        else { fail("bad arguments") }
        let folder = "\(words[0])/cache"
        var worker = Worker(folder: folder, ledger: ledger, id: 0, seed: seed)
        do {
            let store = try Worker.open(folder, budget: 1 << 30)
            for turn in 0..<6 {
                if turn % 2 == 1 { faulty_fail(folder, kinds, error, interval) }
                for _ in 0..<60 {
                    if let problem = worker.step(store) { fail(problem) }
                }
                // Repairing must not treat entries as damaged just because a read failed.
                _ = try? store.verify(repair: true)
                faulty_fail(folder, 0, 0, 0)
            }
            store.close()
            var harness = KillHarness(program: "", home: words[0], seed: seed)
            harness.compare(folder, ledgers: ["\(words[0])/ledger"], budget: 1 << 30)
            for problem in harness.problems { say("! \(problem)") }
            say("calls that failed \(faulty_failures())")
            for (code, failure) in worker.failures.sorted(by: { $0.key < $1.key }) {
                say("\(code) \(failure.count), the last: \(failure.last)")
            }
            exit(harness.problems.isEmpty ? 0 : 1)
        } catch {
            fail("\(error)")
        }
    }

    private static func torture(_ words: [String]) {
        guard let rounds = Int(words[1]), let seed = Int(words[2]),
            let program = realpath("/proc/self/exe", nil).map({ String(cString: $0) })
        else { fail("bad arguments") }
        var harness = KillHarness(program: program, home: words[0], seed: seed)
        for _ in 0..<rounds where harness.problems.isEmpty { _ = harness.round() }
        for problem in harness.problems { say("! \(problem)") }
        say(harness.summary)
        say("seed \(seed)")
        exit(harness.problems.isEmpty ? 0 : 1)
    }
}
