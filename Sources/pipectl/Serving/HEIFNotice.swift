import Variants

/// The messages of `serve` at startup about the library that decodes HEIF and AVIF.
enum HEIFNotice {
    /// The first version that fixes a vulnerability by which a picture can take over the process that decodes it
    /// (GHSA-g89c-p67h-r497).
    static let floor = [1, 23, 5]

    /// - Parameters:
    ///   - version: The version of libheif, for example `1.15.1`, or nil if it is unknown.
    ///   - formats: The formats that are decoded.
    ///   - isTrusted: The `heif.trusted` setting.
    static func lines(version: String?, formats: Set<ImageFormat>, isTrusted: Bool) -> [String] {
        let affected = [ImageFormat.avif, .heif].filter(formats.contains)
        guard !affected.isEmpty else { return [] }
        let names = affected.map(\.rawValue).joined(separator: " and ")
        let found = "libheif \(version ?? "of an unknown version") decodes \(names)"
        let parts = version?.split(separator: ".").map { Int($0) ?? 0 } ?? []
        if isTrusted || !parts.lexicographicallyPrecedes(floor) && !parts.isEmpty { return [found] }
        return [
            found,
            "pipectl: warning: libheif before \(floor.map(String.init).joined(separator: ".")) has a vulnerability that lets a malicious picture run code "
                + "(GHSA-g89c-p67h-r497), confined to a render worker. Set heif.trusted=true if your distribution has patched "
                + "it, or remove \(names) from `decoders`",
        ]
    }
}
