import CSandbox

/// A render worker's sandbox, as the worker reports it after locking itself down and before it sees any picture.
public struct WorkerProtection: Sendable, Hashable, CustomStringConvertible {
    /// Address space, file size, open files and core dumps are limited; CPU time is limited from render to render.
    package var limitsResources: Bool
    /// No program it starts could gain privileges (`PR_SET_NO_NEW_PRIVS`).
    package var hasNoNewPrivileges: Bool
    /// It has given up every capability, even if the pipeline runs as root.
    package var hasNoCapabilities: Bool
    /// No other process of the same user can read its memory.
    package var isNotDumpable: Bool
    /// It is killed when the process that started it ends, however that happens.
    package var diesWithParent: Bool
    /// A list of permitted system calls is in force for all of its threads: no file opened, no connection, no process.
    package var filtersCalls: Bool
    /// Version of Landlock, which denies the file system and the network; 0 if the kernel has none.
    package var landlock: Int

    private static var names: [(path: WritableKeyPath<WorkerProtection, Bool>, name: String)] {
        [
            (\.filtersCalls, "seccomp"), (\.hasNoNewPrivileges, "no_new_privs"),
            (\.hasNoCapabilities, "no capabilities"), (\.limitsResources, "resource limits"),
            (\.isNotDumpable, "not dumpable"), (\.diesWithParent, "dies with its parent"),
        ]
    }

    /// The protections in force.
    public var inForce: [String] {
        (landlock > 0 ? ["Landlock (version \(landlock))"] : [])
            + Self.names.filter { self[keyPath: $0.path] }.map(\.name)
    }

    /// The protections that the kernel, or the process's surroundings, do not grant; empty if all are in force.
    public var missing: [String] {
        (landlock > 0 ? [] : ["Landlock"]) + Self.names.filter { !self[keyPath: $0.path] }.map(\.name)
    }

    /// For example `seccomp, no_new_privs; not in force: Landlock`.
    public var description: String {
        let present = inForce.isEmpty ? "nothing" : inForce.joined(separator: ", ")
        return missing.isEmpty ? present : "\(present); not in force: \(missing.joined(separator: ", "))"
    }

    /// One bit for each of `names`, the first lowest.
    var bits: UInt32 {
        Self.names.enumerated().reduce(0) { $0 | (self[keyPath: $1.element.path] ? 1 << UInt32($1.offset) : 0) }
    }
}

extension WorkerProtection {
    init(bits: UInt32, landlock: Int) {
        self.init(
            limitsResources: false, hasNoNewPrivileges: false, hasNoCapabilities: false, isNotDumpable: false,
            diesWithParent: false, filtersCalls: false, landlock: landlock)
        for (index, entry) in Self.names.enumerated() { self[keyPath: entry.path] = bits >> index & 1 == 1 }
    }

    init(_ report: CSandboxReport) {
        self.init(
            limitsResources: report.resource_limits != 0, hasNoNewPrivileges: report.no_new_privileges != 0,
            hasNoCapabilities: report.no_capabilities != 0, isNotDumpable: report.not_dumpable != 0,
            diesWithParent: report.dies_with_parent != 0, filtersCalls: report.seccomp != 0,
            // Landlock restricts only the calling thread: with others running it protects nothing.
            landlock: report.threads == 1 ? Int(report.landlock) : 0)
    }
}
