import Glibc

/// The memory that this process may use, and the files that report memory pressure.
package enum MachineMemory {
    /// The memory available to this process in bytes, at least 64 MiB. It is the smallest limit of the cgroups that
    /// contain the process, or the machine's memory if no limit is set.
    package static let bytes: Int = {
        let physical = Int(sysconf(Int32(_SC_PHYS_PAGES))) * Int(sysconf(Int32(_SC_PAGESIZE)))
        let allowed = limit(cgroups: text(at: "/proc/self/cgroup") ?? "", read: text) ?? physical
        return max(64 << 20, min(allowed, physical))
    }()

    /// The files that report memory pressure (PSI, Linux 4.20), first for this process's cgroup and then for the
    /// machine.
    static var pressureFiles: [String] {
        let folders = folders(cgroups: text(at: "/proc/self/cgroup") ?? "").unified
        return folders.prefix(1).map { $0 + "/memory.pressure" } + ["/proc/pressure/memory"]
    }

    /// Whether the kernel can notify this process when memory is short.
    package static var reportsPressure: Bool {
        let file = MemoryPressure.opened(pressureFiles)
        if file >= 0 { close(file) }
        return file >= 0
    }

    /// Returns the smallest limit in bytes, or nil if none is set.
    ///
    /// - Parameter cgroups: the text of `/proc/self/cgroup` (cgroups(7)).
    static func limit(cgroups: String, read: (String) -> String?) -> Int? {
        let folders = folders(cgroups: cgroups)
        let files =
            folders.unified.map { $0 + "/memory.max" } + folders.memory.map { $0 + "/memory.limit_in_bytes" }
        // A missing file, or `max`, means no limit.
        return files.compactMap { read($0).flatMap { Int($0.prefix { $0.isNumber }) } }.filter { $0 > 0 }.min()
    }

    /// Returns the cgroup folders of this process, innermost first, for cgroup version 2 and for the memory controller
    /// of version 1. In a container, the path may be the host's, in which case no folder but the root exists.
    private static func folders(cgroups: String) -> (unified: [String], memory: [String]) {
        var result: (unified: [String], memory: [String]) = ([], [])
        for line in cgroups.split(separator: "\n") {
            let parts = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
            guard parts.count == 3 else { continue }
            let isMemory = parts[1].split(separator: ",").contains("memory")
            guard isMemory || parts[1].isEmpty else { continue }
            var names = parts[2].split(separator: "/")
            let root = isMemory ? "/sys/fs/cgroup/memory" : "/sys/fs/cgroup"
            var folders: [String] = []
            while true {
                folders.append(([root[...]] + names).joined(separator: "/"))
                if names.popLast() == nil { break }
            }
            if isMemory { result.memory = folders } else { result.unified = folders }
        }
        return result
    }

    /// Returns the first 4 KiB of a file, or nil if the file is empty or cannot be read.
    private static func text(at path: String) -> String? {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var buffer = [UInt8](repeating: 0, count: 4096)
        let count = read(file, &buffer, buffer.count)
        return count > 0 ? String(decoding: buffer[..<count], as: UTF8.self) : nil
    }
}
