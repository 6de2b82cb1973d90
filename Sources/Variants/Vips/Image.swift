import CVips

/// A libvips image, which describes pixels that are computed on demand.
///
/// The pixels are interleaved: `width × height × bands`. An image is immutable after its creation.
// @unchecked Sendable: the pointer never changes. libvips counts references atomically and can evaluate an image on any
// thread. This class modifies nothing in a shared image except its kill flag, which other threads are allowed to set.
final class Image: @unchecked Sendable {
    let pointer: OpaquePointer
    /// The memory that the pixels are computed from. libvips retains images but not the memory that was passed to it.
    private let kept: [AnyObject]

    init(adopting pointer: OpaquePointer, keeping kept: [AnyObject] = []) {
        self.pointer = pointer
        self.kept = kept
    }

    deinit { cvips.g_object_unref(UnsafeMutableRawPointer(pointer)) }

    /// Creates an image of pixels in memory and keeps the memory alive.
    convenience init(
        _ pixels: PixelStorage, width: Int, height: Int, bands: Int, format: Int = Int(CVIPS_FORMAT_UCHAR)
    ) throws(RenderError) {
        let bytes = pixels.bytes
        guard let start = bytes.baseAddress,
            let pointer = cvips.vips_image_new_from_memory(
                start, bytes.count, Int32(width), Int32(height), Int32(bands), Int32(format))
        else {
            throw RenderError(.undecodable, "libvips cannot make an image from memory: \(VipsLibrary.takeErrorText())")
        }
        self.init(adopting: pointer, keeping: [pixels])
    }

    var width: Int { Int(cvips.vips_image_get_width(pointer)) }
    var height: Int { Int(cvips.vips_image_get_height(pointer)) }
    var bands: Int { Int(cvips.vips_image_get_bands(pointer)) }
    var format: Int { Int(cvips.vips_image_get_format(pointer)) }
    var interpretation: Int { Int(cvips.vips_image_get_interpretation(pointer)) }
    /// The image's origin. If the image was extracted from another image, this is its negative position there.
    var offset: (x: Int, y: Int) {
        (Int(cvips.vips_image_get_xoffset(pointer)), Int(cvips.vips_image_get_yoffset(pointer)))
    }
    var hasAlpha: Bool { cvips.vips_image_hasalpha(pointer) != 0 }

    /// Returns at most the first `limit` bytes of a metadata field (`exif-data`, `xmp-data`, `icc-profile-data`).
    /// Returns nil if the field is missing.
    func blob(_ name: String, limit: Int = .max) -> [UInt8]? {
        guard cvips.vips_image_get_typeof(pointer, name) != 0 else { return nil }
        var start: UnsafeRawPointer?
        var length = 0
        guard cvips.vips_image_get_blob(pointer, name, &start, &length) == 0, let start else { return nil }
        return [UInt8](UnsafeRawBufferPointer(start: start, count: min(length, limit)))
    }

    /// Returns at most the first `limit` bytes of the XMP packet. In HEIF files, libvips recognizes only packets that
    /// begin with `x:xmpmeta`.
    func xmp(limit: Int) -> [UInt8]? {
        blob("xmp-data", limit: limit)
            ?? (0..<8).lazy.compactMap { self.blob("heif-mime-\($0)", limit: limit) }
            .first { $0.starts(with: "<?xpacket".utf8) }
    }

    /// Copies the binary metadata fields with these names from another image. Must be called before this image is
    /// shared.
    func copy(_ names: String..., from other: Image) {
        for name in names { if let bytes = other.blob(name) { set(name, bytes) } }
    }

    func has(_ name: String) -> Bool { cvips.vips_image_get_typeof(pointer, name) != 0 }

    /// Returns a metadata field that contains an integer. Returns nil if the field is missing.
    func integer(_ name: String) -> Int? {
        var number: Int32 = 0
        guard has(name), cvips.vips_image_get_int(pointer, name, &number) == 0 else { return nil }
        return Int(number)
    }

    /// Returns a metadata field that contains a list of integers. Returns nil if the field is missing.
    func integers(_ name: String) -> [Int]? {
        var start: UnsafeMutablePointer<Int32>?
        var count: Int32 = 0
        guard has(name), cvips.vips_image_get_array_int(pointer, name, &start, &count) == 0, let start else {
            return nil
        }
        return UnsafeBufferPointer(start: start, count: Int(count)).map(Int.init)
    }

    /// Sets a metadata field. Must be called before the image is shared.
    func set(_ name: String, _ number: Int) { cvips.vips_image_set_int(pointer, name, Int32(clamping: number)) }

    /// Sets a metadata field. Must be called before the image is shared.
    func set(_ name: String, _ numbers: [Int]) {
        let numbers = numbers.map { Int32(clamping: $0) }
        cvips.vips_image_set_array_int(pointer, name, numbers, Int32(numbers.count))
    }

    /// Sets or removes a metadata field. Must be called before the image is shared.
    func set(_ name: String, _ bytes: [UInt8]?) {
        guard let bytes else { return _ = cvips.vips_image_remove(pointer, name) }
        bytes.withUnsafeBytes { bytes in
            if let start = bytes.baseAddress {
                cvips.vips_image_set_blob_copy(pointer, name, start, bytes.count)
            }
        }
    }

    /// Makes all evaluations that read from this image fail soon. Can be called from any thread.
    func kill() { cvips.vips_image_set_kill(pointer, 1) }

    /// Computes all pixels on the calling thread. Supports only 8-bit, 16-bit and float images.
    ///
    /// - Parameter tile: the size of the area to compute at a time, for operations that read around each pixel, or nil
    ///   to compute strips.
    func computed(_ control: RenderControl, tile: PixelSize? = nil) throws(RenderError) -> PixelStorage {
        let storage = PixelStorage(byteCount: byteCount)
        try compute(into: storage, at: 0, control, tile: tile)
        return storage
    }

    /// The size of all pixels in bytes. Supports only 8-bit, 16-bit and float images.
    var byteCount: Int { width * height * pixelBytes }

    private var pixelBytes: Int {
        let sampleBytes: Int? = [CVIPS_FORMAT_UCHAR: 1, CVIPS_FORMAT_USHORT: 2, CVIPS_FORMAT_FLOAT: 4]
            .first { Int($0.key) == format }?.value
        guard let sampleBytes else { preconditionFailure("8 bit, 16 bit and float only") }
        return bands * sampleBytes
    }

    /// Computes all pixels like `computed`, but writes the `byteCount` bytes into `storage`, starting at `offset`.
    func compute(
        into storage: PixelStorage, at offset: Int, _ control: RenderControl, tile: PixelSize? = nil
    ) throws(RenderError) {
        let (width, pixelBytes) = (width, pixelBytes)
        try forEachTile(tile, control) { tile in
            for row in 0..<tile.size.height {
                storage.write(tile.line(row), at: offset + ((tile.top + row) * width + tile.left) * pixelBytes)
            }
        }
    }

    /// A part of the pixels in memory that libvips owns.
    struct Tile {
        let left, top: Int
        let size: PixelSize
        let start: UnsafeRawPointer
        let pixelBytes: Int
        /// The number of bytes from the start of one row to the start of the next.
        let lineBytes: Int

        /// Whether the rows are contiguous.
        var isDense: Bool { lineBytes == size.width * pixelBytes }

        func line(_ row: Int) -> UnsafeRawBufferPointer {
            UnsafeRawBufferPointer(start: start + row * lineBytes, count: size.width * pixelBytes)
        }
    }

    /// Computes all pixels on the calling thread from top to bottom. Uses tiles or, by default, strips of complete
    /// rows, as sequential loaders require. A tile is valid only during the call of `body`.
    ///
    /// A libvips sink would use other threads. Computing the pixels here keeps the work on the calling thread, so that
    /// its CPU clock measures the cost of the render, and makes it possible to stop the render.
    func forEachTile(
        _ tile: PixelSize? = nil, _ control: RenderControl, _ body: (Tile) -> Void
    ) throws(RenderError) {
        let (width, height, pixelBytes) = (width, height, pixelBytes)
        guard let region = cvips.vips_region_new(pointer) else {
            throw RenderError(.undecodable, VipsLibrary.takeErrorText())
        }
        defer { cvips.g_object_unref(UnsafeMutableRawPointer(region)) }
        let tile = tile ?? PixelSize(width: width, height: Self.stripRows)
        for top in stride(from: 0, to: height, by: tile.height) {
            for left in stride(from: 0, to: width, by: tile.width) {
                try control.check()
                let size = PixelSize(width: min(tile.width, width - left), height: min(tile.height, height - top))
                var lineBytes = 0
                guard
                    let start = cvips_region_fetched(
                        region, Int32(left), Int32(top), Int32(size.width), Int32(size.height), pixelBytes, &lineBytes)
                else {
                    throw RenderError(.undecodable, "the pixels cannot be decoded: \(VipsLibrary.takeErrorText())")
                }
                body(
                    Tile(
                        left: left, top: top, size: size, start: start, pixelBytes: pixelBytes, lineBytes: lineBytes))
            }
        }
    }

    /// The strip height of libvips' own sinks (`VIPS__FATSTRIP_HEIGHT`), which determines the size of its line caches.
    private static let stripRows = 16
}

/// Memory for pixels, which is freed with the last reference.
// @unchecked Sendable: only the creator writes to the memory, before sharing it.
final class PixelStorage: @unchecked Sendable {
    private let memory: UnsafeMutableRawBufferPointer

    init(byteCount: Int) {
        memory = .allocate(byteCount: max(1, byteCount), alignment: 16)
        count = byteCount
    }

    convenience init(_ bytes: [UInt8]) {
        self.init(byteCount: bytes.count)
        memory.copyBytes(from: bytes)
    }

    deinit { memory.deallocate() }

    let count: Int
    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(memory)[..<count]) }
    var array: [UInt8] { [UInt8](bytes) }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) {
        UnsafeMutableRawBufferPointer(rebasing: memory[offset...]).copyMemory(from: bytes)
    }

    /// The bytes for in-place changes. The creator of the storage may change the bytes before sharing the storage.
    var mutableBytes: UnsafeMutableBufferPointer<UInt8> {
        UnsafeMutableRawBufferPointer(rebasing: memory[..<count]).assumingMemoryBound(to: UInt8.self)
    }
}
