import Glibc
import Synchronization
import TestSupport

@testable import pipectl

/// The built `pipectl` as a child process: what it prints is collected by a thread, its end can be waited for.
final class ChildProgram: Sendable {
    /// The result of a child process.
    struct Ended: Sendable {
        /// The exit code; 128 + the signal's number when a signal ended it.
        var exit: Int32
        var output: [UInt8]
        var errors: String

        var text: String { String(decoding: output, as: UTF8.self) }
        var lines: [Substring] { text.split(separator: "\n") }
    }

    /// A child that could not be started.
    struct StartError: Error, CustomStringConvertible {
        var description: String
    }

    private struct State {
        var ended: Ended?
        var output: [UInt8] = []
        var waiting: [CheckedContinuation<Ended, Never>] = []
        var wanted: [(lines: Int, CheckedContinuation<Void, Never>)] = []
        var errors: [UInt8] = []
        var wantedErrors: [(text: String, CheckedContinuation<Void, Never>)] = []
    }

    private let state = Mutex(State())
    private let child: pid_t

    /// `pipectl` in the folder of the running test program.
    static let path: String = {
        var buffer = [UInt8](repeating: 0, count: 4096)
        let length = buffer.withUnsafeMutableBytes { bytes in
            bytes.baseAddress.map { readlink("/proc/self/exe", $0, bytes.count) } ?? 0
        }
        let own = String(decoding: buffer[..<max(0, length)], as: UTF8.self)
        return own.prefix(through: own.lastIndex(of: "/") ?? own.startIndex) + "pipectl"
    }()

    /// Starts it with only `PATH` of this process's environment, and none of its open files.
    ///
    /// - Parameters:
    ///   - arguments: without the program's name.
    ///   - program: another program than `pipectl`, by path or by name in `PATH`.
    ///   - input: a file read as stdin; empty by default.
    ///   - folder: the working folder, also `HOME`.
    ///   - environment: further variables, each `NAME=value`.
    ///   - hasTerminal: whether stderr is a terminal.
    ///   - socket: a listening socket that it gets as a service manager passes one (`sd_listen_fds(3)`).
    ///   - seconds: the time after which the child is killed, so that a failed test ends.
    init(
        _ arguments: [String], program: String = path, input: String = "/dev/null", folder: String,
        environment variables: [String] = [], hasTerminal: Bool = false, passing socket: Int32? = nil,
        seconds: Int = 120
    ) throws(StartError) {
        var output: (Int32, Int32) = (-1, -1)
        var errors: (Int32, Int32) = (-1, -1)
        guard Self.pipe(&output), hasTerminal ? Self.terminal(&errors) : Self.pipe(&errors) else {
            throw StartError(description: "no pipe: \(errno)")
        }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, input, O_RDONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, output.1, STDOUT_FILENO)
        posix_spawn_file_actions_adddup2(&actions, errors.1, STDERR_FILENO)
        // Connections of a test's origin would stay open for as long as a child held them.
        if let socket { posix_spawn_file_actions_adddup2(&actions, socket, 3) }
        for descriptor in Int32(socket == nil ? 3 : 4)..<1024 {
            posix_spawn_file_actions_addclose(&actions, descriptor)
        }
        let search = getenv("PATH").map { String(cString: $0) } ?? "/usr/bin:/bin"
        var environment: [UnsafeMutablePointer<CChar>?] = [strdup("PATH=\(search)"), strdup("HOME=\(folder)"), nil]
        // `env` becomes the program. It changes the folder, for which POSIX has no action. The shell becomes the
        // program too, and it alone knows its process ID before.
        let passing = ["sh", "-c", "LISTEN_FDS=1 LISTEN_PID=$$ exec \"$@\"", "sh"]
        var words =
            (["env", "-C", folder] + variables + (socket == nil ? [] : passing) + [program] + arguments).map {
                strdup($0)
            } + [nil]
        defer { for text in environment + words { free(text) } }
        var child = pid_t()
        let status = posix_spawn(&child, "/usr/bin/env", &actions, nil, &words, &environment)
        close(output.1)
        close(errors.1)
        guard status == 0 else {
            close(output.0)
            close(errors.0)
            throw StartError(description: "cannot start \(program): \(String(cString: strerror(status)))")
        }
        self.child = child
        let ends = (output.0, errors.0)
        let work = Unmanaged.passRetained(
            Work { [self] in collect(output: ends.0, errors: ends.1, seconds: seconds) })
        var thread = pthread_t()
        let started = pthread_create(
            &thread, nil,
            { context in
                if let context { Unmanaged<Work>.fromOpaque(context).takeRetainedValue().body() }
                return nil
            }, work.toOpaque())
        precondition(started == 0, "no thread to wait for a child")
        pthread_detach(thread)
    }

    /// Runs it to its end.
    static func run(
        _ arguments: [String], input: String = "/dev/null", folder: String
    ) async throws(StartError) -> Ended {
        await (try ChildProgram(arguments, input: input, folder: folder)).end
    }

    /// The child's end.
    var end: Ended {
        get async {
            await withCheckedContinuation { continuation in
                let ended = state.withLock { state in
                    if state.ended == nil { state.waiting.append(continuation) }
                    return state.ended
                }
                if let ended { continuation.resume(returning: ended) }
            }
        }
    }

    /// Returns when the child has printed so many lines on stdout, or has ended.
    func prints(lines: Int) async {
        await withCheckedContinuation { continuation in
            let isDone = state.withLock { state in
                let isDone = state.ended != nil || Self.lines(state.output) >= lines
                if !isDone { state.wanted.append((lines, continuation)) }
                return isDone
            }
            if isDone { continuation.resume() }
        }
    }

    /// Returns what it wrote to stderr once that holds the text, or once the child has ended.
    func waitForOutput(_ text: String) async -> String {
        await withCheckedContinuation { continuation in
            let isDone = state.withLock { state in
                let isDone = state.ended != nil || String(decoding: state.errors, as: UTF8.self).contains(text)
                if !isDone { state.wantedErrors.append((text, continuation)) }
                return isDone
            }
            if isDone { continuation.resume() }
        }
        return String(decoding: state.withLock { $0.errors }, as: UTF8.self)
    }

    /// The most memory it has had so far, in bytes; nil once it has ended.
    var peakMemory: Int? { status("VmHWM").map { $0 * 1024 } }

    /// Seconds of processor time it has taken so far; nil once it has ended.
    var processorSeconds: Double? {
        state.withLock { state -> Double? in
            guard state.ended == nil, let bytes = ScratchFolder.bytes(at: "/proc/\(child)/stat") else { return nil }
            // Behind the name in parentheses: the 12th and 13th field are user and system time.
            let fields = String(decoding: bytes, as: UTF8.self).split(separator: ")").last?.split(separator: " ") ?? []
            guard fields.count > 12, let user = Double(fields[11]), let system = Double(fields[12]) else { return nil }
            return (user + system) / Double(sysconf(Int32(_SC_CLK_TCK)))
        }
    }

    /// Sets how many files it may have open from now on, the ones it has included.
    func limitOpenFiles(to count: Int) throws {
        let program = try HelperProgram(["prlimit", "--pid=\(child)", "--nofile=\(count):"])
        guard program.waitForEnd() == 0 else { throw StartError(description: program.text) }
    }

    /// Its threads; nil once it has ended.
    var threads: Int? { status("Threads") }

    /// A number of `/proc/PID/status`; nil once it has ended.
    private func status(_ name: String) -> Int? {
        state.withLock { state -> String? in
            // Within the lock, so that the number is this child's.
            guard state.ended == nil, let bytes = ScratchFolder.bytes(at: "/proc/\(child)/status") else { return nil }
            return String(decoding: bytes, as: UTF8.self)
        }?
        .split(separator: "\n").first { $0.hasPrefix("\(name):") }.flatMap { Int($0.filter(\.isNumber)) }
    }

    /// The names of its open files; nil once it has ended.
    var openFiles: [String]? {
        state.withLock { state -> [String]? in
            guard state.ended == nil else { return nil }
            var names: [String] = []
            var buffer = [UInt8](repeating: 0, count: 4096)
            for number in 0..<256 {
                let length = buffer.withUnsafeMutableBytes { bytes in
                    bytes.baseAddress.map { readlink("/proc/\(child)/fd/\(number)", $0, bytes.count) } ?? -1
                }
                if length > 0 { names.append(String(decoding: buffer[..<length], as: UTF8.self)) }
            }
            return names
        }
    }

    /// Whether a library is in its memory now; nil once it has ended.
    func mapped(_ library: String) -> Bool? {
        state.withLock { state -> Bool? in
            guard state.ended == nil, let bytes = ScratchFolder.bytes(at: "/proc/\(child)/maps") else { return nil }
            return String(decoding: bytes, as: UTF8.self).contains(library)
        }
    }

    /// Its own children; none once it has ended.
    var children: [pid_t] {
        state.withLock { state -> [pid_t] in
            guard state.ended == nil, let names = try? FolderNames("/proc") else { return [] }
            return (0..<names.count).compactMap { pid_t(names[$0] ?? "") }.filter { process in
                let bytes = ScratchFolder.bytes(at: "/proc/\(process)/status") ?? []
                return String(decoding: bytes, as: UTF8.self).contains("PPid:\t\(child)\n")
            }
        }
    }

    /// Bytes of anonymous memory: neither files nor shared memory. 0 once it has ended.
    var anonymousBytes: Int {
        state.withLock { state -> Int in
            guard state.ended == nil, let bytes = ScratchFolder.bytes(at: "/proc/\(child)/status") else { return 0 }
            let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
            let line = lines.first { $0.hasPrefix("RssAnon:") } ?? ""
            return (line.split(whereSeparator: { !$0.isNumber }).first.flatMap { Int($0) } ?? 0) << 10
        }
    }

    /// Whether a process has ended and waits for its parent to hear of it.
    static func isZombie(_ process: pid_t) -> Bool {
        String(decoding: ScratchFolder.bytes(at: "/proc/\(process)/status") ?? [], as: UTF8.self).contains("State:\tZ")
    }

    /// Sends a signal, unless the child has ended.
    func signal(_ number: Int32) {
        state.withLock { if $0.ended == nil { _ = kill(child, number) } }
    }

    private func collect(output: Int32, errors: Int32, seconds: Int) {
        var watched = [
            pollfd(fd: output, events: Int16(POLLIN), revents: 0),
            pollfd(fd: errors, events: Int16(POLLIN), revents: 0),
        ]
        var buffer = [UInt8](repeating: 0, count: 65_536)
        let deadline = time(nil) + seconds
        while watched.contains(where: { $0.fd >= 0 }) {
            let left = deadline - time(nil)
            if left <= 0 { kill(child, SIGKILL) }
            guard poll(&watched, 2, Int32(max(1, left) * 1000)) > 0 else { continue }
            for index in 0..<2 where watched[index].revents != 0 {
                let count = read(watched[index].fd, &buffer, buffer.count)
                if count > 0 {
                    if index == 0 { append(buffer[..<count]) } else { appendErrors(buffer[..<count]) }
                } else if count == 0 || errno != EINTR {
                    close(watched[index].fd)
                    watched[index].fd = -1
                }
            }
        }
        var status: Int32 = 0
        let (waiting, wanted, ended) = state.withLock { state in
            // Within the lock, so that no signal goes to a number that is free again.
            while waitpid(child, &status, 0) < 0, errno == EINTR {}
            let code = status & 0x7F == 0 ? status >> 8 & 0xFF : 128 + status & 0x7F
            let ended = Ended(
                exit: code, output: state.output, errors: String(decoding: state.errors, as: UTF8.self))
            state.ended = ended
            defer { (state.waiting, state.wanted, state.wantedErrors) = ([], [], []) }
            return (state.waiting, state.wanted.map(\.1) + state.wantedErrors.map(\.1), ended)
        }
        for continuation in wanted { continuation.resume() }
        for continuation in waiting { continuation.resume(returning: ended) }
    }

    private func append(_ bytes: ArraySlice<UInt8>) {
        let reached = state.withLock { state in
            state.output += bytes
            if state.wanted.isEmpty { return [CheckedContinuation<Void, Never>]() }
            let lines = Self.lines(state.output)
            let reached = state.wanted.filter { $0.lines <= lines }.map(\.1)
            state.wanted.removeAll { $0.lines <= lines }
            return reached
        }
        for continuation in reached { continuation.resume() }
    }

    private func appendErrors(_ bytes: ArraySlice<UInt8>) {
        let reached = state.withLock { state in
            state.errors += bytes
            if state.wantedErrors.isEmpty { return [CheckedContinuation<Void, Never>]() }
            let text = String(decoding: state.errors, as: UTF8.self)
            let reached = state.wantedErrors.filter { text.contains($0.text) }.map(\.1)
            state.wantedErrors.removeAll { text.contains($0.text) }
            return reached
        }
        for continuation in reached { continuation.resume() }
    }

    private static func lines(_ bytes: [UInt8]) -> Int { bytes.count { $0 == 10 } }

    private static func pipe(_ ends: inout (Int32, Int32)) -> Bool {
        var pair: [Int32] = [-1, -1]
        guard Glibc.pipe(&pair) == 0 else { return false }
        for end in pair { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        ends = (pair[0], pair[1])
        return true
    }

    /// A terminal: the end that reads what is shown, and the end that programs write to.
    private static func terminal(_ ends: inout (Int32, Int32)) -> Bool {
        ends.0 = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
        // TIOCGPTN and TIOCSPTLCK of ioctl_tty(2), which the overlay of glibc does not have.
        var (number, lock): (CUnsignedInt, CInt) = (0, 0)
        guard ends.0 >= 0, ioctl(ends.0, 0x8004_5430, &number) == 0, ioctl(ends.0, 0x4004_5431, &lock) == 0 else {
            return false
        }
        ends.1 = open("/dev/pts/\(number)", O_RDWR | O_NOCTTY | O_CLOEXEC)
        return ends.1 >= 0
    }

    private final class Work {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }
}
