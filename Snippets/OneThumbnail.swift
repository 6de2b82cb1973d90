// A cached thumbnail in four lines.

import Pipeline

// snippet.show
let pipeline = try ImagePipeline(PipelineConfiguration(cacheFolder: "/tmp/image-pipeline-example"))
let image = try await pipeline.image(for: "samples/originals/balloon-alpha.png", recipe: "thumbnail:300,webp")
print(image)
await pipeline.shutdown()
// snippet.hide
