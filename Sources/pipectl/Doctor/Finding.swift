import PipelineSupport

/// The result of checking one part of the machine.
struct Finding: Sendable, Hashable {
    enum State: String, Sendable { case works, warns, lacks, fails }

    /// The checked part, for example `cache folder`.
    var subject: String
    var state = State.works
    /// The result of the check.
    var found: String
    /// The effect of a problem on users, or nil if the part works.
    var cost: String?
    /// How to fix the problem.
    var remedy: String?
    /// The exit code of a failure.
    var exit = ProgramExit.renderFailed

    static func works(_ subject: String, _ found: String) -> Finding { Finding(subject: subject, found: found) }

    static func lacks(_ subject: String, _ found: String, cost: String, remedy: String) -> Finding {
        Finding(subject: subject, state: .lacks, found: found, cost: cost, remedy: remedy)
    }

    /// Returns a finding about a risk that is not a missing requirement.
    static func warns(_ subject: String, _ found: String, cost: String, remedy: String) -> Finding {
        Finding(subject: subject, state: .warns, found: found, cost: cost, remedy: remedy)
    }

    static func fails(
        _ subject: String, _ found: String, cost: String, remedy: String? = nil, _ exit: ProgramExit
    ) -> Finding {
        Finding(subject: subject, state: .fails, found: found, cost: cost, remedy: remedy, exit: exit)
    }

    /// The finding as human-readable lines.
    var text: String {
        let head = "\(state.rawValue)  \(subject): \(found)"
        let lines = [cost.map { "effect: " + $0 }, remedy.map { "fix: " + $0 }].compactMap { $0 }
        return ([head] + lines.map { "       " + $0 }).map(TextTable.plain).joined(separator: "\n")
    }

    var json: String {
        JSONText(["subject": subject, "state": state.rawValue, "found": found, "cost": cost, "remedy": remedy]).json
    }

    /// Returns the exit code for scripts. It is the code of the first failure or, if there is none, 1 if a requirement
    /// is missing.
    static func exit(_ findings: [Finding]) -> ProgramExit {
        if let failure = findings.first(where: { $0.state == .fails }) { return failure.exit }
        return findings.contains { $0.state == .lacks } ? .itemsFailed : .done
    }
}
