// One pipeline for the whole program: create it, request images, handle errors, shut it down.

import Pipeline

// snippet.make
let pipeline = try ImagePipeline(PipelineConfiguration(cacheFolder: "/tmp/image-pipeline-example"))
// snippet.end

// snippet.ask
let image = try await pipeline.image(for: "samples/originals/balloon-alpha.png", recipe: "thumbnail:300,webp")
print(image)
// snippet.end

// snippet.request
let recipe = try Recipe("thumbnail:300x200:fill,rounded-mask:24,webp")
var request = ImageRequest(.file("samples/originals/dusk-2mp.jpg"), recipe: recipe)
request.priority = .high
let response = try await pipeline.respond(to: request)
print(response, response.timings.total)
// snippet.end

// snippet.events
let load = pipeline.load(request)
for await event in load.events {
    switch event {
    case .cached(let cached): print(cached.isStale ? "show for now:" : "show:", cached.width, "×", cached.height)
    case .progress(let received, let expected): print(received, "of", expected ?? 0, "bytes")
    case .finished(.success(let response)): print("show:", response.width, "×", response.height)
    case .finished(.failure(let error)): print("show a placeholder:", error.code)
    default: break
    }
}
// snippet.end

// snippet.errors
do throws(PipelineError) {
    _ = try await pipeline.image(for: "samples/originals/balloon.gif", recipe: "thumbnial:300")
} catch {
    switch error.code {
    case .invalidRecipe: print("the recipe is wrong:", error.message)
    case .notFound: print("there is no such image")
    default: print(error.code, error.code.status, error.message)
    }
}
// snippet.end

// snippet.stop
await pipeline.shutdown()
// snippet.end
