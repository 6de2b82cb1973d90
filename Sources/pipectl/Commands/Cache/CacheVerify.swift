import ArgumentParser
import Pipeline
import PipelineSupport

struct CacheVerify: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify",
        abstract: "Read every body and compare the index with the files; the exit code is 1 if there are faults.")

    @Flag(help: "Remove damaged entries; an index that contradicts itself is replaced with an empty one.")
    var repair = false
    @Flag(help: "Print one JSON object.")
    var json = false
    @OptionGroup var common: CommonOptions

    func run() throws {
        let report = try common.withStore { try $0.verify(repair: repair) }
        let faults: KeyValuePairs<VerifyReport.Fault, String> = [
            .damagedBodies: "damaged bodies", .missingFiles: "missing files", .orphanFiles: "orphaned files",
            .brokenEntries: "broken entries",
        ]
        if json {
            var object = JSONText()
            object.add("clean", report.isClean)
            object.add("repaired", report.isRepaired)
            object.add("bodiesChecked", report.bodiesChecked)
            for fault in faults { object.add(fault.key.rawValue, report[fault.key]) }
            object.add("indexDamaged", report.isIndexDamaged)
            print(object.closed)
        } else {
            print("checked " + Readable.count(report.bodiesChecked, "body", "bodies"))
            for fault in faults where report[fault.key] > 0 { print("  \(report[fault.key]) \(fault.value)") }
            if report.isIndexDamaged { print("  the index is damaged") }
            print(
                report.isClean
                    ? "no faults found"
                    : report.isRepaired ? "repaired" : "run `pipectl cache verify --repair` to repair the cache")
        }
        if !report.isClean, !report.isRepaired { throw ExitCode(ProgramExit.itemsFailed.rawValue) }
    }
}
