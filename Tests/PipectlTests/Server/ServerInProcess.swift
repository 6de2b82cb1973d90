import ArgumentParser
import Glibc
import Synchronization

@testable import pipectl

/// `pipectl serve` in this process. It collects what the server would print.
final class ServerInProcess: Sendable {
    private let server: StartedServer
    private let printed: Printed

    private init(_ server: StartedServer, _ printed: Printed) {
        self.server = server
        self.printed = printed
    }

    /// Starts it as the program would, but renders in process: tests of the workers count those of this process.
    ///
    /// - Parameters:
    ///   - arguments: those after `serve`.
    ///   - folder: `HOME`.
    ///   - environment: further variables, each `NAME=value`.
    static func start(_ arguments: [String], folder: String, environment: [String]) async throws -> ServerInProcess {
        let printed = Printed()
        var host = ServerHost()
        host.console = Console { bytes, descriptor in printed.append(bytes, isError: descriptor == STDERR_FILENO) }
        host.environment = ["HOME": folder]
        for variable in environment {
            let parts = variable.split(separator: "=", maxSplits: 1).map(String.init)
            host.environment[parts[0]] = parts.count > 1 ? parts[1] : ""
        }
        host.sharesLoops = true
        let command = try ServeCommand.parse(["--set", "render.isolation=inProcess"] + arguments)
        return ServerInProcess(try await command.start(in: host), printed)
    }

    /// Returns what it has written to stderr once that holds the text, or once the server has stopped.
    func waitForOutput(_ text: String) async -> String { await printed.errors(with: text) }

    /// Stops as at SIGTERM.
    func stop() async -> ChildProgram.Ended {
        await server.stop(isQuiet: false)
        return printed.end()
    }

    private final class Printed: Sendable {
        private struct State {
            var output: [UInt8] = []
            var errors = ""
            var hasEnded = false
            var waiting: [(text: String, continuation: CheckedContinuation<Void, Never>)] = []
        }
        private let state = Mutex(State())

        func append(_ bytes: [UInt8], isError: Bool) {
            resume { state in
                if isError { state.errors += String(decoding: bytes, as: UTF8.self) } else { state.output += bytes }
            }
        }

        func errors(with text: String) async -> String {
            await withCheckedContinuation { continuation in
                resume { $0.waiting.append((text, continuation)) }
            }
            return state.withLock { $0.errors }
        }

        func end() -> ChildProgram.Ended {
            resume { $0.hasEnded = true }
            return state.withLock { ChildProgram.Ended(exit: 0, output: $0.output, errors: $0.errors) }
        }

        /// Makes a change, and lets those go on that waited for it.
        private func resume(after change: (inout State) -> Void) {
            let done = state.withLock { state in
                change(&state)
                let (errors, hasEnded) = (state.errors, state.hasEnded)
                let done = state.waiting.filter { hasEnded || errors.contains($0.text) }
                state.waiting.removeAll { hasEnded || errors.contains($0.text) }
                return done.map(\.continuation)
            }
            for continuation in done { continuation.resume() }
        }
    }
}
