import CWebP
import Glibc

/// The versions of our rendering code and of the decoding and encoding libraries that a variant's bytes depend on. Part
/// of the variant's key, so an update of either leads to new variants instead of finding old ones.
package enum RenderRevision {
    /// Increased whenever the same recipe may give different pixels or bytes.
    static let rendering = 7

    /// The libraries, by the names under which Debian's loader finds them. Each name links to the file of one version,
    /// so the version is known without loading the library.
    private static let libraries = [
        "libvips.so.42", "libjpeg.so.62", "libpng16.so.16", "libheif.so.1", "libjxl.so.0.7", "libcgif.so.0",
        "libimagequant.so.0",
    ]

    /// For example `1 libvips.so.42.15.1 libjpeg.so.62.3.0 … webp-66052`; constant for the life of the process.
    package static let current: String = {
        let versions = libraries.map { name in version(of: name) ?? name + "-unknown" }
        return "\(rendering) \(versions.joined(separator: " ")) webp-\(WebPGetEncoderVersion())"
    }()

    /// The version of libheif, found without loading it, for example `1.15.1`; nil if it is not installed or its file's
    /// name does not say. A distribution may have fixed vulnerabilities in it without changing the version.
    package static let libheif: String? = version(of: "libheif.so.1").flatMap { name in
        let version = name.dropFirst("libheif.so.".count)
        return version.contains(".") ? String(version) : nil
    }

    private static func version(of name: String) -> String? {
        #if arch(x86_64)
            let triplet = "x86_64-linux-gnu"
        #elseif arch(arm64)
            let triplet = "aarch64-linux-gnu"
        #else
            let triplet = "lib"
        #endif
        for folder in ["/usr/local/lib/\(triplet)", "/usr/local/lib", "/usr/lib/\(triplet)", "/usr/lib64", "/usr/lib"] {
            guard let path = realpath("\(folder)/\(name)", nil) else { continue }
            defer { free(path) }
            let text = String(cString: path)
            return text.split(separator: "/").last.map(String.init)
        }
        return nil
    }
}
