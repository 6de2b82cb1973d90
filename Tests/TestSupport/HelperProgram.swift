import Glibc
import Synchronization

/// The error for a helper program that failed.
public struct ProgramError: Error, Sendable, CustomStringConvertible {
    /// A description of the failure.
    public let description: String
    init(_ description: String) { self.description = description }
}

/// A program that a test runs. The test reads the program's output from a pipe and waits for the program to exit.
public final class HelperProgram: Sendable {
    private struct State {
        var output: [UInt8] = []
        var status: Int32?
    }

    private let child: pid_t
    private let output: Int32
    private let state = Mutex(State())

    /// Starts a program found in `PATH`, `/usr/sbin` or `/sbin`, with stdout and stderr in one pipe.
    public init(_ words: [String], folder: String = "/") throws(ProgramError) {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { throw ProgramError("no pipe: \(errno)") }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO)
        posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO)
        for descriptor in Int32(3)..<1024 { posix_spawn_file_actions_addclose(&actions, descriptor) }
        let search = getenv("PATH").map { String(cString: $0) } ?? "/usr/bin:/bin"
        var arguments = (["env", "-C", folder, "PATH=\(search):/usr/sbin:/sbin"] + words).map { strdup($0) } + [nil]
        var environment = [strdup("PATH=\(search):/usr/sbin:/sbin"), nil]
        defer { for text in arguments + environment { free(text) } }
        var child = pid_t()
        let status = posix_spawn(&child, "/usr/bin/env", &actions, nil, &arguments, &environment)
        close(ends[1])
        guard status == 0 else {
            close(ends[0])
            throw ProgramError("cannot start \(words[0]): \(String(cString: strerror(status)))")
        }
        self.child = child
        output = ends[0]
    }

    deinit {
        stop()
        close(output)
    }

    /// The output read so far.
    public var text: String { state.withLock { String(decoding: $0.output, as: UTF8.self) } }

    /// Reads until a line begins with `start` and returns the rest of that line. Returns nil if the output contains no
    /// such line.
    public func line(startingWith start: String) -> String? {
        line { $0.hasPrefix(start) ? String($0.dropFirst(start.count)) : nil }
    }

    /// Reads until a line contains `mark` and returns the part after it. Returns nil if the output contains no such
    /// line.
    public func line(after mark: String) -> String? {
        line { line in line.firstRange(of: mark).map { String(line[$0.upperBound...]) } }
    }

    private func line(_ wanted: (Substring) -> String?) -> String? {
        repeat {
            let lines = text.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
            if let line = lines.lazy.compactMap(wanted).first { return line }
        } while read()
        return nil
    }

    /// Sends SIGTERM to the program.
    public func terminate() { kill(child, SIGTERM) }

    /// Reads to the end of the output and returns the exit status, or 128 plus the signal's number if a signal killed
    /// the program.
    public func waitForEnd() -> Int32 {
        while read() {}
        return reap()
    }

    /// Does the same as `waitForEnd` without blocking a thread of the cooperative pool. Use this method for programs
    /// that run long.
    public func end() async -> Int32 {
        await withCheckedContinuation { continuation in
            let thread = LoopbackOrigin.start { [self] in continuation.resume(returning: waitForEnd()) }
            if let thread { pthread_detach(thread) } else { continuation.resume(returning: waitForEnd()) }
        }
    }

    /// Reads the output in the background until the program exits, so that a full pipe does not block the program. Call
    /// `stop` afterward.
    public func readOn() {
        if let thread = LoopbackOrigin.start({ [self] in while read() {} }) { pthread_detach(thread) }
    }

    /// Kills the program, unless its exit status has already been read.
    public func stop() {
        let isRunning = state.withLock { $0.status == nil }
        guard isRunning else { return }
        kill(child, SIGKILL)
        _ = reap()
    }

    private func read() -> Bool {
        var buffer = [UInt8](repeating: 0, count: 4096)
        var count = Glibc.read(output, &buffer, buffer.count)
        while count < 0, errno == EINTR { count = Glibc.read(output, &buffer, buffer.count) }
        guard count > 0 else { return false }
        state.withLock { $0.output += buffer[..<count] }
        return true
    }

    private func reap() -> Int32 {
        state.withLock { state in
            if let status = state.status { return status }
            var raw: Int32 = 0
            while waitpid(child, &raw, 0) < 0, errno == EINTR {}
            let signal = raw & 0x7F
            let status = signal == 0 ? raw >> 8 & 0xFF : 128 + signal
            state.status = status
            return status
        }
    }
}
