// Decoding and encoding in locked-down processes of their own.

import Pipeline
import Variants

// snippet.worker
RenderWorker.runIfAsked()
// snippet.end

// snippet.configure
var workers = WorkerConfiguration()
workers.executable = "/proc/self/exe"
workers.count = 2
workers.isPrewarmed = true

var configuration = PipelineConfiguration()
configuration.isolation = .workers(workers)
configuration.limits.seconds = 10
configuration.limits.pixels = 50_000_000
let pipeline = try ImagePipeline(configuration)
// snippet.end

// snippet.prepare
if let protection = try await pipeline.prepareWorkers() {
    print("in force:", protection.inForce)
    print("missing:", protection.missing)
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
