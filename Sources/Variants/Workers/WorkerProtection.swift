import CSandbox

/// The sandbox of a render worker. The worker reports it after applying the sandbox and before receiving any picture.
package struct WorkerProtection: Sendable, Hashable, CustomStringConvertible {
    /// Address space, file size, open files and core dumps are limited. The limit of CPU time is adjusted for each
    /// render.
    package var limitsResources = false
    /// Programs that the worker might start cannot gain privileges (`PR_SET_NO_NEW_PRIVS`).
    package var hasNoNewPrivileges = false
    /// The worker has dropped all capabilities, even if the pipeline runs as root.
    package var hasNoCapabilities = false
    /// No other process of the same user can read the worker's memory.
    package var isNotDumpable = false
    /// The worker is killed when the process that started it ends for any reason.
    package var diesWithParent = false
    /// A list of allowed system calls is in force for all threads. The worker cannot open files, make connections or
    /// start processes.
    package var filtersCalls = false
    /// The version of Landlock, which denies access to the file system and the network. This is 0 if the kernel does
    /// not support Landlock.
    package var landlock: Int

    private static var names: [(path: WritableKeyPath<WorkerProtection, Bool>, name: String)] {
        [
            (\.filtersCalls, "seccomp"), (\.hasNoNewPrivileges, "no_new_privs"),
            (\.hasNoCapabilities, "no capabilities"), (\.limitsResources, "resource limits"),
            (\.isNotDumpable, "not dumpable"), (\.diesWithParent, "dies with its parent"),
        ]
    }

    /// The names of the protections in force.
    package var inForce: [String] {
        (landlock > 0 ? ["Landlock (version \(landlock))"] : [])
            + Self.names.filter { self[keyPath: $0.path] }.map(\.name)
    }

    /// The names of the protections that the kernel or environment does not support. Empty if all protections are in
    /// force.
    package var missing: [String] {
        (landlock > 0 ? [] : ["Landlock"]) + Self.names.filter { !self[keyPath: $0.path] }.map(\.name)
    }

    /// A description such as `seccomp, no_new_privs; not in force: Landlock`.
    package var description: String {
        let present = inForce.isEmpty ? "nothing" : inForce.joined(separator: ", ")
        return missing.isEmpty ? present : "\(present); not in force: \(missing.joined(separator: ", "))"
    }

    /// A bit mask with one bit for each of `names`, starting with the lowest bit.
    var bits: UInt32 {
        Self.names.enumerated().reduce(0) { $0 | (self[keyPath: $1.element.path] ? 1 << UInt32($1.offset) : 0) }
    }
}

extension WorkerProtection {
    init(bits: UInt32, landlock: Int) {
        self.init(landlock: landlock)
        for (index, entry) in Self.names.enumerated() { self[keyPath: entry.path] = bits >> index & 1 == 1 }
    }

    init(_ report: CSandboxReport) {
        self.init(
            limitsResources: report.resource_limits != 0, hasNoNewPrivileges: report.no_new_privileges != 0,
            hasNoCapabilities: report.no_capabilities != 0, isNotDumpable: report.not_dumpable != 0,
            diesWithParent: report.dies_with_parent != 0, filtersCalls: report.seccomp != 0,
            // Landlock restricts only the calling thread. If other threads exist, it provides no protection.
            landlock: report.threads == 1 ? Int(report.landlock) : 0)
    }
}
