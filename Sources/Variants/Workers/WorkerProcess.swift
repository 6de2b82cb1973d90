import PipelineSupport
import CSandbox
import Glibc

/// A worker as seen by the front process: a child process, two sockets, and the file that receives its stderr.
///
/// Belongs to the thread that started it. The child process is killed when that thread ends.
// @unchecked Sendable: used only by the thread of its slot.
final class WorkerProcess: @unchecked Sendable {
    enum ReplyOutcome {
        case reply(WorkerReply)
        case malformed(String)
        /// The worker closed its end, so it has ended or is about to end.
        case gone
        /// The worker ended before it read the last request, so the request is not the cause.
        case unread
    }

    let child: pid_t
    /// Readable when the worker has replied or ended.
    let requests: Int32
    private let stops: Int32
    /// The file that receives the worker's stderr.
    let notes: Int32
    private(set) var protection = WorkerProtection(bits: 0, landlock: 0)
    private(set) var libraries = RenderLibraries.unknown
    var renders = 0
    /// Whether the process has ended and has been waited for.
    private(set) var hasEnded = false
    /// The signal that terminated the process. 0 before `end()`, or if the process exited.
    private(set) var signal: Int32 = 0
    /// The resource limits of the process, and the time until which they need not be set again, in monotonic seconds.
    private var limited = (until: 0.0, limits: RenderLimits())
    /// The files that consecutive renders reuse.
    let files = WorkerFiles()

    private init(child: pid_t, requests: Int32, stops: Int32, notes: Int32) {
        self.child = child
        self.requests = requests
        self.stops = stops
        self.notes = notes
    }

    deinit {
        if !hasEnded { _ = end() }
        for descriptor in [requests, stops, notes] { close(descriptor) }
    }

    static func start(_ configuration: WorkerConfiguration) throws(RenderError) -> WorkerProcess {
        let worker = try spawn(try configuration.program(), configuration)
        switch worker.receiveReply(within: WorkerConfiguration.startSeconds) {
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
        case .reply, .malformed:
            throw RenderError(
                .workerUnavailable,
                "the first message of a render worker was not valid; check that the program and its workers have the same version"
            )
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

    /// Returns advice if a program other than `pipectl` does not become a worker.
    private static func ownProgram(_ configuration: WorkerConfiguration) -> String {
        configuration.executable == nil ? "" : "; in your own program, " + RenderWorker.hint
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

    /// Sets the length of the stderr file permanently, because data that a worker writes there is memory that its own
    /// limits do not cover. Returns 0, or a negative error number.
    private static func bound(_ notes: Int32) -> Int32 {
        ftruncate(notes, off_t(noteBytes)) == 0 ? csandbox_fix_length(notes) : -errno
    }

    /// The maximum number of bytes that a worker can write to stderr during a render.
    private static let noteBytes = 64 << 10

    /// Returns copies of the strings for C, as a list that is terminated with nil. The caller frees the copies.
    private static func cStrings(_ texts: [String]) -> [UnsafeMutablePointer<CChar>?] {
        texts.map { strdup($0) } + [nil]
    }

    /// Whether the worker has ended or has sent an unrequested message. Both are reasons to terminate the worker.
    var isDefunct: Bool {
        var watched = pollfd(fd: requests, events: Int16(POLLIN), revents: 0)
        return poll(&watched, 1, 0) > 0
    }

    /// The resident memory in bytes, or 0 if it is unknown.
    var residentBytes: Int {
        let file = open("/proc/\(child)/statm", O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return 0 }
        defer { close(file) }
        var buffer = [UInt8](repeating: 0, count: 128)
        let count = read(file, &buffer, buffer.count)
        let fields = String(decoding: buffer[..<max(0, count)], as: UTF8.self).split(separator: " ")
        return (fields.count > 1 ? Int(fields[1]) ?? 0 : 0) * Int(sysconf(Int32(_SC_PAGESIZE)))
    }

    /// Whether the worker has reached its limit of renders or memory.
    func isSpent(_ configuration: WorkerConfiguration) -> Bool {
        renders >= configuration.maxRenders || renders % 16 == 0 && residentBytes > configuration.maxResidentBytes
    }

    /// Sends a render request to the worker. Returns false if the worker has ended.
    func send(_ request: WorkerRequest, _ descriptors: [Int32], limits: RenderLimits) -> Bool {
        renders += 1
        limit(limits)
        // Both processes share the file position of this descriptor, so the worker continues to write there.
        lseek(notes, 0, SEEK_SET)
        let bytes = request.bytes
        return csandbox_send(requests, bytes, bytes.count, descriptors, descriptors.count) == 0
    }

    /// Sets limits that the kernel enforces even if this process fails: the maximum file size in bytes, and CPU seconds
    /// over the complete life of the worker.
    private func limit(_ limits: RenderLimits) {
        let now = SystemClock.monotonic.seconds
        // Setting the limits takes too long to do it before every small render. Once per second is sufficient.
        guard now >= limited.until || limited.limits != limits else { return }
        limited = (now + 1, limits)
        // Allow twice the wall time, because libraries may use an additional thread.
        let seconds = min(max(0, cpuSeconds) + 2 * (limits.seconds + limits.encodeSeconds + 1) + 2, 1e9)
        // If the limits cannot be set, the deadline still applies.
        _ = csandbox_limit_child(child, UInt64(seconds.rounded(.up)), UInt64(limits.outputBytes))
    }

    /// The CPU seconds that the worker has used, or a negative number if this is unknown.
    var cpuSeconds: Double { csandbox_cpu_seconds(child) }

    func stop(_ id: UInt64) {
        let bytes = WorkerStop(id: id).bytes
        // A worker that does not receive the message is soon killed.
        _ = csandbox_send(stops, bytes, bytes.count, nil, 0)
    }

    /// Receives the worker's reply. Call this when `requests` is readable.
    func receiveReply() -> ReplyOutcome {
        var buffer = [UInt8](repeating: 0, count: WorkerProtocol.messageLimit)
        let count = csandbox_receive(requests, &buffer, buffer.count, nil, 0, nil)
        // Linux reports this error if the other end was closed with unread data (unix_release_sock in
        // net/unix/af_unix.c).
        if count == -Int(ECONNRESET) || count == 0 && socketError == ECONNRESET { return .unread }
        if count == 0 { return .gone }
        guard count > 0 else { return .malformed("a message of the wrong form") }
        do throws(MessageError) {
            return .reply(try WorkerReply(Array(buffer[..<count])))
        } catch {
            return .malformed(error.problem)
        }
    }

    /// The pending error of the socket. A receive call that comes after the other end was closed but before the error
    /// is set reports only the end of the stream.
    private var socketError: Int32 {
        var error: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        return getsockopt(requests, SOL_SOCKET, SO_ERROR, &error, &length) == 0 ? error : 0
    }

    private func receiveReply(within seconds: Double) -> ReplyOutcome? {
        let deadline = SystemClock.monotonic.seconds + seconds
        var watched = pollfd(fd: requests, events: Int16(POLLIN), revents: 0)
        while case let left = deadline - SystemClock.monotonic.seconds, left > 0 {
            if poll(&watched, 1, Int32((left * 1000).rounded(.up))) > 0 { return receiveReply() }
        }
        return nil
    }

    /// Kills the process if it is still running, waits for it, and describes how it ended: `was killed by SIGSEGV`,
    /// `ended with exit code 7`.
    func end() -> String {
        guard !hasEnded else { return "ended" }
        hasEnded = true
        // A process that is already exiting keeps its own exit status.
        kill(child, SIGKILL)
        var status: Int32 = 0
        // If waiting fails, other code in this process has already waited for the child.
        guard uninterrupted({ waitpid(child, &status, 0) }) >= 0 else { return "ended" }
        signal = status & 0x7F
        if signal == 0 { return "ended with exit code \(status >> 8 & 0xFF)" }
        return "was killed by \(Self.signalNames[signal] ?? "signal \(signal)")"
    }

    private static let signalNames: [Int32: String] = [
        SIGABRT: "SIGABRT", SIGBUS: "SIGBUS", SIGFPE: "SIGFPE", SIGILL: "SIGILL", SIGKILL: "SIGKILL",
        SIGSEGV: "SIGSEGV", SIGSYS: "SIGSYS", SIGTERM: "SIGTERM", SIGTRAP: "SIGTRAP", SIGXCPU: "SIGXCPU",
    ]

    /// The last text that the worker wrote to stderr, as a single line, or nil if the worker wrote no text.
    var remarks: String? {
        // A compromised worker may have set the file position to any value.
        let end = min(lseek(notes, 0, SEEK_CUR), off_t(Self.noteBytes))
        guard end > 0 else { return nil }
        var buffer = [UInt8](repeating: 0, count: Int(min(end, 1024)))
        let count = pread(notes, &buffer, buffer.count, end - off_t(buffer.count))
        let text = String(decoding: buffer[..<max(0, count)], as: UTF8.self).plain(limit: 400)
        return text.isEmpty ? nil : text
    }
}

extension RenderLimits {
    /// The maximum length of an output in bytes. This is the size of an uncompressed picture with the maximum edge
    /// lengths, or with the maximum number of pixels, plus room for metadata.
    var outputBytes: Int {
        func bytes(_ pixels: (Int, Bool)) -> Int {
            let (bytes, overflow) = pixels.0.multipliedReportingOverflow(by: 4)
            return pixels.1 || overflow || bytes < 0 || bytes > 1 << 38 ? 1 << 38 : bytes
        }
        return max(bytes(outputEdge.multipliedReportingOverflow(by: outputEdge)), bytes((pixels, false))) + 8 << 20
    }
}

extension String {
    /// Returns untrusted text in a form that is suitable for messages: a single line without control characters.
    func plain(limit: Int) -> String {
        let words = unicodeScalars.map { $0.properties.generalCategory == .control ? " " : Character($0) }
        return String(
            String(words).split(separator: " ", omittingEmptySubsequences: true).joined(separator: " ").prefix(limit))
    }
}
