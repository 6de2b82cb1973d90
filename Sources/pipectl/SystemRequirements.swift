import Glibc
import PipelineSupport

/// The program's requirements on the system. They are checked before a command runs. If it could not start threads, for
/// example, a command would hang.
enum SystemRequirements {
    /// The reason why no command can run, or nil if commands can run.
    static var refusal: CommandFailure? {
        // Swift reads the arguments from /proc. They always include at least the program's name.
        guard CommandLine.arguments.isEmpty else { return nil }
        return CommandFailure(
            .usage, "/proc is not mounted, so the arguments cannot be read; mount it with `mount -t proc proc /proc`")
    }

    /// Returns the failure of a command that needs threads.
    ///
    /// - Parameter cause: The error number of the thread that could not be started.
    static func refusal(withoutThreads cause: Int32) -> CommandFailure {
        let reason = String(cString: strerror(cause))
        guard cause == EPERM else {
            return CommandFailure(
                .usage, "no thread can be started: \(reason); raise the limit of processes with `ulimit -u`")
        }
        return CommandFailure(
            .usage,
            "no thread can be started: \(reason); a seccomp filter blocks clone3, as in Docker before 20.10.10: update "
                + "the container runtime, or run the container with --security-opt seccomp=unconfined")
    }

    /// The failure if the limit of open files is too low for a command's threads, pipes and libraries, or nil if it is
    /// sufficient. Some libraries crash the program if they cannot open files.
    static var refusalOfFiles: CommandFailure? {
        let least: rlim_t = 32
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0, limit.rlim_cur < least else {
            return nil
        }
        return CommandFailure(
            .usage,
            "`ulimit -n` allows only \(limit.rlim_cur) open files, but a command needs \(least); raise the limit with `ulimit -n 1024`"
        )
    }

    /// The limit of the address space in bytes (`ulimit -v`), or nil if it is unlimited.
    static var addressSpace: Int? {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &limit) == 0, limit.rlim_cur != rlim_t.max else {
            return nil
        }
        return Int(clamping: limit.rlim_cur)
    }

    /// The failure if a command's threads do not fit in the address space, or nil if they fit.
    static var refusalOfAddressSpace: CommandFailure? {
        guard let limit = addressSpace else { return nil }
        // Otherwise, the allocator would reserve 64 MB per thread.
        Heap.limitArenas(to: 1)
        var attributes = pthread_attr_t()
        var stack = 8 << 20
        pthread_attr_init(&attributes)
        pthread_attr_getstacksize(&attributes, &stack)
        pthread_attr_destroy(&attributes)
        // The sum includes a thread of Swift and one of ours per processor, threads that read, write, look up and wait,
        // and working memory.
        let needed = (2 * RunConfiguration.processors + 14) * stack + 96 << 20
        let reserved = mmap(nil, needed, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | Int32(MAP_NORESERVE), -1, 0)
        guard reserved == MAP_FAILED else {
            munmap(reserved, needed)
            return nil
        }
        return CommandFailure(
            .usage,
            "the threads of this command do not fit in the address space of \(limit >> 20) MiB (`ulimit -v`); they need "
                + "\(needed >> 20) MiB in addition to what the program itself uses; "
                + "raise the limit, or remove it with `ulimit -v unlimited`"
        )
    }
}
