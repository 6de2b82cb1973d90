// A cached thumbnail with rounded corners, in a few lines.

import Pipeline
import Variants

// snippet.show
var configuration = PipelineConfiguration()
configuration.cacheFolder = "/tmp/image-pipeline-example"
let pipeline = try ImagePipeline(configuration)

let recipe = try Recipe("thumbnail:300x200:fill,rounded-mask:24,webp")
let request = ImageRequest(.file("samples/originals/balloon-alpha.png"), recipe: recipe)
let response = try await pipeline.respond(to: request)

print(response.mediaType, response.width, "×", response.height, response.bytes.count, "bytes,", response.outcome)
await pipeline.shutdown()
// snippet.hide
