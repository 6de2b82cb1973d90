import Pipeline
import Glibc
import Synchronization

@testable import pipectl

/// Answers by the source's name: `bad` fails, everything else is its own text as bytes.
struct ScriptedRenderer: BatchRendering {
    let log = Log()

    final class Log: Sendable {
        struct State {
            var seen: [String] = []
            var running = 0
            var maxRunning = 0
        }
        let state = Mutex(State())
    }

    func render(source: BatchSource, recipe: String) async -> BatchOutcome {
        log.state.withLock { state in
            state.seen.append(source.source + "|" + recipe)
            state.running += 1
            state.maxRunning = max(state.maxRunning, state.running)
        }
        // Lets others start and finish in another order.
        for _ in 0..<(source.source.utf8.count % 7) { await Task.yield() }
        log.state.withLock { $0.running -= 1 }
        if source.source.contains("bad") {
            return .failure(BatchFailure(code: .notFound, message: "<404> for \(source.source)"))
        }
        let bytes = Array((source.source + "|" + recipe).utf8)
        let item = ItemJSON(
            source: source.source, recipe: recipe, key: sha256Hex(recipe),
            outcome: source.source.contains("cached") ? .disk : .rendered, originalOutcome: .network, collapsed: false,
            bytes: bytes.count, width: 30, height: 20, format: "png", digest: sha256Hex(source.source),
            milliseconds: Timings())
        return .variant(BatchVariant(bytes: bytes, fileExtension: "png", mediaType: "image/png", item: item))
    }
}

extension Settings {
    /// Reads the settings as `collected` does, and throws all that is wrong with them.
    init(
        assignments: [String] = [], flags: [(flag: String, key: String, value: String)] = [],
        environment: [String: String] = [:], file: String? = nil
    ) throws(SettingErrors) {
        self = .collected(assignments: assignments, flags: flags, environment: environment, file: file)
        try errors.check()
    }
}
