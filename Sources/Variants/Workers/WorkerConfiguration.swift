import Glibc

/// Where pictures are decoded and encoded.
public enum RenderIsolation: Sendable {
    /// In the calling process: nothing to install besides the library, but nothing protects the process from a decoder
    /// that crashes, hangs or is taken over. For pictures whose origin is trusted.
    case inProcess
    /// In sandboxed child processes (`WorkerProtection`): a picture that crashes one fails only its own request.
    case workers(WorkerConfiguration)
}

/// How render workers are run. Create it with its defaults, then set properties.
public struct WorkerConfiguration: Sendable {
    /// Renders at once; nil for one more than processors, because copying and waiting alternate with computing. One of
    /// them, if there are two or more, does no long renders (docs/workers.md), so that short ones need not wait.
    public var count: Int?
    /// The most long renders at a time; nil for one less than `count`, but at least one.
    package var longRenders: Int?
    /// The program that becomes a worker when started with `RenderWorker.argument`; nil for `pipectl` in the folder of
    /// the running program, or else in `PATH`. It has to be of the same version as this library.
    public var executable: String?
    /// Bytes by which a worker's address space may grow after its start, at least `leastMemory`; default 1 GiB.
    public var memory = 1 << 30
    /// With less than this, 64 MiB, a worker cannot start its threads, or renders only small pictures of some formats.
    package static let leastMemory = 64 << 20
    /// Renders after which a worker is replaced, which frees what its decoders leak or fragment; default 1,000.
    public var renders = 1000
    /// Resident bytes after which an idle worker is replaced, checked every sixteenth render; default 512 MiB.
    public var residentBytes = 512 << 20
    /// Seconds for which a variant that crashed a worker or passed a deadline is not retried, nor an original whose
    /// decoding crashed workers under two recipes or passed a deadline unexpectedly; default 60. With 0 they are always
    /// retried.
    public var quarantineSeconds = 60.0
    /// Whether all workers are started at once and kept, as servers want, with a warm spare that replaces one whose
    /// render was cancelled or that has to be killed. If false, each starts with the first render that needs it.
    public var isPrewarmed = false
    /// Called with a warning for each worker that failed to start, crashed (with what it wrote to stderr) or
    /// misbehaved.
    public var warn: @Sendable (String) -> Void = { _ in }
    /// Called before waiting for a worker that was told to stop or was killed, if another one has already replaced it;
    /// for tests.
    var beforeWaiting: @Sendable () -> Void = {}
    /// Further variables (`NAME=value`) of a worker's environment, which otherwise holds only what `variables()` sets.
    package var environment: [String] = []
    /// Whether SVG is decoded, whose text needs the machine's fonts.
    package var drawsText = false
    /// The file of libvips; nil for what the loader finds.
    package var libvips: String?
    /// Names that file to a worker, and to a program that sets nothing.
    package static let libvipsVariable = "IMAGE_PIPELINE_LIBVIPS"
    static let fontsVariable = "IMAGE_PIPELINE_WORKER_FONTS"
    /// If set in a worker's environment, originals can trigger faults, for tests (`WorkerFault`).
    package static let faultsVariable = "IMAGE_PIPELINE_WORKER_FAULTS"

    public init() {}

    /// How long a worker may take to become ready, in seconds. Loading libvips takes 0.05, but machines may be busy.
    static let startSeconds = 30.0

    /// The environment that configures libvips and the allocator: no modules (those of AVIF and JPEG XL are loaded by
    /// name), no temporary files, and one arena, since one thread does nearly all the work.
    func variables() -> [String] {
        var variables = [
            "LC_ALL=C", "VIPSHOME=/nonexistent", "VIPS_DISC_THRESHOLD=1024g", "VIPS_WARNING=0", "MALLOC_ARENA_MAX=1",
            "SWIFT_BACKTRACE=enable=no",
            // Renders allocate and free the same megabytes; returning them to the system in between would cost a
            // twentieth of a small render in page faults. mallopt(3): M_MMAP_THRESHOLD, M_TRIM_THRESHOLD, M_TOP_PAD.
            "MALLOC_MMAP_THRESHOLD_=33554432", "MALLOC_TRIM_THRESHOLD_=67108864", "MALLOC_TOP_PAD_=1048576",
        ]
        // The loader has to find the libraries that the pipeline's own process found.
        if let path = getenv("LD_LIBRARY_PATH") { variables.append("LD_LIBRARY_PATH=" + String(cString: path)) }
        if let path = libvips ?? getenv(Self.libvipsVariable).map({ String(cString: $0) }) {
            variables.append("\(Self.libvipsVariable)=\(path)")
        }
        if drawsText { variables.append(Self.fontsVariable + "=1") }
        return variables + environment
    }

    /// Throws `workerUnavailable` if workers would have too little memory to work.
    package func checkMemory() throws(RenderError) {
        guard memory < Self.leastMemory else { return }
        throw RenderError(
            .workerUnavailable,
            "limits.workerMemory is \(memory) bytes, and a render worker needs at least \(Self.leastMemory >> 20) MiB")
    }

    /// The program to start. Throws `workerUnavailable` if there is none, or if this process is itself meant to be a
    /// worker: one that starts workers of its own would do so without end.
    func program() throws(RenderError) -> String {
        try checkMemory()
        guard CommandLine.arguments.dropFirst().first != RenderWorker.argument else {
            throw RenderError(
                .workerUnavailable,
                "this process was started as a render worker and is none, so it starts no others: " + RenderWorker.hint)
        }
        if let executable {
            if access(executable, X_OK) == 0 { return executable }
            throw RenderError(
                .workerUnavailable,
                "render workers cannot be started: \(executable): \(String(cString: strerror(errno)))")
        }
        var folders: [String] = []
        if let own = realpath("/proc/self/exe", nil) {
            let path = String(cString: own)
            free(own)
            if let slash = path.lastIndex(of: "/") { folders.append(String(path[..<slash])) }
        }
        folders += (getenv("PATH").map { String(cString: $0) } ?? "").split(separator: ":").map(String.init)
        for folder in folders where folder.hasPrefix("/") {
            let path = folder + "/pipectl"
            if access(path, X_OK) == 0 { return path }
        }
        throw RenderError(
            .workerUnavailable,
            "render workers cannot be started: no pipectl next to this program or in PATH; install it, or name the program "
                + "(WorkerConfiguration.executable), or choose RenderIsolation.inProcess for trusted pictures")
    }
}
