import ArgumentParser

struct DoctorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract: "Check this machine: what works, what is missing, the effects, and how to fix it.",
        discussion: """
            Starts a render worker, renders a small picture in each format, opens the cache folder, and checks the
            libraries, sandbox, limits and kernel, with the settings in force. The only network requests go to servers in
            the settings: the origins in baseURLs, the bucket in remote.s3 and the Redis server in fleet.redis.

            Exit codes: 0 everything works (possibly with warnings), 1 something is missing, 2 the settings are invalid, 4 nothing can
            be fetched, 6 nothing can be rendered, 7 the cache folder cannot be used.

            Examples:
              pipectl doctor
              pipectl doctor --config /etc/pipectl/pipectl.yaml --json
            """)

    @Flag(help: "Print JSON Lines, one object per finding.")
    var json = false
    @OptionGroup var common: CommonOptions

    func run() async throws {
        let settings = common.collectedSettings()
        var errors = settings.errors
        let (configuration, _) = settings.serving([], &errors)
        let faults = errors.lines.map { Finding.fails("settings", $0, cost: "`pipectl serve` does not start", .usage) }
        let findings = faults + (try await Examination(configuration: configuration).findings())
        for finding in findings { print(json ? finding.json : finding.text) }
        let exit = Finding.exit(findings)
        if exit != .done { throw ExitCode(exit.rawValue) }
    }
}
