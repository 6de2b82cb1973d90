import CResample

/// A picture that passes by row after row: as decoded, or with squares of it added up. It is shrunk in linear light to
/// several sizes, and added up further.
final class ReductionLevel {
    /// Edge of the squares of decoded pixels that its own are sums of, in 16 bits; 1: decoded pixels.
    let box: Int
    /// Levels that are made from this one.
    var smaller: [ReductionLevel] = []
    private let size: PixelSize
    private let bands: Int
    private var states: [OpaquePointer] = []
    /// Adds up rows of the level above; nil for decoded rows.
    private var squares: OpaquePointer?

    /// Decoded rows.
    init(_ size: PixelSize, bands: Int) {
        (self.size, self.bands, box) = (size, bands, 1)
    }

    /// Sums of squares whose edge is `box` decoded pixels, a multiple of `level`'s.
    init(of level: ReductionLevel, box: Int) throws(RenderError) {
        let factor = box / level.box
        guard
            let squares = cbox_new(
                Int32(level.size.width), Int32(level.size.height), Int32(level.bands), Int32(factor),
                level.box > 1 ? 1 : 0)
        else {
            throw RenderError(.overLimit, "no memory to add up \(level.size.width) × \(level.size.height) pixels")
        }
        (self.squares, self.box, bands) = (squares, box, level.bands)
        size = Reduction.boxed(level.size, factor)
    }

    deinit {
        for state in states { cresample_free(state) }
        cbox_free(squares)
    }

    /// Shrinks to `target` what will pass of a part that begins at the top left and is so many of its pixels wide and high.
    /// The pixels are there once everything has passed.
    func reduce(_ part: (width: Double, height: Double), to target: PixelSize) throws(RenderError) -> PixelStorage {
        let pixels = PixelStorage(byteCount: target.width * target.height * bands)
        guard let out = pixels.mutableBytes.baseAddress,
            let state = cresample_new_part(
                Int32(size.width), Int32(size.height), part.width, part.height, Int32(bands),
                Int32(box * box), Int32(target.width), Int32(target.height), out)
        else { throw RenderError(.overLimit, "no memory to resize \(size.width) × \(size.height) pixels") }
        states.append(state)
        return pixels
    }

    /// Takes the next decoded rows, as they lie.
    func push(_ strip: Image.Tile) {
        if strip.isDense { return push(strip.start, strip.size.height) }
        for row in 0..<strip.size.height { push(strip.start + row * strip.lineBytes, 1) }
    }

    /// Takes the next rows, which follow each other without gaps.
    private func push(_ rows: UnsafeRawPointer, _ count: Int) {
        let rowBytes = size.width * bands * (box > 1 ? MemoryLayout<UInt16>.size : 1)
        for state in states { cresample_push(state, rows, Int32(count)) }
        for level in smaller {
            var row = 0
            while row < count {
                var sums: UnsafePointer<UInt16>?
                var made: Int32 = 0
                let taken = cbox_push(level.squares, rows + row * rowBytes, Int32(count - row), &sums, &made)
                if made > 0, let sums { level.push(sums, Int(made)) }
                // None beyond the last.
                if taken == 0 { break }
                row += Int(taken)
            }
        }
    }
}
