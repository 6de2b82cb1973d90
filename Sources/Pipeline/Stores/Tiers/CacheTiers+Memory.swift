import Glibc
import Variants

/// Freeing memory, and decoded pixels, which only memory keeps.
extension CacheTiers {
    /// Evicts from every memory tier until it takes at most this share of what it takes now.
    /// - Returns: bytes freed.
    func reduceMemory(to share: Double) -> Int {
        let bytes = memory.reduce(to: share) + pixels.reduce(to: share)
        if bytes > 0 { _ = Self.trimHeap?(0) }
        return bytes
    }

    /// `malloc_trim(3)` of glibc, whose header Swift does not import: small bodies live in the allocator's arenas,
    /// which keep freed memory until they are trimmed.
    private static let trimHeap = dlsym(nil, "malloc_trim").map {
        unsafeBitCast($0, to: (@convention(c) (Int) -> CInt).self)
    }

    /// The pixels of a variant with these encoded bytes.
    func decoded(_ digest: Digest) -> PixelBuffer? {
        guard isMemoryCurrent, let entry = pixels.entry(for: digest) else { return nil }
        return PixelBuffer(width: entry.value.width, height: entry.value.height, pixels: entry.body)
    }

    /// Keeps decoded pixels, unless a purge came since `generation`.
    func keep(
        _ decoded: PixelBuffer, _ digest: Digest, of original: Digest, milliseconds: Double, generation: UInt64
    ) {
        let size = DecodedVariant(width: decoded.width, height: decoded.height)
        pixels.insert(
            size, body: decoded.pixels, for: digest, cost: milliseconds, generation: generation, name: original)
    }
}
