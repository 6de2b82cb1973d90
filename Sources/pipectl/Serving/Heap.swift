import Glibc

/// How glibc's allocator keeps what the server frees.
enum Heap {
    /// Lets it keep so many pools (arenas), where it would keep eight for each processor: each thread's pool holds on to
    /// memory that only its own allocations fill again, and a server of many threads grows by a quarter.
    static func limitArenas(to count: Int) {
        // `mallopt(3)`, whose header Swift does not import; M_ARENA_MAX is -8.
        typealias Option = @convention(c) (CInt, CInt) -> CInt
        guard let option = dlsym(nil, "mallopt").map({ unsafeBitCast($0, to: Option.self) }) else { return }
        // Where it is refused, the program takes more memory.
        _ = option(-8, CInt(clamping: count))
    }

    /// Returns free pages to the system once a minute, until the task is cancelled. After a burst the allocator keeps
    /// nearly all of what it took, since something in use lies behind it.
    static func returnFreePages() async {
        // `malloc_trim(3)`, whose header Swift does not import.
        typealias Trim = @convention(c) (Int) -> CInt
        guard let trim = dlsym(nil, "malloc_trim").map({ unsafeBitCast($0, to: Trim.self) }) else { return }
        while (try? await Task.sleep(for: .seconds(60))) != nil { _ = trim(0) }
    }
}
