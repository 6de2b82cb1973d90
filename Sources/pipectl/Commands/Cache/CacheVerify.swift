import ArgumentParser
import Pipeline
import PipelineSupport

struct CacheVerify: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify", abstract: "Read every body and compare the index with the files; exit code 1 on faults.")

    @Flag(help: "Remove damaged entries and correct the totals.")
    var repair = false
    @Flag(help: "One JSON object.")
    var json = false
    @OptionGroup var common: CommonOptions

    func run() throws {
        let report = try common.withStore { try $0.verify(repair: repair) }
        let faults = [
            ("damagedBodies", "damaged bodies", report.damagedBodies),
            ("missingFiles", "missing files", report.missingFiles),
            ("orphanFiles", "orphaned files", report.orphanFiles),
            ("abandonedFiles", "abandoned temporary files", report.abandonedFiles),
            ("brokenEntries", "broken entries", report.brokenEntries),
            ("wrongReferences", "bodies with a wrong reference count", report.wrongReferences),
            ("wrongSums", "wrong totals", report.wrongSums),
        ]
        if json {
            var object = JSONText()
            object.add("clean", report.isClean)
            object.add("repaired", report.isRepaired)
            object.add("bodiesChecked", report.bodiesChecked)
            for (key, _, count) in faults { object.add(key, count) }
            object.add("foreignFiles", report.foreignFiles)
            object.add("indexDamaged", report.isIndexDamaged)
            print(object.closed)
        } else {
            print("checked " + Readable.count(report.bodiesChecked, "body", "bodies"))
            for (_, name, count) in faults where count > 0 { print("  \(count) \(name)") }
            if report.isIndexDamaged { print("  the index is damaged") }
            let foreign = Readable.count(report.foreignFiles, "foreign file", "foreign files")
            if report.foreignFiles > 0 { print("  \(foreign) left untouched") }
            print(report.isClean ? "no faults found" : report.isRepaired ? "repaired" : "run with --repair to fix this")
        }
        if !report.isClean, !report.isRepaired { throw ExitCode(ProgramExit.itemsFailed.rawValue) }
    }
}
