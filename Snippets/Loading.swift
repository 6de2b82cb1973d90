// Load handles, events, and a loader that schedules loads.

import Pipeline

let pipeline = try ImagePipeline()
let recipe = try Recipe("thumbnail:300,webp")
let request = ImageRequest(.file("samples/originals/dusk-2mp.jpg"), recipe: recipe)

// snippet.memory
if let image = pipeline.cachedImage(for: request) {
    print("show:", image.width, "×", image.height, image.isStale ? "for now" : "")
}
// snippet.end

// snippet.handle
let load = pipeline.load(request)
load.priority = .high
let image = try await load.response
print(load.status.phase, load.status.received, "bytes received,", image.bytes.count, "bytes to show")
// snippet.end

// snippet.events
for await event in load.events {
    switch event {
    case .cached(let image): print("show", image.isStale ? "for now" : "")
    case .fetching(let hadCached): print(hadCached ? "checking" : "show a placeholder")
    case .progress(let received, let expected): print(received, "of", expected ?? 0, "bytes")
    case .rendering: print("rendering")
    case .finished(let result): print((try? result.get()) == nil ? "show the placeholder for errors" : "show")
    }
}
// snippet.end

// snippet.loader
var configuration = LoaderConfiguration()
configuration.maxConcurrentLoads = 4
configuration.newestFirst = true
configuration.maxWaiting = 12
let loader = ImageLoader(pipeline, configuration)

let row = loader.load(request)
let ahead = loader.prefetch(
    ["dunes-2mp", "meadow-small"].map { ImageRequest(.file("samples/originals/\($0).jpg"), recipe: recipe) })
_ = try await row.response
for load in ahead { load.cancel() }
print(loader.statistics.ended, "ended,", loader.statistics.superseded, "superseded")
// snippet.end
await pipeline.shutdown()
