import PipelineSupport
import ArgumentParser
import Glibc
import Pipeline
import Synchronization
import Variants

/// The `pipectl` command and its subcommands.
@main
struct Pipectl: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pipectl",
        abstract: "Fetch images over HTTP, render variants of them, and cache both.",
        discussion: """
            Examples:
              pipectl get https://example.org/photo.jpg -r thumbnail:300 -o photo.jpg
              pipectl batch photos/ -r thumbnail:320x240 -o out --gallery out.html
              pipectl recipe 'thumbnail:300x200:fill,rounded-mask:8pct,webp:82'
              pipectl cache stats
              pipectl serve photos/

            Exit codes:
              0 success                  5 not an image, or limit exceeded
              1 batch items failed       6 render failed or timed out
              2 usage or configuration   7 cache folder unusable
              3 source refused           8 output cannot be written
              4 fetch failed             130 interrupted
            """,
        version: "0.9.0",
        subcommands: [
            GetCommand.self, BatchCommand.self, WorkerCommand.self,
            InfoCommand.self, ExplainCommand.self, RecipeCommand.self,
            RecipesCommand.self,
            CacheCommand.self, ServeCommand.self, SignCommand.self, URLCommand.self, SettingsCommand.self,
            DoctorCommand.self,
            HealthCommand.self,
        ])

    /// Prints examples when called without a subcommand.
    func run() async throws {
        print(
            """
            pipectl \(Self.configuration.version): thumbnails and other variants of pictures, cached.

              pipectl get photo.jpg -r thumbnail:300 -o small.jpg      one picture, from a file or a URL
              pipectl batch ~/Pictures -r thumbnail:320x240 -o small   all pictures in a folder; --dry-run shows the plan
              pipectl serve ~/Pictures                                 a page to try recipes in the browser
              pipectl recipes                                          all recipe steps and outputs
              pipectl doctor                                           what works on this machine, and what is missing
              pipectl --help                                           all commands
            """)
    }

    static func main() {
        // Must be called first, before a second thread exists. A worker process does not parse commands.
        RenderWorker.runIfAsked()
        if let refusal = SystemRequirements.refusal { fail(refusal) }
        // If the reader of a pipe exits, the write must fail instead of terminating the process.
        signal(SIGPIPE, SIG_IGN)
        // The same applies to a file that exceeds the size limit (`ulimit -f`).
        signal(SIGXFSZ, SIG_IGN)
        // Checked before the first thread is started, because the thread would reserve an arena.
        let tooSmall = SystemRequirements.refusalOfAddressSpace ?? SystemRequirements.refusalOfFiles
        let threadFailure = Interruption.arm()
        let arguments = Array(CommandLine.arguments.dropFirst())
        let doesManyThings = arguments.first == "batch" || arguments.first == "serve"
        let refusal = tooSmall ?? (threadFailure == 0 ? nil : SystemRequirements.refusal(withoutThreads: threadFailure))
        // If no thread can be started, the cooperative pool would retry forever.
        MainThread.run(isAlone: !doesManyThings || refusal != nil) { await run(arguments, refusal) }
        fflush(nil)
    }

    /// - Parameter refusal: The reason why a command that needs threads cannot run, or nil if it can.
    private static func run(_ arguments: [String], _ refusal: CommandFailure?) async {
        do {
            var command = try parseAsRoot(arguments)
            if var command = command as? any AsyncParsableCommand {
                if let refusal { throw refusal }
                try await command.run()
            } else {
                try command.run()
            }
        } catch let code as ExitCode {
            finish(code.rawValue)
        } catch {
            if let failure = CommandFailure(error) { fail(failure) }
            let text = fullMessage(for: error)
            if let hint = UsageHint.text(for: arguments, text, isHelp: exitCode(for: error) == .success) {
                Console.error("pipectl: " + hint)
                finish(ProgramExit.usage.rawValue)
            }
            guard exitCode(for: error) == .success else {
                Console.error(text)
                finish(ProgramExit.usage.rawValue)
            }
            print(text)
            if text.hasPrefix("#!/bin/bash\n") { print(Completions.bash) }
        }
    }

    private static func fail(_ failure: CommandFailure) -> Never {
        Console.error("pipectl: " + failure.message)
        finish(failure.exit.rawValue)
    }

    private static func finish(_ code: Int32) -> Never {
        fflush(nil)
        Glibc.exit(code)
    }
}

/// The error of a failed command: the message to print and the exit code.
struct CommandFailure: Error {
    var exit: ProgramExit
    var message: String

    init(_ exit: ProgramExit, _ message: String) {
        self.exit = exit
        self.message = message
    }

    /// Creates the failure of a command that threw `error`. Returns nil if the error is from the argument parser.
    init?(_ error: any Error) {
        switch error {
        case let failure as CommandFailure: self = failure
        case let error as PipelineError: self.init(ProgramExit(error.code), error.message)
        case let errors as SettingErrors: self.init(.usage, errors.lines.joined(separator: "\npipectl: "))
        case let error as StoreError: self.init(.cacheUnavailable, error.description)
        case let error as FileError: self.init(.outputFailed, error.description)
        default: return nil
        }
    }
}

/// The output of a program. Results are written to stdout, and everything else to stderr.
final class Console: Sendable {
    /// The output of this program.
    static let own = Console { bytes, descriptor throws(FileError) in
        let name = descriptor == STDOUT_FILENO ? "standard output" : "standard error"
        try AtomicOutput.write(bytes, toDescriptor: descriptor, named: name)
    }

    /// The log format. Set by a server, which logs to stderr.
    private let log = Mutex<LogFormat?>(nil)
    private let output: @Sendable (_ bytes: [UInt8], _ descriptor: Int32) throws(FileError) -> Void

    init(_ output: @escaping @Sendable (_ bytes: [UInt8], _ descriptor: Int32) throws(FileError) -> Void) {
        self.output = output
    }

    /// Writes messages to stderr as log lines from now on.
    func beginLog(_ format: LogFormat) { log.withLock { $0 = format } }

    static func error(_ text: String, _ level: LogLine.Level = .warning) { own.error(text, level) }

    static func write(_ bytes: [UInt8]) throws(FileError) { try own.write(bytes) }

    /// Writes a message to stderr, as a log line if `beginLog` was called.
    func error(_ text: String, _ level: LogLine.Level = .warning) { writeMessage(LogLine(level: level, message: text)) }

    func writeMessage(_ line: LogLine) {
        let format = log.withLock { $0 }
        let text = format.map { line.text($0, time: SystemClock.unix.seconds) } ?? line.message
        // The text may contain a message from an origin. Control characters must not reach the terminal.
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map {
            line.showsToken ? String($0) : TextTable.plain(String($0))
        }
        // Ignore errors. If stderr is closed, they cannot be reported.
        try? output(Array((lines.joined(separator: "\n") + "\n").utf8), STDERR_FILENO)
    }

    func write(_ bytes: [UInt8]) throws(FileError) {
        fflush(nil)
        try output(bytes, STDOUT_FILENO)
    }
}
