import Pipeline

/// The entries that a folder must hold according to the ledgers of the workers that used it.
struct Expectation {
    /// The seeds a body may have, and whether it may be missing.
    struct Allowed {
        var seeds: Set<Int> = []
        var mayBeAbsent = true
        var description: String { "one of \(seeds.sorted())\(mayBeAbsent ? " or nothing" : "")" }
    }

    private let operations: [Operation]
    private let purges: [Operation]

    init(_ operations: [Operation]) {
        self.operations = operations
        purges = operations.filter { $0.kind == .purge }
    }

    /// The bodies that may be found under the key of a variant.
    func variant(_ worker: Int, _ number: Int) -> Allowed {
        var allowed = Allowed()
        var last: Operation?
        for operation in operations
        where operation.kind == .variant && operation.worker == worker && operation.number == number {
            switch operation.end {
            case nil:
                // The worker was killed or the call threw: the old or the new variant may be there.
                allowed.seeds.insert(operation.body)
                if let before = last, purged(before.original, since: before) != .no { allowed.mayBeAbsent = true }
                if purged(operation.original, since: operation) != .no { allowed.mayBeAbsent = true }
            case .some where operation.isDone:
                allowed = Allowed(seeds: [operation.body], mayBeAbsent: false)
                last = operation
                switch purged(operation.original, since: operation) {
                case .no: break
                case .perhaps: allowed.mayBeAbsent = true
                case .surely: allowed = Allowed()
                }
            default: break
            }
        }
        return allowed
    }

    /// The bodies that the record of a source may name.
    func record(_ worker: Int, _ number: Int) -> Allowed {
        var allowed = Allowed()
        for operation in operations
        where operation.kind != .variant && operation.worker == worker && operation.number == number {
            switch (operation.kind, operation.end) {
            case (.original, nil): allowed.seeds.insert(operation.body)
            case (.original, _):
                if operation.isDone { allowed = Allowed(seeds: [operation.body], mayBeAbsent: false) }
            case (_, nil): allowed.mayBeAbsent = true
            default: allowed = Allowed()
            }
        }
        return allowed
    }

    /// The seed of the body of a source's original if it must be there: it was stored, and no purge can have removed it
    /// since.
    func mustHaveBody(_ worker: Int, _ number: Int) -> Int? {
        let last = operations.last { $0.kind != .variant && $0.worker == worker && $0.number == number }
        guard let last, last.kind == .original, last.isDone else { return nil }
        return purged(last.body, since: last) == .no ? last.body : nil
    }

    private enum Certainty { case no, perhaps, surely }

    /// Whether a purge has removed the entry that `operation` stored, which was made from `original`.
    private func purged(_ original: Int, since operation: Operation) -> Certainty {
        let digest = Contents.digest(original)
        var answer = Certainty.no
        for purge in purges {
            guard let end = purge.end else {
                // Killed during the purge: it may have removed anything stored before its worker's next call.
                if isUnended(purge, after: operation) { answer = .perhaps }
                continue
            }
            guard purge.digests.contains(digest), end >= operation.begin else { continue }
            if let stored = operation.end, purge.begin > stored { return .surely }
            answer = .perhaps
        }
        return answer
    }

    private func isUnended(_ purge: Operation, after operation: Operation) -> Bool {
        let next = operations.first { $0.worker == purge.worker && $0.begin > purge.begin }
        return (next?.begin ?? .max) >= operation.begin
    }
}
