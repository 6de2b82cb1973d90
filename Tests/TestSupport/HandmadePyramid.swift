/// A TIFF with 8-bit gray tiles, and with smaller versions. All tiles of a version are the same bytes of the file, so a file
/// of a few hundred kilobytes has hundreds of megapixels.
public enum HandmadePyramid {
    /// The edge of a tile in pixels.
    public static let tile = 256

    /// Returns a file whose pixels are `255 - column` of the tile at full resolution, and one gray in each smaller version.
    ///
    /// - Parameter levels: The number of smaller versions.
    public static func file(width: Int, height: Int, levels: Int) -> [UInt8] {
        var bytes = Array("II".utf8) + little(42, 2) + little(0, 4)
        var link = 4
        for level in 0...levels {
            let (width, height) = (width >> level, height >> level)
            let count = (width + tile - 1) / tile * ((height + tile - 1) / tile)
            let data = bytes.count
            for _ in 0..<tile {
                for column in 0..<tile { bytes.append(UInt8(level == 0 ? 255 - column : 100 + level)) }
            }
            let offsets = bytes.count
            bytes += (0..<count).flatMap { _ in little(data, 4) }
            let counts = bytes.count
            bytes += (0..<count).flatMap { _ in little(tile * tile, 4) }
            patch(&bytes, link, bytes.count)
            let entries = [
                (254, 1, level == 0 ? 0 : 1), (256, 1, width), (257, 1, height), (258, 1, 8), (259, 1, 1), (262, 1, 1),
                (277, 1, 1), (322, 1, tile), (323, 1, tile), (324, count, count == 1 ? data : offsets),
                (325, count, count == 1 ? tile * tile : counts),
            ]
            bytes += little(entries.count, 2)
            for (tag, count, value) in entries {
                bytes += little(tag, 2) + little(4, 2) + little(count, 4) + little(value, 4)
            }
            link = bytes.count
            bytes += little(0, 4)
        }
        return bytes
    }

    private static func patch(_ bytes: inout [UInt8], _ offset: Int, _ value: Int) {
        bytes.replaceSubrange(offset..<offset + 4, with: little(value, 4))
    }

    private static func little(_ value: Int, _ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(value >> (8 * $0) & 255) }
    }
}
