import Glibc
import PipelineSupport

/// Computes the average color of a picture and its BlurHash, a short string that decodes to a blurred placeholder.
///
/// The hash contains the lowest coefficients of a discrete cosine transform of the picture in linear light, quantized
/// and encoded in base 83. Source: the BlurHash algorithm description (woltapp/blurhash, Algorithm.md).
package enum BlurHash {
    private static let digits = Array(
        "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz#$%*+,-.:;=?@[]^_{|}~".utf8)

    /// Returns the mean color in linear light, weighted by alpha, as `rrggbb`. Returns nil if every pixel is fully
    /// transparent.
    package static func averageColor(of picture: PixelBuffer) -> String? {
        var sum = (0.0, 0.0, 0.0)
        var weight = 0.0
        for pixel in stride(from: 0, to: picture.pixels.count, by: 4) {
            let alpha = Double(picture.pixels[pixel + 3]) / 255
            sum.0 += linear(picture.pixels[pixel]) * alpha
            sum.1 += linear(picture.pixels[pixel + 1]) * alpha
            sum.2 += linear(picture.pixels[pixel + 2]) * alpha
            weight += alpha
        }
        guard weight > 0 else { return nil }
        return hex([sum.0, sum.1, sum.2].map { UInt8(encoded($0 / weight)) })
    }

    /// Returns the hash with `across` × `down` components. Both numbers must be 1…9. The picture is composited onto
    /// white.
    package static func hash(of picture: PixelBuffer, across: Int = 4, down: Int = 3) -> String {
        var factors: [(Double, Double, Double)] = []
        for row in 0..<down {
            for column in 0..<across { factors.append(factor(picture, column, row)) }
        }
        var text = base83((across - 1) + (down - 1) * 9, length: 1)
        let largest = factors.dropFirst().map { max(abs($0.0), abs($0.1), abs($0.2)) }.max() ?? 0
        let quantized = max(0, min(82, Int(largest * 166 - 0.5)))
        let scale = factors.count > 1 ? Double(quantized + 1) / 166 : 1
        text += base83(quantized, length: 1)
        let mean = factors[0]
        text += base83(encoded(mean.0) << 16 + encoded(mean.1) << 8 + encoded(mean.2), length: 4)
        for (red, green, blue) in factors.dropFirst() {
            let parts = [red, green, blue].map { value -> Int in
                let root = sqrt(abs(value / scale)) * (value < 0 ? -1 : 1)
                return max(0, min(18, Int((root * 9 + 9.5).rounded(.down))))
            }
            text += base83(parts[0] * 361 + parts[1] * 19 + parts[2], length: 2)
        }
        return text
    }

    private static func factor(_ picture: PixelBuffer, _ column: Int, _ row: Int) -> (Double, Double, Double) {
        var sum = (0.0, 0.0, 0.0)
        for y in 0..<picture.height {
            let vertical = cos(Double.pi * Double(row) * Double(y) / Double(picture.height))
            for x in 0..<picture.width {
                let basis = vertical * cos(Double.pi * Double(column) * Double(x) / Double(picture.width))
                let pixel = (y * picture.width + x) * 4
                let alpha = Double(picture.pixels[pixel + 3]) / 255
                sum.0 += basis * (linear(picture.pixels[pixel]) * alpha + 1 - alpha)
                sum.1 += basis * (linear(picture.pixels[pixel + 1]) * alpha + 1 - alpha)
                sum.2 += basis * (linear(picture.pixels[pixel + 2]) * alpha + 1 - alpha)
            }
        }
        let scale = (column == 0 && row == 0 ? 1.0 : 2.0) / Double(picture.width * picture.height)
        return (sum.0 * scale, sum.1 * scale, sum.2 * scale)
    }

    private static func linear(_ value: UInt8) -> Double { SRGBCurve.linear(Double(value) / 255) }

    private static func encoded(_ value: Double) -> Int {
        Int((SRGBCurve.encoded(max(0, min(1, value))) * 255).rounded())
    }

    private static func base83(_ value: Int, length: Int) -> String {
        var value = value
        var text: [UInt8] = []
        for _ in 0..<length {
            text.insert(digits[value % 83], at: 0)
            value /= 83
        }
        return String(decoding: text, as: UTF8.self)
    }
}
