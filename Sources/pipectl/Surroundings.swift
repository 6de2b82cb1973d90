import Glibc
import PipelineSupport

/// What the program needs of the system that it runs on. It is checked before a command runs: without threads, for
/// example, a command would wait for ever.
enum Surroundings {
    /// Why no command can run; nil if one can.
    static var refusal: CommandFailure? {
        // Swift reads the arguments from /proc; the program's name, at least, is always among them.
        guard CommandLine.arguments.isEmpty else { return nil }
        return CommandFailure(
            .usage, "/proc is not mounted, so the arguments cannot be read; mount it: mount -t proc proc /proc")
    }

    /// Why a command that needs threads cannot run.
    ///
    /// - Parameter cause: the error number of the thread that could not be started.
    static func refusal(withoutThreads cause: Int32) -> CommandFailure {
        let reason = String(cString: strerror(cause))
        guard cause == EPERM else { return CommandFailure(.usage, "no thread can be started: \(reason)") }
        return CommandFailure(
            .usage,
            "no thread can be started: \(reason); a seccomp filter, as of Docker before 20.10.10, refuses clone3: update "
                + "the container runtime, or run the container with --security-opt seccomp=unconfined")
    }

    /// Why there are too few files for a command's threads, pipes and libraries, some of which end the program where they
    /// get none; nil if there are enough.
    static var refusalOfFiles: CommandFailure? {
        let least: rlim_t = 32
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0, limit.rlim_cur < least else {
            return nil
        }
        return CommandFailure(
            .usage,
            "`ulimit -n` permits \(limit.rlim_cur) open files, and a command needs \(least): raise it: ulimit -n 1024")
    }

    /// The limit of the address space in bytes (`ulimit -v`); nil if there is none.
    static var addressSpace: Int? {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &limit) == 0, limit.rlim_cur != rlim_t.max else {
            return nil
        }
        return Int(clamping: limit.rlim_cur)
    }

    /// Why the threads of a command do not fit in the address space; nil if they do.
    static var refusalOfAddressSpace: CommandFailure? {
        guard let limit = addressSpace else { return nil }
        // Otherwise the allocator reserves 64 MB for each thread.
        Heap.limitArenas(to: 1)
        var attributes = pthread_attr_t()
        var stack = 8 << 20
        pthread_attr_init(&attributes)
        pthread_attr_getstacksize(&attributes, &stack)
        pthread_attr_destroy(&attributes)
        // Swift's and ours for each processor, and those that read, write, look up and wait; and memory to work with.
        let needed = (2 * RunConfiguration.processors + 14) * stack + 96 << 20
        let reserved = mmap(nil, needed, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | Int32(MAP_NORESERVE), -1, 0)
        guard reserved == MAP_FAILED else {
            munmap(reserved, needed)
            return nil
        }
        return CommandFailure(
            .usage,
            "`ulimit -v` leaves too little of \(limit >> 20) MiB for this command's threads, which take "
                + "\(needed >> 20) MiB more than the program; raise it, or remove it: ulimit -v unlimited")
    }
}
