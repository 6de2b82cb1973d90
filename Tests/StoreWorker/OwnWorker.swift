import Glibc
import Variants

/// A program that renders in workers that are itself, but does not call `RenderWorker.runIfAsked()`.
enum OwnWorker {
    /// Prints on stderr which generation of workers it is, and the result of its own render.
    static func render() -> Never {
        let generation = getenv("GENERATION").flatMap { Int(String(cString: $0)) } ?? 1
        say("generation \(generation)")
        if generation > 2 { exit(0) }
        Task {
            var configuration = WorkerConfiguration()
            configuration.maxConcurrentRenders = 1
            configuration.executable = "/proc/self/exe"
            configuration.environment = ["GENERATION=\(generation + 1)"]
            let pool = WorkerPool(configuration)
            do throws(RenderError) {
                try await pool.prepare()
            } catch {
                say("\(error.code.rawValue): \(error.message)")
            }
            await pool.shutdown()
            exit(0)
        }
        while true { pause() }
    }

    private static func say(_ text: String) {
        let bytes = Array((text + "\n").utf8)
        _ = write(STDERR_FILENO, bytes, bytes.count)
    }
}
