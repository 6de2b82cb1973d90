import CVips
import Glibc

/// A Gaussian blur of pixels in memory. Its cost hardly depends on sigma.
///
/// Small sigmas are convolved directly, in floats, first along rows and then along columns. For larger sigmas, the
/// picture is reduced by an integer factor, convolved with a sigma of 1 to 1.5 times `reducedSigma`, and enlarged
/// again. Resampling is harmless because the blur leaves no detail. Reducing also blurs, so its variance is subtracted
/// from the variance of the blur.
struct GaussianBlur {
    /// The blurred image as floats, premultiplied if it has alpha. The image is evaluated lazily from pixels in memory.
    let image: Image
    /// The size of the tiles in which to compute the image. It is chosen so that adjacent tiles repeat little work for
    /// their shared surroundings.
    let tile: PixelSize

    /// The smallest sigma with which a reduced picture is convolved.
    private static let reducedSigma = 2.0
    /// The distance at which the Gaussian is truncated, in sigmas. Less than a ten-thousandth of the Gaussian is beyond
    /// it.
    private static let reach = 4.0

    /// Returns the approximate cost of a blur. The cost of a direct convolution grows with sigma, but the cost in a
    /// reduced picture does not.
    static func nanosecondsPerPixel(sigma: Double) -> Double {
        sigma < 2 * reducedSigma ? 10 + 28 * sigma : 60
    }

    init(of image: Image, sigma: Double, _ context: RenderContext) throws(RenderError) {
        let factor = Int(sigma / Self.reducedSigma)
        let work = try image.premultiplied()
        guard factor >= 2 else {
            self.image = try Self.convolved(work, sigma)
            tile = PixelSize(width: 512, height: max(16, Int(sigma * Self.reach) * 4))
            return
        }
        // Add a margin of replicated edge pixels, so that the reduced picture contains the surroundings of the edges.
        let reduced = Double(factor)
        let margin = Int((Self.reach * sigma / reduced).rounded(.up)) * factor
        let (columns, rows) = ((image.width + factor - 1) / factor, (image.height + factor - 1) / factor)
        let canvas = PixelSize(width: columns * factor + 2 * margin, height: rows * factor + 2 * margin)
        let wide = try work.placed(on: canvas, x: margin, y: margin, extend: "copy")
        let small = try Resize.scaled(
            wide.cast(to: "float"), to: PixelSize(width: wide.width / factor, height: wide.height / factor),
            kernel: "linear"
        ).inMemory(context.control, tile: PixelSize(width: max(16, 512 / factor), height: max(16, 512 / factor)))
        // The variance of a triangle that extends `factor` pixels to each side, sampled once per pixel.
        let square = reduced * reduced
        let added = factor % 2 == 0 ? (square + 0.5) / 6 : (square - 1) / 6
        let soft = try Self.convolved(small, ((sigma * sigma - added) / square).squareRoot())
            .inMemory(context.control, tile: PixelSize(width: 256, height: 64))
        // Use `affine`, because libvips' `resize` enlarges half a pixel off the grid that it reduces to.
        let place = (reduced - 1) / 2 - Double(margin)
        self.image = try VipsCall(
            "affine",
            [
                "in": .image(soft), "matrix": .doubles([reduced, 0, 0, reduced]), "interpolate": "bicubic",
                "oarea": .string("0 0 \(image.width) \(image.height)"), "odx": .double(place), "ody": .double(place),
                "premultiplied": true,
            ]
        ).image()
        tile = PixelSize(width: 512, height: 64)
    }

    private static func convolved(_ image: Image, _ sigma: Double) throws(RenderError) -> Image {
        let radius = Int((sigma * reach).rounded(.up))
        let weights = (-radius...radius).map { exp(-Double($0 * $0) / (2 * sigma * sigma)) }
        let sum = weights.reduce(0, +)
        let storage = PixelStorage(weights.map { $0 / sum }.withUnsafeBytes { [UInt8]($0) })
        let mask = try Image(
            storage, width: weights.count, height: 1, bands: 1, format: Int(CVIPS_FORMAT_DOUBLE))
        return try VipsCall(
            "convsep", ["in": .image(image), "mask": .image(mask), "precision": "float"]
        ).image()
    }
}
