// One cached variant, displayed with different masks.

import Pipeline

// snippet.pipeline
var configuration = PipelineConfiguration()
configuration.memory.pixels = 64 << 20
let pipeline = try ImagePipeline(configuration)
// snippet.end

// snippet.pixels
let recipe = try Recipe("thumbnail:240x240:fill:up,png")
let request = ImageRequest(.file("samples/originals/dusk-2mp.jpg"), recipe: recipe)
let picture = try await pipeline.pixels(for: request)
// snippet.end

// snippet.masks
let maskRecipe = try Recipe("thumbnail:240x240:stretch:up,png")
for name in ["star", "blob", "vignette"] {
    let mask = try await pipeline.pixels(for: ImageRequest(.file("samples/masks/\(name).png"), recipe: maskRecipe))
    show(picture.masked(by: mask), name)
}
// snippet.end
await pipeline.shutdown()

// snippet.display
/// Represents a window, a texture or a video encoder. Rows begin at the top, and pixels are red, green, blue and alpha.
func show(_ frame: PixelBuffer, _ name: String) {
    let isVisible = stride(from: 3, to: frame.pixels.count, by: 4).count { frame.pixels[$0] > 0 }
    print(name, frame.width, "×", frame.height, frame.bytesPerRow, "bytes a row,", isVisible, "visible pixels")
}
// snippet.end
