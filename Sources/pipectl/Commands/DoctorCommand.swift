import ArgumentParser

struct DoctorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract: "Examine this machine: what works, what does not, the consequences, and remedies.",
        discussion: """
            It starts a render worker, makes a small picture in each format, opens the cache folder, and looks at
            libraries, locks, limits and the kernel, with the settings in force. Of the network it asks only what the
            settings name: the origins of baseURLs, the bucket of remote.s3 and the Redis server of fleet.redis.

            Exit codes: 0 all works, though there may be warnings, 1 something lacks, 2 settings are wrong, 4 nothing can
            be fetched, 6 nothing can be rendered, 7 the cache folder cannot be used.

            Examples:
              pipectl doctor
              pipectl doctor --config /etc/pipectl/pipectl.yaml --json
            """)

    @Flag(help: "JSON Lines, one object per finding.")
    var json = false
    @OptionGroup var common: CommonOptions

    func run() async throws {
        let settings = common.collectedSettings()
        var errors = settings.errors
        let (configuration, _) = settings.serving([], &errors)
        let faults = errors.lines.map { Finding.fails("settings", $0, cost: "`serve` does not start", .usage) }
        let findings = faults + (try await Examination(configuration: configuration).findings())
        for finding in findings { print(json ? finding.json : finding.text) }
        let exit = Finding.exit(findings)
        if exit != .done { throw ExitCode(exit.rawValue) }
    }
}
