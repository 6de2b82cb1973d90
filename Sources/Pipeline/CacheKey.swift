import struct Crypto.SHA256
import Variants

/// SHA-256 as 64 lower-case hexadecimal digits.
package func sha256Hex(_ bytes: [UInt8]) -> Digest { hex(SHA256.hash(data: bytes)) }

/// SHA-256 of UTF-8 text, as 64 lower-case hexadecimal digits.
package func sha256Hex(_ text: String) -> Digest { sha256Hex(Array(text.utf8)) }

/// Lower-case hexadecimal digits.
func hex(_ digest: SHA256.Digest) -> String {
    func digit(_ value: UInt8) -> UInt8 { value < 10 ? 0x30 + value : 0x61 + value - 10 }
    return String(unsafeUninitializedCapacity: SHA256.Digest.byteCount * 2) { text in
        var count = 0
        for byte in digest {
            text[count] = digit(byte >> 4)
            text[count + 1] = digit(byte & 15)
            count += 2
        }
        return count
    }
}

/// Names a variant by everything its bytes depend on (design §3), so that a changed picture, mask, recipe, quality or
/// encoder never meets an old variant, and equal bytes at two URLs share theirs.
enum CacheKey {
    static func variant(
        originalDigest: Digest, recipe: Recipe, output: ResolvedOutput, quality: RenderQuality, frames: Int,
        masks: [String: Digest], revision: String = RenderRevision.current
    ) -> String {
        var hash = SHA256()
        var parts = [
            revision, originalDigest, recipe.stepsDescription, output.description, quality.rawValue,
        ]
        parts.append(String(frames))
        for (name, digest) in masks.sorted(by: { $0.key < $1.key }) { parts += [name, digest] }
        for part in parts {
            // Length first, so that no two lists of parts read alike.
            hash.update(data: Array("\(part.utf8.count):".utf8))
            hash.update(data: Array(part.utf8))
        }
        return hex(hash.finalize())
    }
}
