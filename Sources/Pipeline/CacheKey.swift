import struct Crypto.SHA256
import Variants

/// SHA-256 as 64 lower-case hexadecimal digits.
package func sha256Hex(_ bytes: [UInt8]) -> Digest { hex(SHA256.hash(data: bytes)) }

/// SHA-256 of UTF-8 text, as 64 lower-case hexadecimal digits.
package func sha256Hex(_ text: String) -> Digest { sha256Hex(Array(text.utf8)) }

/// Lower-case hexadecimal digits.
func hex(_ digest: some Sequence<UInt8>) -> String {
    let digits = Array("0123456789abcdef".utf8)
    var text: [UInt8] = []
    text.reserveCapacity(64)
    for byte in digest {
        text.append(digits[Int(byte >> 4)])
        text.append(digits[Int(byte & 15)])
    }
    return String(decoding: text, as: UTF8.self)
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
