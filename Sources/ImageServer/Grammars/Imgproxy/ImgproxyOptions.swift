import Variants

/// The options of an imgproxy URL, after its presets have been applied.
struct ImgproxyOptions: Sendable {
    enum ResizingType: String, Sendable { case fit, fill, fillDown = "fill-down", force, auto }

    /// A place in a picture, and how far to move away from it.
    struct Gravity: Sendable, Hashable {
        enum Kind: String, Sendable { case ce, no, so, ea, we, noea, nowe, soea, sowe, fp, sm }

        var kind = Kind.ce
        /// The distance from the sides that `kind` names. Absolute values below 1 are fractions of the picture.
        var offset = SIMD2<Double>()
        /// The point of `fp`, 0…1.
        var focus = SIMD2<Double>(0.5, 0.5)
        /// Whether an option contains the gravity.
        var isGiven = false

        /// The sides that the place touches: −1 for left or top, 1 for right or bottom, 0 for neither.
        var sides: SIMD2<Int> {
            let name = kind.rawValue
            return SIMD2(
                name.hasSuffix("we") ? -1 : name.hasSuffix("ea") ? 1 : 0,
                name.hasPrefix("no") ? -1 : name.hasPrefix("so") ? 1 : 0)
        }
    }

    struct Extension: Sendable {
        var isOn = false
        var gravity = Gravity()
    }

    struct Trim: Sendable {
        /// The maximum difference from the border color, 0…255.
        var threshold = 10.0
        /// Six hexadecimal digits, or nil if the top left pixel has the color.
        var color: String?
        var isEqualHorizontally = false
        var isEqualVertically = false
    }

    struct Watermark: Sendable {
        var opacity = 0.0
        /// The place, and the gaps between tiles as its offset.
        var gravity = Gravity()
        var isTiled = false
        /// The size relative to the result, or 0 for the watermark's own size.
        var scale = 0.0
    }

    var type = ResizingType.fit
    /// The requested size in pixels. An edge that is 0 is not requested.
    var size = SIMD2<Double>()
    /// Whether the URL contains a part of `size`, rather than only a preset.
    var writesSize = false
    var minimum = SIMD2<Double>()
    var zoom = SIMD2<Double>(1, 1)
    var dpr = 1.0
    var enlarges = false
    var extends = Extension()
    var extendsRatio = Extension()
    var gravity = Gravity()
    /// The edges of the crop in pixels. An edge below 1 is a fraction; an edge that is 0 is not cropped.
    var crop = SIMD2<Double>()
    /// The gravity of the crop. If it is not given, it is `gravity`.
    var cropGravity = Gravity()
    var trim: Trim?
    /// The padding in pixels: top, right, bottom, left.
    var padding = SIMD4<Double>()
    var autoRotate = true
    /// The clockwise rotation in degrees: 0, 90, 180 or 270.
    var rotation = 0
    var flipsHorizontally = false
    var flipsVertically = false
    /// Six hexadecimal digits.
    var background: String?
    var blur = 0.0
    var sharpen = 0.0
    var pixelate = 0.0
    var watermark = Watermark()
    var stripMetadata = true
    var keepCopyright = true
    var stripColorProfile = true
    /// The quality, 1…100, or 0 for the default.
    var quality = 0.0
    var formatQuality: [ImageFormat: Int] = [:]
    /// The maximum size of the file in bytes. 0 means no maximum.
    var maxBytes = 0.0
    var format: ImageFormat?
    var skippedFormats: Set<ImageFormat> = []
    var isRaw = false
    var cachebuster = ""
    /// The time in Unix seconds, or 0 if the URL never expires.
    var expiry = 0.0
    var fileName = ""
    var isAttachment = false
    var limits = ImgproxyLimits()

    init(_ settings: ImgproxySettings) {
        (autoRotate, stripMetadata) = (settings.autoRotate, settings.stripMetadata)
        (stripColorProfile, skippedFormats) = (settings.stripColorProfile, Set(settings.skipFormats))
    }
}
