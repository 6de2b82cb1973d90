import Glibc

/// Controls how glibc's allocator keeps the memory that the server frees.
enum Heap {
    /// Limits the number of arenas of the allocator. By default, there are up to eight per processor. Memory freed in
    /// an arena is reused only by the threads of that arena, which increases the memory of a server with many threads
    /// by a quarter.
    static func limitArenas(to count: Int) {
        // Swift does not import `mallopt(3)`. M_ARENA_MAX is -8.
        typealias Option = @convention(c) (CInt, CInt) -> CInt
        guard let option = dlsym(nil, "mallopt").map({ unsafeBitCast($0, to: Option.self) }) else { return }
        // If the call fails, the program uses more memory.
        _ = option(-8, CInt(clamping: count))
    }

    /// Returns free pages to the system once per minute, until the task is cancelled. Otherwise, the allocator would
    /// keep nearly all of its memory after a burst, because memory at higher addresses is still in use.
    static func returnFreePages() async {
        // Swift does not import `malloc_trim(3)`.
        typealias Trim = @convention(c) (Int) -> CInt
        guard let trim = dlsym(nil, "malloc_trim").map({ unsafeBitCast($0, to: Trim.self) }) else { return }
        while (try? await Task.sleep(for: .seconds(60))) != nil { _ = trim(0) }
    }
}
