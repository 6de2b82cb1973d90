import CVips

/// A libvips image: a description of pixels that are computed on demand.
///
/// Interleaved, `width × height × bands`; immutable once made.
// @unchecked Sendable: the pointer never changes, libvips counts references atomically and evaluates an image from any
// thread, and nothing here alters an image except its kill flag, which other threads are meant to set.
final class Image: @unchecked Sendable {
    let pointer: OpaquePointer
    /// What the pixels are computed from: libvips retains images, but not memory that was handed to it.
    private let kept: [AnyObject]

    init(adopting pointer: OpaquePointer, keeping kept: [AnyObject] = []) {
        self.pointer = pointer
        self.kept = kept
    }

    deinit { cvips.g_object_unref(UnsafeMutableRawPointer(pointer)) }

    /// An image over pixels in memory, which it keeps alive.
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
    /// The image's origin; after cutting out a part, minus the part's position.
    var offset: (x: Int, y: Int) {
        (Int(cvips.vips_image_get_xoffset(pointer)), Int(cvips.vips_image_get_yoffset(pointer)))
    }
    var hasAlpha: Bool { cvips.vips_image_hasalpha(pointer) != 0 }

    /// A metadata field's bytes (`exif-data`, `xmp-data`, `icc-profile-data`); nil if it is absent.
    func blob(_ name: String) -> [UInt8]? {
        guard cvips.vips_image_get_typeof(pointer, name) != 0 else { return nil }
        var start: UnsafeRawPointer?
        var length = 0
        guard cvips.vips_image_get_blob(pointer, name, &start, &length) == 0, let start else { return nil }
        return [UInt8](UnsafeRawBufferPointer(start: start, count: length))
    }

    /// Copies the colour profile of another image; only before this image is shared.
    func copyProfile(from other: Image) {
        let name = "icc-profile-data"
        if let profile = other.blob(name) { set(name, profile) }
    }

    func has(_ name: String) -> Bool { cvips.vips_image_get_typeof(pointer, name) != 0 }

    /// A metadata field that is a whole number; nil if it is absent.
    func integer(_ name: String) -> Int? {
        var number: Int32 = 0
        guard has(name), cvips.vips_image_get_int(pointer, name, &number) == 0 else { return nil }
        return Int(number)
    }

    /// A metadata field that is a list of whole numbers; nil if it is absent.
    func integers(_ name: String) -> [Int]? {
        var start: UnsafeMutablePointer<Int32>?
        var count: Int32 = 0
        guard has(name), cvips.vips_image_get_array_int(pointer, name, &start, &count) == 0, let start else {
            return nil
        }
        return UnsafeBufferPointer(start: start, count: Int(count)).map(Int.init)
    }

    /// Sets a metadata field; only before the image is shared.
    func set(_ name: String, _ number: Int) { cvips.vips_image_set_int(pointer, name, Int32(clamping: number)) }

    /// Sets a metadata field; only before the image is shared.
    func set(_ name: String, _ numbers: [Int]) {
        let numbers = numbers.map { Int32(clamping: $0) }
        cvips.vips_image_set_array_int(pointer, name, numbers, Int32(numbers.count))
    }

    /// Sets a metadata field, or removes it; only before the image is shared.
    func set(_ name: String, _ bytes: [UInt8]?) {
        guard let bytes else { return _ = cvips.vips_image_remove(pointer, name) }
        bytes.withUnsafeBytes { bytes in
            if let start = bytes.baseAddress {
                cvips.vips_image_set_blob_copy(pointer, name, start, bytes.count)
            }
        }
    }

    /// Makes every evaluation that reads from this image fail soon; callable from any thread.
    func kill() { cvips.vips_image_set_kill(pointer, 1) }

    /// All pixels, computed on the calling thread; for 8-bit, 16-bit and float images only.
    ///
    /// - Parameter tile: the size to compute at once, instead of a strip; for operations that read around each pixel.
    func computed(_ control: RenderControl, tile: PixelSize? = nil) throws(RenderError) -> PixelStorage {
        let storage = PixelStorage(byteCount: byteCount)
        try compute(into: storage, at: 0, control, tile: tile)
        return storage
    }

    /// The size of all pixels in bytes; for 8-bit, 16-bit and float images only.
    var byteCount: Int { width * height * pixelBytes }

    private var pixelBytes: Int {
        let sampleBytes: Int? = [CVIPS_FORMAT_UCHAR: 1, CVIPS_FORMAT_USHORT: 2, CVIPS_FORMAT_FLOAT: 4]
            .first { Int($0.key) == format }?.value
        guard let sampleBytes else { preconditionFailure("8 bit, 16 bit and float only") }
        return bands * sampleBytes
    }

    /// Like `computed`, but writes `byteCount` bytes into `storage`, starting at `offset`.
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

    /// A part of the pixels, in libvips' own memory.
    struct Tile {
        let left, top: Int
        let size: PixelSize
        let start: UnsafeRawPointer
        let pixelBytes: Int
        /// Bytes from one row to the next.
        let lineBytes: Int

        /// Whether rows follow each other without gaps.
        var isDense: Bool { lineBytes == size.width * pixelBytes }

        func line(_ row: Int) -> UnsafeRawBufferPointer {
            UnsafeRawBufferPointer(start: start + row * lineBytes, count: size.width * pixelBytes)
        }
    }

    /// Computes all pixels on the calling thread, top to bottom in tiles or, by default, strips of whole rows, as
    /// sequential loaders need. A tile is valid only within its call of `body`.
    ///
    /// Doing so here rather than through a libvips sink keeps the work on our thread (so that its CPU clock measures
    /// what a render costs) and gives a place to stop.
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

    /// The height libvips' own sinks use (`VIPS__FATSTRIP_HEIGHT`): its line caches are sized for it.
    private static let stripRows = 16
}

/// Memory for pixels, freed with its last reference.
// @unchecked Sendable: only its creator writes to it, before sharing it.
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

    /// The bytes, to be changed in place; only the storage's creator may do so, before sharing it.
    var mutableBytes: UnsafeMutableBufferPointer<UInt8> {
        UnsafeMutableRawBufferPointer(rebasing: memory[..<count]).assumingMemoryBound(to: UInt8.self)
    }
}
