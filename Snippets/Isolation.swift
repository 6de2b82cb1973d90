// Decoding and encoding in separate, sandboxed processes.

import Pipeline

// snippet.worker
RenderWorker.runIfAsked()
// snippet.end

// snippet.configure
var workers = WorkerConfiguration()
workers.executable = "/proc/self/exe"
workers.maxConcurrentRenders = 2
workers.isPrewarmed = true

var configuration = PipelineConfiguration()
configuration.rendering.isolation = .workers(workers)
configuration.rendering.limits.timeout = .seconds(10)
configuration.rendering.limits.pixels = 50_000_000
let pipeline = try ImagePipeline(configuration)
// snippet.end

// snippet.prepare
if let missing = try await pipeline.prepareWorkers() {
    print("protections that are missing:", missing)
}
// snippet.end

// snippet.errors
do throws(PipelineError) {
    let response = try await pipeline.image(for: "samples/originals/forest.avif", recipe: "thumbnail:300,webp")
    print(response.width, "×", response.height)
} catch {
    switch error.code {
    case .renderCrashed: print("this image crashed its worker:", error.message)
    case .renderDeadline: print("this image takes too long:", error.message)
    case .workersUnavailable: print("no worker can be started:", error.message)
    default: print(error.message)
    }
}
// snippet.end

// snippet.statistics
if let statistics = pipeline.workerStatistics {
    print(statistics.started, "workers started,", statistics.crashed, "crashed,", statistics.recycled, "replaced")
}
await pipeline.shutdown()
// snippet.end
