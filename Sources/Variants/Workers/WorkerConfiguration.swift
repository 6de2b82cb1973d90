import Glibc

/// Specifies the processes in which pictures are decoded and encoded (`RenderingConfiguration.isolation`).
///
/// ```swift
/// var configuration = PipelineConfiguration()
/// configuration.rendering.isolation = .workers(WorkerConfiguration())
/// ```
public enum RenderIsolation: Sendable {
    /// Render in the calling process. This needs no setup, but a decoder that crashes, hangs or is exploited affects
    /// the process. Use it for pictures from trusted origins.
    case inProcess
    /// Render in sandboxed child processes. A picture that crashes a worker fails only its own request.
    case workers(WorkerConfiguration)
}

/// Configures the sandboxed processes that render pictures: their number, memory and replacement. Use it for pictures
/// from untrusted sources (`RenderIsolation.workers`).
///
/// ```swift
/// var workers = WorkerConfiguration()
/// workers.maxConcurrentRenders = 2
/// workers.isPrewarmed = true
/// workers.warn = { print("warning:", $0) }
/// var configuration = PipelineConfiguration()
/// configuration.rendering.isolation = .workers(workers)
/// ```
///
/// By default, the worker program is `pipectl`. `RenderWorker` describes how a program serves as its own worker.
public struct WorkerConfiguration: Sendable {
    /// The maximum number of concurrent renders, with one worker for each. If nil, which is the default, this is one
    /// more than the number of processors, because copying and waiting alternate with computing. If there are at least
    /// two workers, one is reserved for short renders (docs/workers.md).
    public var maxConcurrentRenders: Int?
    /// The maximum number of concurrent long renders. If nil, this is one less than `maxConcurrentRenders`, but at
    /// least one.
    package var longRenders: Int?
    /// The program that becomes a worker when it is started with `RenderWorker.argument`. If nil, this is `pipectl` in
    /// the folder of the running program or in `PATH`. The program must have the same version as this library.
    public var executable: String?
    /// The number of bytes by which a worker's address space may grow after its start. This must be at least
    /// `minMemory`. Defaults to 1 GiB.
    public var memory = 1 << 30
    /// The minimum value of `memory`, 64 MiB. With less memory, a worker cannot start its threads, or can render only
    /// small pictures of some formats.
    package static let minMemory = 64 << 20
    /// The number of renders after which a worker is replaced, which frees memory that its decoders leak or fragment.
    /// Defaults to 1,000.
    public var maxRenders = 1000
    /// The resident size in bytes above which an idle worker is replaced. This is checked at every sixteenth render.
    /// Defaults to 512 MiB.
    public var maxResidentBytes = 512 << 20
    /// The time to wait before a variant that crashed a worker or exceeded a deadline is retried. An original is
    /// quarantined for the same time if its decoding crashed workers under two recipes or unexpectedly exceeded a
    /// deadline. Zero disables the quarantine. Defaults to 60 seconds.
    public var quarantine = Duration.seconds(60)
    /// Whether to start all workers at once and keep them running, which is appropriate for servers. If false, each
    /// worker is started by the first render that needs it. Defaults to false.
    public var isPrewarmed = false
    /// Called with a warning for each worker that failed to start, crashed or misbehaved. The warning for a crash
    /// includes the worker's output to stderr.
    public var warn: @Sendable (String) -> Void = { _ in }
    /// Additional environment variables (`NAME=value`) for workers. By default, the environment contains only the
    /// result of `variables()`.
    package var environment: [String] = []
    /// Whether the workers run only on processors that are otherwise idle (`SCHED_IDLE`).
    package var isBackground = false
    /// Whether SVG is decoded, which requires the machine's fonts for text.
    package var drawsText = false
    /// The library file of libvips. If nil, the loader finds the file.
    package var libvips: String?
    /// The environment variable that passes the library file to a worker, and to a program that does not set `libvips`.
    package static let libvipsVariable = "IMAGE_PIPELINE_LIBVIPS"
    static let backgroundVariable = "IMAGE_PIPELINE_WORKER_BACKGROUND"
    static let fontsVariable = "IMAGE_PIPELINE_WORKER_FONTS"
    /// The environment variable that allows originals to trigger faults in a worker, for tests (`WorkerFault`).
    package static let faultsVariable = "IMAGE_PIPELINE_WORKER_FAULTS"

    /// Creates a configuration with default values.
    public init() {}

    /// The number of seconds within which a worker must become ready. Loading libvips takes 0.05 seconds, but the
    /// machine may be busy.
    static let startSeconds = 30.0

    /// Returns the environment that configures libvips and the allocator: no modules (the modules for AVIF and JPEG XL
    /// are loaded by name), no temporary files, and a single arena because one thread does nearly all the work.
    func variables() -> [String] {
        var variables = [
            "LC_ALL=C", "VIPSHOME=/nonexistent", "VIPS_DISC_THRESHOLD=1024g", "VIPS_WARNING=0", "MALLOC_ARENA_MAX=1",
            "SWIFT_BACKTRACE=enable=no",
            // Renders repeatedly allocate and free the same megabytes. Returning them to the system in between would
            // cost a twentieth of a small render in page faults. mallopt(3): M_MMAP_THRESHOLD, M_TRIM_THRESHOLD,
            // M_TOP_PAD.
            "MALLOC_MMAP_THRESHOLD_=33554432", "MALLOC_TRIM_THRESHOLD_=67108864", "MALLOC_TOP_PAD_=1048576",
        ]
        // The loader must find the same libraries as in the pipeline's own process.
        if let path = getenv("LD_LIBRARY_PATH") { variables.append("LD_LIBRARY_PATH=" + String(cString: path)) }
        if let path = libvips ?? getenv(Self.libvipsVariable).map({ String(cString: $0) }) {
            variables.append("\(Self.libvipsVariable)=\(path)")
        }
        if isBackground { variables.append(Self.backgroundVariable + "=1") }
        if drawsText { variables.append(Self.fontsVariable + "=1") }
        return variables + environment
    }

    /// Throws `workerUnavailable` if workers would have too little memory.
    package func checkMemory() throws(RenderError) {
        guard memory < Self.minMemory else { return }
        throw RenderError(
            .workerUnavailable,
            "limits.workerMemory is \(memory) bytes, but a render worker needs at least \(Self.minMemory >> 20) MiB")
    }

    /// Returns the program to start. Throws `workerUnavailable` if the program is missing, or if this process was
    /// itself started as a worker, because workers that start workers would never end.
    func program() throws(RenderError) -> String {
        try checkMemory()
        guard CommandLine.arguments.dropFirst().first != RenderWorker.argument else {
            throw RenderError(
                .workerUnavailable,
                "this process was started as a render worker but did not become one, so it does not start workers: "
                    + RenderWorker.hint)
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
            "render workers cannot be started, because there is no pipectl next to this program or in PATH; install it, or set its path "
                + "(WorkerConfiguration.executable), or use RenderIsolation.inProcess for trusted pictures")
    }
}
