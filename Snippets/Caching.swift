// Cache budgets, policies and purges.

import Pipeline

// snippet.budgets
var configuration = PipelineConfiguration()
configuration.memory = MemoryBudgets(originals: 64 << 20, variants: 128 << 20)
configuration.cacheFolder = "/tmp/image-pipeline-example"
configuration.disk.originals = 2_000_000_000
configuration.disk.variants = 4_000_000_000
configuration.disk.freeSpace = 10_000_000_000
// snippet.end

// snippet.lifetimes
configuration.caching.defaultMaxAge = .seconds(3600)
configuration.caching.errorMaxAge = .seconds(10)
// snippet.end

// snippet.hook
configuration.willStore = { candidate in
    if candidate.source.hasPrefix("https://previews.example/") { return false }
    candidate.lifetime = .seconds(86_400)
    return true
}
// snippet.end
let pipeline = try ImagePipeline(configuration)

// snippet.policies
let recipe = try Recipe("thumbnail:300,webp")
var request = ImageRequest(.file("samples/originals/dusk-2mp.jpg"), recipe: recipe)
request.policy = .revalidate
request.storage = [.variantsInMemory, .variantsOnDisk]
let response = try await pipeline.respond(to: request)
print(response.outcome, response.originalOutcome?.rawValue ?? "not needed", response.isStale)
// snippet.end

// Responses are stored after they are returned. A purge would discard queued entries.
await pipeline.drain()

// snippet.purge
let one = try await pipeline.purge(.source("https://example.org/photo.jpg"))
let folder = try await pipeline.purge(.prefix("https://example.org/img/"))
let host = try await pipeline.purge(.host("example.org"))
print(one.variants + folder.variants + host.variants, "variants removed")
// snippet.end

// snippet.statistics
let memory = pipeline.memoryStatistics.variants
print(memory.entries, "variants in memory,", memory.bytes, "of", memory.budget, "bytes,", memory.hits, "hits")
if let disk = await pipeline.diskStatistics() {
    print(disk.originals.bytes, "bytes of originals on disk,", disk.originals.evictions, "evicted")
}
let freed = pipeline.reduceMemory(to: 0.5)
print(freed, "bytes of memory freed")
// snippet.end
await pipeline.shutdown()
