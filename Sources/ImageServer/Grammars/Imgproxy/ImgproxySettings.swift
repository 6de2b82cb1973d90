import PipelineSupport
import Variants

/// The settings of the imgproxy grammar. `ImgproxyReader` checks them.
struct ImgproxySettings: Sendable {
    /// A key and a salt in hexadecimal digits (`IMGPROXY_KEY`, `IMGPROXY_SALT`).
    struct KeyPair: Sendable, Hashable {
        var key: String
        var salt: String
    }

    /// A prefix of sources and its replacement (`IMGPROXY_URL_REPLACEMENTS`). In the pattern, `*` matches any text
    /// without `/`; in the replacement, `${1}` is the text of the first `*`.
    struct Replacement: Sendable, Hashable {
        var pattern: String
        var replacement: String
    }

    /// The pairs that verify signatures, or an empty list if any text may stand in place of a signature.
    var keys: [KeyPair] = []
    /// The number of bytes of a signature, 1…32.
    var signatureSize = 32
    /// Texts that are accepted in place of a signature.
    var trustedSignatures: [String] = []
    /// Whether URLs without a signature are served. If nil, the server's own rule applies.
    var unsigned: Bool?
    /// Option lists by name, such as `resize:fill:300:200/quality:70`. `default` applies to every URL.
    var presets: [String: String] = [:]
    /// Whether URLs contain the names of presets instead of options.
    var presetsOnly = false
    /// The options that URLs may use, or an empty list if they may use all. Presets are not restricted.
    var options: [String] = []
    /// The prefix of every source that does not begin with it.
    var baseURL: String?
    /// The folder of `local:///` sources on this machine. If nil, such sources are refused.
    var localRoot: String?
    /// The formats that a client may choose by `Accept` if the URL does not name a format: JPEG XL, AVIF and WebP.
    var autoFormats: [ImageFormat] = []
    /// The formats that a client may choose by `Accept` even if the URL names a format.
    var enforceFormats: [ImageFormat] = []
    /// The formats for URLs without a format, best first.
    var preferredFormats: [ImageFormat] = [.jpeg, .png, .gif]
    /// The quality of formats that `formatQuality` does not list, 1…100.
    var quality = 80
    var formatQuality: [ImageFormat: Int] = [.webp: 79, .avif: 63, .jxl: 77]
    /// How long clients may store a response, in seconds.
    var ttl = 31_536_000
    /// Whether responses have the origin's freshness instead of `ttl`.
    var cacheControlPassthrough = false
    /// The maximum number of frames of an animation.
    var animationFrames = 1
    /// The maximum length of a result's edge in pixels. Larger results are shrunk. 0 means no maximum.
    var maxResultDimension = 0
    /// The name of the overlay that `watermark` places, or nil if no watermark is configured.
    var watermark: String?
    /// The opacity of the watermark, 0…1, which `watermark` multiplies.
    var watermarkOpacity = 1.0
    /// The picture that is sent if a permitted request fails.
    var fallback: FallbackPicture?
    /// Whether an SVG is drawn as pixels if the URL does not name a format.
    var alwaysRasterizesSVG = false
    /// The formats of originals that are sent unchanged.
    var skipFormats: [ImageFormat] = []
    var stripMetadata = true
    var stripColorProfile = true
    var autoRotate = true
    /// Whether URLs may use options that change limits.
    var securityOptions = false
    /// The values up to which `securityOptions` may raise limits. If a value is 0, URLs may only lower the limit.
    var securityCeiling = ImgproxyLimits()
    /// Whether the last segment of a base64 source is a file name for search engines, which is ignored.
    var base64IncludesFilename = false
    /// The ASCII character between the parts of an option.
    var argumentsSeparator = ":"
    var urlReplacements: [Replacement] = []
    /// The Bearer token that every request must contain, or nil if requests need no token.
    var secret: String?
    /// The text before the query of sources that are not http or https URLs. If empty, these have no query.
    var queryInSource = "?"

    /// The name of the base folder that `local:///` sources refer to: `local:///a/b.jpg` is `imgproxy-local:a/b.jpg`.
    static let localName = "imgproxy-local"
    /// The formats that `Accept` can choose, best first.
    static let negotiable: [ImageFormat] = [.jxl, .avif, .webp]
    /// The formats that can be written.
    static let writable: [ImageFormat] = [.jpeg, .png, .webp, .gif, .avif, .jxl, .tiff]
}

/// Limits that an imgproxy URL sets with security options. A value is 0 if the URL does not set the limit.
struct ImgproxyLimits: Sendable, Hashable {
    /// The maximum size of an original, in megapixels. All frames count if `frameMegapixels` is 0.
    var sourceMegapixels = 0.0
    /// The maximum size of an original's file.
    var sourceBytes = 0.0
    var animationFrames = 0.0
    /// The maximum size of one frame of an animation, in megapixels.
    var frameMegapixels = 0.0
    /// The maximum length of a result's edge in pixels.
    var resultDimension = 0.0
}

extension ImgproxySettings {
    /// Checks the members that do not depend on each other.
    ///
    /// - Throws: a sentence that names the first wrong member.
    func check() throws(InvalidSetting) {
        for (isValid, sentence) in rules where !isValid { throw InvalidSetting(sentence) }
        if let watermark, (try? Recipe("overlay:\(watermark)")) == nil {
            throw InvalidSetting("`watermark` must be the name of an overlay, not `\(watermark)`")
        }
    }

    private var rules: [(isValid: Bool, sentence: String)] {
        let negotiable = Set(Self.negotiable)
        let writable = Set(Self.writable)
        return [
            ((1...32).contains(signatureSize), "`signatureSize` must be 1…32 bytes"),
            (!trustedSignatures.contains(""), "`trustedSignatures` must not contain an empty text"),
            (negotiable.isSuperset(of: autoFormats), "`autoFormats` may list jxl, avif and webp"),
            (negotiable.isSuperset(of: enforceFormats), "`enforceFormats` may list jxl, avif and webp"),
            (!preferredFormats.isEmpty, "`preferredFormats` must list at least one format"),
            (
                writable.isSuperset(of: preferredFormats),
                "`preferredFormats` may list \(Self.writable.map(\.rawValue).joined(separator: ", "))"
            ),
            ((1...100).contains(quality), "`quality` must be 1…100"),
            (formatQuality.values.allSatisfy { (1...100).contains($0) }, "`formatQuality` values must be 1…100"),
            (ttl >= 0, "`ttl` must be seconds, at least 0"),
            ((1...100_000).contains(animationFrames), "`animationFrames` must be 1…100000"),
            (maxResultDimension >= 0, "`maxResultDimension` must be pixels, or 0 for no maximum"),
            ((0...1).contains(watermarkOpacity), "`watermarkOpacity` must be 0…1"),
            (
                securityOptions || securityCeiling == ImgproxyLimits(),
                "`securityCeiling` has no effect without `securityOptions`"
            ),
            (
                [\ImgproxyLimits.animationFrames, \.resultDimension].allSatisfy {
                    (0...1_000_000).contains(securityCeiling[keyPath: $0])
                }, "`securityCeiling` must contain frames and pixels, 0…1000000"
            ),
            (
                argumentsSeparator.utf8.count == 1 && argumentsSeparator.utf8.allSatisfy { (0x21...0x7E).contains($0) }
                    && !"/%?@.".contains(argumentsSeparator),
                "`argumentsSeparator` must be one ASCII character other than `/`, `%`, `?`, `@` and `.`"
            ),
            (
                urlReplacements.allSatisfy { !$0.pattern.isEmpty },
                "`urlReplacements` must not contain an empty pattern"
            ),
            (
                baseURL.map { $0.contains("://") } ?? true,
                "`baseURL` must be a URL such as `https://example.org/pictures/`"
            ),
            (localRoot?.hasPrefix("/") ?? true, "`localRoot` must be an absolute path"),
            (secret != "", "`secret` must not be empty"),
            (!presetsOnly || !presets.isEmpty, "`presetsOnly` needs at least one preset"),
        ]
    }
}
