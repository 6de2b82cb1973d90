import PipelineCaching
import PipelineSupport
import struct Crypto.SHA256
import Variants

enum CacheKey {
    static func variant(
        originalDigest: String, recipe: Recipe, output: ResolvedOutput, quality: RenderQuality, light: RenderLight,
        frames: Int, masks: [String: String], revision: String
    ) -> String {
        var hash = SHA256()
        var parts = [
            revision, originalDigest, recipe.stepsDescription, output.description, quality.rawValue, light.rawValue,
        ]
        parts.append(String(frames))
        for (name, digest) in masks.sorted(by: { $0.key < $1.key }) { parts += [name, digest] }
        for part in parts {
            // Length-prefixed, so that different lists of parts never give the same text.
            hash.update(data: Array("\(part.utf8.count):".utf8))
            hash.update(data: Array(part.utf8))
        }
        return hex(hash.finalize())
    }
}
