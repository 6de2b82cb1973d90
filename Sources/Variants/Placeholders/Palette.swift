import PipelineSupport

/// Finds the dominant colors of a picture with the median cut algorithm (Heckbert 1982).
package enum Palette {
    private typealias Color = [UInt8]

    /// Returns at most `count` colors as `rrggbb`, most frequent first. Pixels that are less than half opaque are
    /// ignored, and similar colors are merged.
    package static func colors(of picture: PixelBuffer, count: Int = 5) -> [String] {
        var pixels: [Color] = []
        for at in stride(from: 0, to: picture.pixels.count, by: 4) where picture.pixels[at + 3] >= 128 {
            pixels.append(Array(picture.pixels[at..<(at + 3)]))
        }
        guard !pixels.isEmpty else { return [] }
        var boxes = [pixels]
        while boxes.count < count {
            let widest = boxes.indices.max { weight(boxes[$0]) < weight(boxes[$1]) }
            guard let widest, weight(boxes[widest]) > 0 else { break }
            let band = band(of: boxes[widest]).index
            let sorted = boxes[widest].sorted { ($0[band], $0[0], $0[1]) < ($1[band], $1[0], $1[1]) }
            boxes[widest] = Array(sorted[..<(sorted.count / 2)])
            boxes.append(Array(sorted[(sorted.count / 2)...]))
        }
        var found: [(mean: [Int], pixels: Int)] = []
        for box in boxes.sorted(by: { $0.count > $1.count }) {
            let mean = (0..<3).map { band in box.reduce(0) { $0 + Int($1[band]) } / box.count }
            if let like = found.firstIndex(where: { other in zip(other.mean, mean).allSatisfy { abs($0 - $1) < 16 } }) {
                found[like].pixels += box.count
            } else {
                found.append((mean, box.count))
            }
        }
        return found.sorted { $0.pixels > $1.pixels }.map { hex($0.mean.map { UInt8($0) }) }
    }

    /// Returns the band in which the colors differ most, and the range of its values.
    private static func band(of box: [Color]) -> (index: Int, range: Int) {
        let ranges = (0..<3).map { band -> Int in
            let values = box.map { Int($0[band]) }
            return (values.max() ?? 0) - (values.min() ?? 0)
        }
        let index = ranges.indices.max { ranges[$0] < ranges[$1] } ?? 0
        return (index, ranges[index])
    }

    private static func weight(_ box: [Color]) -> Int { box.count > 1 ? box.count * band(of: box).range : 0 }
}
