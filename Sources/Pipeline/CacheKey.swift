import PipelineCaching
import PipelineSupport
import Variants

enum CacheKey {
    static func variant(
        originalDigest: String, recipe: Recipe, output: ResolvedOutput, quality: RenderQuality, light: RenderLight,
        frames: Int, masks: [String: String], revision: String
    ) -> String {
        var parts = [
            revision, originalDigest, recipe.stepsDescription, output.description, quality.rawValue, light.rawValue,
        ]
        parts.append(String(frames))
        for (name, digest) in masks.sorted(by: { $0.key < $1.key }) { parts += [name, digest] }
        var text: [UInt8] = []
        text.reserveCapacity(1_024)
        for part in parts {
            // Each part is prefixed with its length, so that different lists of parts never produce the same string.
            text += "\(part.utf8.count):".utf8
            text += part.utf8
        }
        return sha256Hex(text)
    }
}
