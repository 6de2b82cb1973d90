import Glibc
import Pipeline

/// Processes jobs from stdin, four at a time: `job-worker < JOBS`, with one `SOURCE RECIPE OUTPUT` per line.
///
/// A job that fails with a temporary error is attempted at most five times. Jobs that fail permanently are printed, and
/// the exit code is then 1.
@main
struct JobWorker {
    // Reading stdin blocks the main thread, but not the threads that run the jobs.
    @MainActor static func main() async throws {
        var configuration = PipelineConfiguration()
        // Allow origins on this machine, such as the sample origin.
        configuration.fetch.allowPrivateAddresses = .all
        // The worker itself retries. The pipeline must neither retry nor return the previous failure for the next
        // attempt.
        configuration.fetch.maxRetries = 0
        configuration.caching.errorMaxAge = .zero
        let pipeline = try ImagePipeline(configuration)
        let dead = await withTaskGroup(of: Bool.self) { group in
            var (started, dead) = (0, 0)
            while let line = readLine() {
                if started >= 4, await group.next() == false { dead += 1 }
                group.addTask {
                    let reason = await work(line, pipeline)
                    print(reason.map { "dead: \(line): \($0)" } ?? "done: \(line)")
                    return reason == nil
                }
                started += 1
            }
            for await isDone in group where !isDone { dead += 1 }
            return dead
        }
        await pipeline.shutdown()
        exit(dead == 0 ? 0 : 1)
    }

    /// Performs a job. Returns the reason for a failure, or nil if the job succeeded.
    static func work(_ line: String, _ pipeline: ImagePipeline) async -> String? {
        let words = line.split(separator: " ").map(String.init)
        guard words.count == 3 else { return "a job is SOURCE RECIPE OUTPUT" }
        var tries = 1
        while true {
            do throws(PipelineError) {
                return write(try await pipeline.image(for: words[0], recipe: words[1]).bytes, to: words[2])
            } catch {
                guard error.code.isTransient, tries < 5 else { return error.message }
                let pause = error.retryAfter ?? .milliseconds(125 << tries)
                tries += 1
                // Sleeping throws only in a cancelled task, and these tasks are never cancelled.
                try? await Task.sleep(for: pause)
            }
        }
    }

    static func write(_ bytes: [UInt8], to path: String) -> String? {
        guard let file = fopen(path, "w") else { return "\(path): \(String(cString: strerror(errno)))" }
        let written = fwrite(bytes, 1, bytes.count, file)
        return fclose(file) == 0 && written == bytes.count ? nil : "\(path): \(String(cString: strerror(errno)))"
    }
}
