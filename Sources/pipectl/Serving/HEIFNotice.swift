import Variants

/// What `serve` says at its start of the library that decodes HEIF and AVIF.
enum HEIFNotice {
    /// Older versions have a flaw by which a picture takes over the process that decodes it (GHSA-g89c-p67h-r497).
    static let floor = [1, 23, 5]

    /// - Parameters:
    ///   - version: of libheif, such as `1.15.1`; nil if it is not known.
    ///   - formats: what is decoded.
    ///   - isTrusted: the setting `heif.trusted`.
    static func lines(version: String?, formats: Set<ImageFormat>, isTrusted: Bool) -> [String] {
        let affected = [ImageFormat.avif, .heif].filter(formats.contains)
        guard !affected.isEmpty else { return [] }
        let names = affected.map(\.rawValue).joined(separator: " and ")
        let found = "libheif \(version ?? "of an unknown version") decodes \(names)"
        let parts = version?.split(separator: ".").map { Int($0) ?? 0 } ?? []
        if isTrusted || !parts.lexicographicallyPrecedes(floor) && !parts.isEmpty { return [found] }
        return [
            found,
            "pipectl: warning: libheif before \(floor.map(String.init).joined(separator: ".")) lets a picture run code "
                + "(GHSA-g89c-p67h-r497); render workers confine it. Set heif.trusted=true if your distribution has patched "
                + "it, or take \(names) out of `decoders`",
        ]
    }
}
