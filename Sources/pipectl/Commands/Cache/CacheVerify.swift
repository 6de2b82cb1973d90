import ArgumentParser
import Pipeline

struct CacheVerify: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify", abstract: "Read every body and compare the index with the files; exit code 1 on faults.")

    @Flag(help: "Remove what is damaged, and correct the sums.")
    var repair = false
    @Flag(help: "One JSON object.")
    var json = false
    @OptionGroup var common: CommonOptions

    func run() throws {
        let report = try common.withStore { store throws(StoreError) in try store.verify(repair: repair) }
        let faults = [
            ("damagedBodies", "damaged bodies", report.damagedBodies),
            ("missingFiles", "missing files", report.missingFiles),
            ("orphanFiles", "files of no entry", report.orphanFiles),
            ("abandonedFiles", "abandoned temporary files", report.abandonedFiles),
            ("brokenEntries", "broken entries", report.brokenEntries),
            ("wrongReferences", "bodies with a wrong number of entries", report.wrongReferences),
            ("wrongSums", "wrong sums", report.wrongSums),
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
            let foreign = Readable.count(report.foreignFiles, "file that is", "files that are")
            if report.foreignFiles > 0 { print("  \(foreign) not the cache's, left alone") }
            print(report.isClean ? "nothing wrong" : report.isRepaired ? "repaired" : "run with --repair to mend this")
        }
        if !report.isClean, !report.isRepaired { throw ExitCode(ProgramExit.itemsFailed.rawValue) }
    }
}
