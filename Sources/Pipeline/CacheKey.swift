import struct Crypto.SHA256
import Variants

/// SHA-256 as 64 lower-case hexadecimal digits.
package func sha256Hex(_ bytes: [UInt8]) -> Digest { hex(SHA256.hash(data: bytes)) }

/// SHA-256 of UTF-8 text, as 64 lower-case hexadecimal digits.
package func sha256Hex(_ text: String) -> Digest { sha256Hex(Array(text.utf8)) }

/// Lower-case hexadecimal digits.
func hex(_ digest: SHA256.Digest) -> String { digest.withUnsafeBytes { hex($0) } }

/// Lower-case hexadecimal digits, two per byte.
func hex(_ bytes: UnsafeRawBufferPointer) -> String {
    func digit(_ value: UInt8) -> UInt8 { value < 10 ? 0x30 + value : 0x61 + value - 10 }
    return String(unsafeUninitializedCapacity: bytes.count * 2) { text in
        for (at, byte) in bytes.enumerated() {
            text[2 * at] = digit(byte >> 4)
            text[2 * at + 1] = digit(byte & 15)
        }
        return bytes.count * 2
    }
}

/// Derives a variant's key from everything its bytes depend on, so that a changed picture, mask, recipe, quality or
/// encoder never matches an old variant, and equal bytes at two URLs share theirs.
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
            // Length-prefixed, so that different lists of parts never give the same text.
            hash.update(data: Array("\(part.utf8.count):".utf8))
            hash.update(data: Array(part.utf8))
        }
        return hex(hash.finalize())
    }
}
