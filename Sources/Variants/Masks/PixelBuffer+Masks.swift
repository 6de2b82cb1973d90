extension PixelBuffer {
    /// Returns the picture with its alpha multiplied by a mask. Uses the alpha of the mask, or its luminance (Rec. 709
    /// weights) if the mask is fully opaque. A mask of a different size is stretched bilinearly.
    public func masked(by mask: PixelBuffer) -> PixelBuffer {
        guard !pixels.isEmpty, !mask.pixels.isEmpty else { return self }
        let values = mask.maskValues
        var result = self
        for y in 0..<height {
            let (top, bottom, fractionY) = Self.neighbors(y, of: height, in: mask.height)
            for x in 0..<width {
                let (left, right, fractionX) = Self.neighbors(x, of: width, in: mask.width)
                func value(_ x: Int, _ y: Int) -> Double { Double(values[y * mask.width + x]) }
                let upper = value(left, top) * (1 - fractionX) + value(right, top) * fractionX
                let lower = value(left, bottom) * (1 - fractionX) + value(right, bottom) * fractionX
                let at = (y * width + x) * 4 + 3
                let coverage = UInt8((upper * (1 - fractionY) + lower * fractionY).rounded())
                result.pixels[at] = alphaProduct(result.pixels[at], coverage)
            }
        }
        return result
    }

    /// Returns the picture with rounded corners. The radius is in pixels and is clamped as in CSS.
    public func roundedMask(radius: Double) -> PixelBuffer {
        guard width > 0, height > 0 else { return self }
        var result = self
        let radii = [EdgeLength](repeating: .pixels(radius.isFinite ? radius : 0), count: 4)
        let shape = RoundedRectangle(width: width, height: height, radii: radii)
        result.pixels.withUnsafeMutableBufferPointer { shape.multiply(into: $0) {} }
        return result
    }

    /// One value per pixel: alpha, or luminance if the picture is fully opaque.
    private var maskValues: [UInt8] {
        let hasAlpha = stride(from: 3, to: pixels.count, by: 4).contains { pixels[$0] < 255 }
        return stride(from: 0, to: pixels.count, by: 4).map { at in
            if hasAlpha { return pixels[at + 3] }
            let luminance =
                0.2126 * Double(pixels[at]) + 0.7152 * Double(pixels[at + 1]) + 0.0722 * Double(pixels[at + 2])
            return UInt8(luminance.rounded())
        }
    }

    /// Returns the two samples on either side of a position, with pixel centers aligned, and the distance from the
    /// first sample.
    private static func neighbors(_ index: Int, of count: Int, in samples: Int) -> (Int, Int, Double) {
        let position = min(
            max((Double(index) + 0.5) * Double(samples) / Double(count) - 0.5, 0), Double(samples - 1))
        let low = Int(position)
        return (low, min(low + 1, samples - 1), position - Double(low))
    }
}
