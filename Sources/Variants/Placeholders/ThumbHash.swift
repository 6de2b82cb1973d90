import Glibc

/// Computes the ThumbHash of a picture: 5 to 25 bytes that decode to a blurred placeholder with approximately the same
/// aspect ratio and transparency.
///
/// The hash contains the lowest coefficients of a discrete cosine transform of brightness, two color differences and
/// alpha. Source: the ThumbHash reference (evanw/thumbhash).
package enum ThumbHash {
    private struct Channel {
        var constant = 0.0
        /// All coefficients except the first, divided by `scale` and mapped to 0…1.
        var waves: [Double] = []
        var scale = 0.0

        init(_ samples: [Double], width: Int, height: Int, across: Int, down: Int) {
            for row in 0..<down {
                let vertical = (0..<height).map { cos(.pi / Double(height) * Double(row) * (Double($0) + 0.5)) }
                // Use the upper left triangle of coefficients.
                for column in 0..<across where column * down < across * (down - row) {
                    let horizontal = (0..<width).map { cos(.pi / Double(width) * Double(column) * (Double($0) + 0.5)) }
                    var sum = 0.0
                    for y in 0..<height {
                        for x in 0..<width { sum += samples[y * width + x] * horizontal[x] * vertical[y] }
                    }
                    sum /= Double(width * height)
                    if row == 0, column == 0 {
                        constant = sum
                    } else {
                        waves.append(sum)
                        scale = max(scale, abs(sum))
                    }
                }
            }
            if scale > 0 { waves = waves.map { 0.5 + 0.5 / scale * $0 } }
        }
    }

    /// Returns the hash of a picture of at most 100 × 100 pixels.
    package static func hash(of picture: PixelBuffer) -> [UInt8] {
        let (width, height) = (picture.width, picture.height)
        var mean = (0.0, 0.0, 0.0)
        var weight = 0.0
        func sample(_ pixel: Int, _ band: Int) -> Double { Double(picture.pixels[pixel * 4 + band]) / 255 }
        for pixel in 0..<(width * height) {
            let alpha = sample(pixel, 3)
            mean.0 += alpha * sample(pixel, 0)
            mean.1 += alpha * sample(pixel, 1)
            mean.2 += alpha * sample(pixel, 2)
            weight += alpha
        }
        if weight > 0 { mean = (mean.0 / weight, mean.1 / weight, mean.2 / weight) }
        let hasAlpha = weight < Double(width * height)
        var (brightness, yellow, red, opacity) = ([Double](), [Double](), [Double](), [Double]())
        for pixel in 0..<(width * height) {
            // Composite onto the mean color, so that transparent pixels contribute nothing.
            let alpha = sample(pixel, 3)
            let r = mean.0 * (1 - alpha) + alpha * sample(pixel, 0)
            let g = mean.1 * (1 - alpha) + alpha * sample(pixel, 1)
            let b = mean.2 * (1 - alpha) + alpha * sample(pixel, 2)
            brightness.append((r + g + b) / 3)
            yellow.append((r + g) / 2 - b)
            red.append(r - g)
            opacity.append(alpha)
        }
        let most = hasAlpha ? 5.0 : 7.0
        func waves(_ edge: Int) -> Int { max(1, Int((most * Double(edge) / Double(max(width, height))).rounded())) }
        let (across, down) = (waves(width), waves(height))
        func channel(_ samples: [Double], _ across: Int, _ down: Int) -> Channel {
            Channel(samples, width: width, height: height, across: across, down: down)
        }
        var channels = [
            channel(brightness, max(3, across), max(3, down)), channel(yellow, 3, 3), channel(red, 3, 3),
        ]
        if hasAlpha { channels.append(channel(opacity, 5, 5)) }
        return pack(channels, across: across, down: down, isLandscape: width > height)
    }

    private static func pack(_ channels: [Channel], across: Int, down: Int, isLandscape: Bool) -> [UInt8] {
        func whole(_ value: Double) -> Int { Int(value.rounded()) }
        let (brightness, yellow, red) = (channels[0], channels[1], channels[2])
        let hasAlpha = channels.count > 3
        let first =
            whole(63 * brightness.constant) | whole(31.5 + 31.5 * yellow.constant) << 6
            | whole(31.5 + 31.5 * red.constant) << 12 | whole(31 * brightness.scale) << 18 | (hasAlpha ? 1 << 23 : 0)
        let second =
            (isLandscape ? down : across) | whole(63 * yellow.scale) << 3 | whole(63 * red.scale) << 9
            | (isLandscape ? 1 << 15 : 0)
        var hash = [first, first >> 8, first >> 16, second, second >> 8].map { UInt8(truncatingIfNeeded: $0) }
        if hasAlpha { hash.append(UInt8(whole(15 * channels[3].constant) | whole(15 * channels[3].scale) << 4)) }
        // Pack two coefficients into each byte. The first uses the lower four bits.
        var isHalf = false
        for wave in channels.flatMap(\.waves) {
            let value = UInt8(whole(15 * wave))
            if isHalf { hash[hash.count - 1] |= value << 4 } else { hash.append(value) }
            isHalf.toggle()
        }
        return hash
    }
}
