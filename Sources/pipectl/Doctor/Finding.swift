import PipelineSupport

/// What an examination of the machine finds in one place.
struct Finding: Sendable, Hashable {
    enum State: String, Sendable { case works, warns, lacks, fails }

    /// What was looked at, such as `cache folder`.
    var subject: String
    var state = State.works
    /// What was found.
    var found: String
    /// What users notice of a lack; nil if nothing lacks.
    var cost: String?
    /// What helps.
    var remedy: String?
    /// The exit code that a failure leads to.
    var exit = ProgramExit.renderFailed

    static func works(_ subject: String, _ found: String) -> Finding { Finding(subject: subject, found: found) }

    static func lacks(_ subject: String, _ found: String, cost: String, remedy: String) -> Finding {
        Finding(subject: subject, state: .lacks, found: found, cost: cost, remedy: remedy)
    }

    /// A risk that does not count as a lack.
    static func warns(_ subject: String, _ found: String, cost: String, remedy: String) -> Finding {
        Finding(subject: subject, state: .warns, found: found, cost: cost, remedy: remedy)
    }

    static func fails(
        _ subject: String, _ found: String, cost: String, remedy: String? = nil, _ exit: ProgramExit
    ) -> Finding {
        Finding(subject: subject, state: .fails, found: found, cost: cost, remedy: remedy, exit: exit)
    }

    /// A few lines for people.
    var text: String {
        let head = "\(state.rawValue)  \(subject): \(found)"
        let lines = [cost.map { "costs: " + $0 }, remedy.map { "helps: " + $0 }].compactMap { $0 }
        return ([head] + lines.map { "       " + $0 }).map(TextTable.plain).joined(separator: "\n")
    }

    var json: String {
        var json = JSONText()
        json.add("subject", subject)
        json.add("state", state.rawValue)
        json.add("found", found)
        json.add("cost", cost)
        json.add("remedy", remedy)
        return json.closed
    }

    /// The exit code for scripts: of the first failure, else 1 if something lacks.
    static func exit(_ findings: [Finding]) -> ProgramExit {
        if let failure = findings.first(where: { $0.state == .fails }) { return failure.exit }
        return findings.contains { $0.state == .lacks } ? .itemsFailed : .done
    }
}
