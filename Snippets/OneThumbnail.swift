// A cached thumbnail in six lines.

import Pipeline

// snippet.show
var configuration = PipelineConfiguration()
configuration.cacheFolder = "/tmp/image-pipeline-example"
let pipeline = try ImagePipeline(configuration)
let image = try await pipeline.image(for: "samples/originals/balloon-alpha.png", recipe: "thumbnail:300,webp")
print(image.mediaType, image.width, "×", image.height, image.bytes.count, "bytes, from", image.outcome.rawValue)
await pipeline.shutdown()
// snippet.hide
