import PipelineSupport
import CSandbox
import Glibc

/// One worker as the front process sees it: a child, its two sockets, and the file its stderr goes to.
///
/// Belongs to one thread at a time. The child is killed when the thread that started it ends.
// @unchecked Sendable: one thread hands it over to another under a lock.
final class WorkerProcess: @unchecked Sendable {
    enum Answer {
        case reply(WorkerReply)
        case nonsense(String)
        /// The worker has closed its end: it has ended, or is about to.
        case gone
        /// The same, before it read the last request: whatever ended it, that request did not.
        case unread
    }

    let child: pid_t
    /// Readable when the worker has answered or ended.
    let requests: Int32
    private let stops: Int32
    /// What its stderr goes to.
    let notes: Int32
    private(set) var protection = WorkerProtection(bits: 0, landlock: 0)
    private(set) var libraries = RenderLibraries.unknown
    var renders = 0
    private var isReaped = false
    /// The signal that ended it; 0 until `end()`, or if it exited.
    private(set) var signal: Int32 = 0
    /// Whether it was killed, or has ended and was waited for.
    private(set) var isEnding = false
    /// The limits set for it, and until when they need not be set again; monotonic seconds.
    private var limited = (until: 0.0, limits: RenderLimits())
    /// Files that its renders reuse.
    let files = WorkerFiles()

    private init(child: pid_t, requests: Int32, stops: Int32, notes: Int32) {
        self.child = child
        self.requests = requests
        self.stops = stops
        self.notes = notes
    }

    deinit {
        if !isReaped { _ = end() }
        for descriptor in [requests, stops, notes] { close(descriptor) }
    }

    static func start(_ configuration: WorkerConfiguration) throws(RenderError) -> WorkerProcess {
        let worker = try spawn(try configuration.program(), configuration)
        switch worker.answer(within: WorkerConfiguration.startSeconds) {
        case .reply(.ready(let ready)):
            if !ready.failure.isEmpty { throw RenderError(.libraryUnavailable, ready.failure.plain(limit: 600)) }
            guard ready.revision == String(RenderRevision.rendering) else {
                throw RenderError(
                    .workerUnavailable,
                    "render workers cannot be used: their version (\(ready.revision.plain(limit: 200))) differs "
                        + "from this program's (\(RenderRevision.rendering)); restart it, or install matching versions")
            }
            worker.protection = ready.protection
            worker.libraries = ready.libraries
            return worker
        case .reply, .nonsense:
            throw RenderError(.workerUnavailable, "a render worker sent an unexpected first message")
        case .gone, .unread:
            let ended = worker.end()
            throw RenderError(
                .workerUnavailable,
                "a render worker \(ended) while starting"
                    + (worker.remarks.map { ": " + $0 } ?? ownProgram(configuration)))
        case nil:
            throw RenderError(
                .workerUnavailable,
                "a render worker was not ready after \(WorkerConfiguration.startSeconds) s" + ownProgram(configuration))
        }
    }

    /// What helps if a program that is not `pipectl` does not become a worker.
    private static func ownProgram(_ configuration: WorkerConfiguration) -> String {
        configuration.executable == nil ? "" : "; if that is a program of your own: " + RenderWorker.hint
    }

    private static func spawn(
        _ program: String, _ configuration: WorkerConfiguration
    ) throws(RenderError) -> WorkerProcess {
        var ends: [Int32] = [-1, -1, -1, -1]
        defer { for end in [ends[1], ends[3]] where end >= 0 { close(end) } }
        var status = ends.withUnsafeMutableBufferPointer { ends -> Int32 in
            guard let start = ends.baseAddress else { return -EINVAL }
            let status = csandbox_socket_pair(start)
            return status == 0 ? csandbox_socket_pair(start + 2) : status
        }
        var step = "socketpair"
        let notes = status == 0 ? csandbox_memory_file("worker-notes") : -1
        if status == 0 { (status, step) = (notes < 0 ? notes : Self.bound(notes), "memfd_create") }
        let null = open("/dev/null", O_RDWR | O_CLOEXEC)
        defer { if null >= 0 { close(null) } }
        if status == 0, null < 0 { (status, step) = (-errno, "/dev/null") }
        var child = pid_t()
        if status == 0 {
            var words = cStrings(["pipectl", RenderWorker.argument, String(configuration.memory)])
            var variables = cStrings(configuration.variables())
            defer { for text in words + variables { free(text) } }
            step = program
            status = -csandbox_spawn(program, &words, &variables, null, ends[1], ends[3], notes, &child)
        }
        guard status == 0 else {
            for descriptor in [ends[0], ends[2], notes] where descriptor >= 0 { close(descriptor) }
            throw RenderError(
                .workerUnavailable,
                "render workers cannot be started: \(step): \(String(cString: strerror(-status)))")
        }
        return WorkerProcess(child: child, requests: ends[0], stops: ends[2], notes: notes)
    }

    /// Gives the file for stderr its only length: what a worker writes there is memory that its own limits do not count.
    /// Returns 0, or an error as a negative number.
    private static func bound(_ notes: Int32) -> Int32 {
        ftruncate(notes, off_t(noteBytes)) == 0 ? csandbox_fix_length(notes) : -errno
    }

    /// Bytes that a worker may write to stderr in the course of one render.
    private static let noteBytes = 64 << 10

    /// Copies for C as a list that ends with nil; the caller frees them.
    private static func cStrings(_ texts: [String]) -> [UnsafeMutablePointer<CChar>?] {
        texts.map { strdup($0) } + [nil]
    }

    /// Whether it has ended, or has sent something unrequested, for which it is terminated.
    var hasLeft: Bool {
        var watched = pollfd(fd: requests, events: Int16(POLLIN), revents: 0)
        return poll(&watched, 1, 0) > 0
    }

    /// Bytes of memory in use; 0 if unknown.
    var residentBytes: Int {
        let file = open("/proc/\(child)/statm", O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return 0 }
        defer { close(file) }
        var buffer = [UInt8](repeating: 0, count: 128)
        let count = read(file, &buffer, buffer.count)
        let fields = String(decoding: buffer[..<max(0, count)], as: UTF8.self).split(separator: " ")
        return (fields.count > 1 ? Int(fields[1]) ?? 0 : 0) * Int(sysconf(Int32(_SC_PAGESIZE)))
    }

    /// Whether it has reached its limit of renders or memory.
    func isSpent(_ configuration: WorkerConfiguration) -> Bool {
        renders >= configuration.renders || renders % 16 == 0 && residentBytes > configuration.residentBytes
    }

    /// Sends it a render; false if it is gone.
    func send(_ request: WorkerRequest, _ descriptors: [Int32], limits: RenderLimits) -> Bool {
        renders += 1
        limit(limits)
        // The worker goes on writing where the descriptor that both share stands.
        lseek(notes, 0, SEEK_SET)
        let bytes = request.bytes
        return csandbox_send(requests, bytes, bytes.count, descriptors, descriptors.count) == 0
    }

    /// Sets limits that the kernel enforces, whatever happens to this process: bytes of a file, and seconds of CPU
    /// time, which count its whole life.
    private func limit(_ limits: RenderLimits) {
        let now = SystemClock.monotonic.seconds
        // Before every small render this would take a part of its time: once a second suffices.
        guard now >= limited.until || limited.limits != limits else { return }
        limited = (now + 1, limits)
        // Twice the wall time, since libraries may use a thread of their own.
        let seconds = min(max(0, cpuSeconds) + 2 * (limits.seconds + limits.encodeSeconds + 1) + 2, 1e9)
        // If limits cannot be set, the deadline still holds.
        _ = csandbox_limit_child(child, UInt64(seconds.rounded(.up)), UInt64(limits.outputBytes))
    }

    /// Seconds of CPU time it has used; negative if unknown.
    var cpuSeconds: Double { csandbox_cpu_seconds(child) }

    func stop(_ id: UInt64) {
        let bytes = WorkerStop(id: id).bytes
        // A worker that does not listen is killed soon after.
        _ = csandbox_send(stops, bytes, bytes.count, nil, 0)
    }

    /// Receives its answer, once `requests` is readable.
    func answer() -> Answer {
        var buffer = [UInt8](repeating: 0, count: WorkerProtocol.messageLimit)
        let count = csandbox_receive(requests, &buffer, buffer.count, nil, 0, nil)
        // Linux reports this if the other end was closed with unread data (unix_release_sock in net/unix/af_unix.c).
        if count == -Int(ECONNRESET) || count == 0 && socketError == ECONNRESET { return .unread }
        if count == 0 { return .gone }
        guard count > 0 else { return .nonsense("a message of the wrong form") }
        do throws(MessageError) {
            return .reply(try WorkerReply(Array(buffer[..<count])))
        } catch {
            return .nonsense(error.problem)
        }
    }

    /// The socket's pending error: a receive just between the close and its error sees only the end.
    private var socketError: Int32 {
        var error: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        return getsockopt(requests, SOL_SOCKET, SO_ERROR, &error, &length) == 0 ? error : 0
    }

    private func answer(within seconds: Double) -> Answer? {
        let deadline = SystemClock.monotonic.seconds + seconds
        var watched = pollfd(fd: requests, events: Int16(POLLIN), revents: 0)
        while case let left = deadline - SystemClock.monotonic.seconds, left > 0 {
            if poll(&watched, 1, Int32((left * 1000).rounded(.up))) > 0 { return answer() }
        }
        return nil
    }

    /// Kills it if it still runs, without waiting for its end.
    func kill() {
        isEnding = true
        if !isReaped { Glibc.kill(child, SIGKILL) }
    }

    /// Kills it if it still runs, waits, and says how it ended: `was killed by SIGSEGV`, `ended with exit code 7`.
    func end() -> String {
        guard !isReaped else { return "ended" }
        // A worker that is already exiting keeps its own reason.
        kill()
        isReaped = true
        var status: Int32 = 0
        // If that fails, other code in this process has already waited for it.
        guard uninterrupted({ waitpid(child, &status, 0) }) >= 0 else { return "ended" }
        signal = status & 0x7F
        if signal == 0 { return "ended with exit code \(status >> 8 & 0xFF)" }
        return "was killed by \(Self.signalNames[signal] ?? "signal \(signal)")"
    }

    private static let signalNames: [Int32: String] = [
        SIGABRT: "SIGABRT", SIGBUS: "SIGBUS", SIGFPE: "SIGFPE", SIGILL: "SIGILL", SIGKILL: "SIGKILL",
        SIGSEGV: "SIGSEGV", SIGSYS: "SIGSYS", SIGTERM: "SIGTERM", SIGTRAP: "SIGTRAP", SIGXCPU: "SIGXCPU",
    ]

    /// The last text it wrote to stderr, in one line; nil if it wrote none.
    var remarks: String? {
        // A worker that was taken over may have set it anywhere.
        let end = min(lseek(notes, 0, SEEK_CUR), off_t(Self.noteBytes))
        guard end > 0 else { return nil }
        var buffer = [UInt8](repeating: 0, count: Int(min(end, 1024)))
        let count = pread(notes, &buffer, buffer.count, end - off_t(buffer.count))
        let text = String(decoding: buffer[..<max(0, count)], as: UTF8.self).plain(limit: 400)
        return text.isEmpty ? nil : text
    }
}

extension RenderLimits {
    /// The longest output in bytes: a picture with the longest edges, or with all pixels that are allowed,
    /// uncompressed, plus room for metadata.
    var outputBytes: Int {
        func bytes(_ pixels: (Int, Bool)) -> Int {
            let (bytes, overflow) = pixels.0.multipliedReportingOverflow(by: 4)
            return pixels.1 || overflow || bytes < 0 || bytes > 1 << 38 ? 1 << 38 : bytes
        }
        return max(bytes(outputEdge.multipliedReportingOverflow(by: outputEdge)), bytes((pixels, false))) + 8 << 20
    }
}

extension String {
    /// Untrusted text made fit for a message: one line without control characters.
    func plain(limit: Int) -> String {
        let words = unicodeScalars.map { $0.properties.generalCategory == .control ? " " : Character($0) }
        return String(
            String(words).split(separator: " ", omittingEmptySubsequences: true).joined(separator: " ").prefix(limit))
    }
}
