import Glibc
import Pipeline
import Variants

/// Works through jobs from stdin, four at a time: `job-worker < JOBS`, one `SOURCE RECIPE OUTPUT` a line.
///
/// A failure that may pass is tried again, at most five times in all. Jobs that stay dead are printed, and make the exit
/// code 1.
@main
struct JobWorker {
    // Reading stdin blocks the main thread, and no thread that the jobs need.
    @MainActor static func main() async throws {
        var configuration = PipelineConfiguration()
        // Origins on this machine, such as the sample one, may be asked too.
        configuration.fetch.allowPrivateAddresses = .all
        // The worker tries again itself: the pipeline should not, nor answer the next try with the last failure.
        configuration.fetch.retries = 0
        configuration.caching.errorMaxAge = 0
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

    /// Does one job; returns why it cannot be done, or nil.
    static func work(_ line: String, _ pipeline: ImagePipeline) async -> String? {
        let words = line.split(separator: " ").map(String.init)
        guard words.count == 3 else { return "a job is SOURCE RECIPE OUTPUT" }
        var tries = 1
        while true {
            do throws(PipelineError) {
                return write(try await pipeline.image(for: words[0], recipe: words[1]).bytes, to: words[2])
            } catch {
                guard error.code.isTransient, tries < 5 else { return error.message }
                let pause = error.retryAfter.map { .seconds($0) } ?? Duration.milliseconds(125 << tries)
                tries += 1
                // It throws only in a task that was cancelled, which these are not.
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
