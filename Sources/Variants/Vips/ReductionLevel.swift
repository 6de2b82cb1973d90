import CResample
import CVips

/// A picture that is streamed row by row, either as decoded or with squares of pixels summed. A level shrinks to
/// several sizes, and can be summed further into smaller levels.
final class ReductionLevel {
    /// The edge length of the square of decoded pixels whose 16-bit sum is one pixel of this level. 1 if the level
    /// contains the decoded pixels themselves.
    let box: Int
    /// The factor between samples and bytes: 1 for bytes, 257 for 16 bits, or the number of pixels in a sum.
    private let steps: Int
    /// The levels that are summed from this level.
    var smaller: [ReductionLevel] = []
    private let size: PixelSize
    private let bands: Int
    private var states: [OpaquePointer] = []
    /// The object that sums the rows of the larger level, or nil if this level contains decoded rows.
    private var squares: OpaquePointer?

    /// Creates a level of decoded rows.
    init(_ image: Image) {
        size = PixelSize(width: image.width, height: image.height)
        (bands, box, steps) = (image.bands, 1, image.format == Int(CVIPS_FORMAT_UCHAR) ? 1 : 257)
    }

    /// Creates a level of sums over squares with an edge of `box` decoded pixels, which must be a multiple of the edge
    /// of `level`.
    init(of level: ReductionLevel, box: Int) throws(RenderError) {
        let factor = box / level.box
        guard
            let squares = cbox_new(
                Int32(level.size.width), Int32(level.size.height), Int32(level.bands), Int32(factor),
                level.box > 1 ? 1 : 0)
        else {
            throw RenderError(
                .overLimit, "out of memory while averaging \(level.size.width) × \(level.size.height) pixels")
        }
        (self.squares, self.box, bands, steps) = (squares, box, level.bands, box * box)
        size = Reduction.boxed(level.size, factor)
    }

    deinit {
        for state in states { cresample_free(state) }
        cbox_free(squares)
    }

    /// Starts to shrink one part of the picture, whose rows are pushed afterwards. The returned storage is complete
    /// after all rows have been pushed.
    func reduce(_ part: Reduction.Part) throws(RenderError) -> PixelStorage {
        let target = part.target
        let pixels = PixelStorage(byteCount: target.width * target.height * bands)
        guard let out = pixels.mutableBytes.baseAddress,
            let state = cresample_new(
                Int32(size.width), Int32(size.height), part.width, part.height, Int32(bands),
                Int32(steps), part.linear, Int32(target.width), Int32(target.height), out)
        else { throw RenderError(.overLimit, "out of memory while resizing \(size.width) × \(size.height) pixels") }
        states.append(state)
        return pixels
    }

    /// Processes the next decoded rows, which may be padded.
    func push(_ strip: Image.Tile) {
        if strip.isDense { return push(strip.start, strip.size.height) }
        for row in 0..<strip.size.height { push(strip.start + row * strip.lineBytes, 1) }
    }

    /// Processes the next rows, which must be contiguous.
    private func push(_ rows: UnsafeRawPointer, _ count: Int) {
        let rowBytes = size.width * bands * (steps > 1 ? MemoryLayout<UInt16>.size : 1)
        for state in states { cresample_push(state, rows, Int32(count)) }
        for level in smaller {
            var row = 0
            while row < count {
                var sums: UnsafePointer<UInt16>?
                var made: Int32 = 0
                let consumed = cbox_push(level.squares, rows + row * rowBytes, Int32(count - row), &sums, &made)
                if made > 0, let sums { level.push(sums, Int(made)) }
                // Rows after the last row of the picture are not consumed.
                if consumed == 0 { break }
                row += Int(consumed)
            }
        }
    }
}
