import CVips
import CWebP
import Glibc

/// The libraries that a renderer has loaded: their versions, which a variant's bytes depend on, and the formats that they
/// write and read. A worker reports them when it starts.
package struct RenderLibraries: Sendable, Hashable {
    /// For example `libvips-8.14.1 libheif-1.15.1 libjpeg.so.62.3.0 … webp-66052`. Part of a variant's key, so an update
    /// leads to new variants instead of finding old ones.
    package var versions: String
    /// The version of libheif, for example `1.15.1`; nil if it is not loaded. A distribution may have fixed
    /// vulnerabilities in it without changing the version.
    package var libheif: String?
    /// The formats that can be written.
    package var written: Set<ImageFormat>
    /// The formats that can be read.
    package var read: Set<ImageFormat>
    /// The files that decide which libraries are loaded: their paths as the loader found them, the loader's cache, and the
    /// folders of plug-ins.
    package var files: [String]

    /// If nothing is known: everything is taken for possible, and a render that is not says so.
    package static let unknown = RenderLibraries(
        versions: "unknown", libheif: nil, written: Set(Catalogue.outputs.map { $0.format }),
        read: Set(ImageFormat.decodable), files: [])

    package init(
        versions: String, libheif: String?, written: Set<ImageFormat>, read: Set<ImageFormat>, files: [String]
    ) {
        self.versions = versions
        self.libheif = libheif
        self.written = written
        self.read = read
        self.files = files
    }
}

extension RenderLibraries {
    /// What this process has loaded. Only after `VipsLibrary.load()`; in a worker, before it is locked down.
    static let loaded = RenderLibraries(finding: ())

    /// Libraries whose version is in their file's name, and which pixels or bytes depend on.
    private static let named = [
        "libaom.so", "libcgif.so", "libimagequant.so", "libjpeg.so", "libjxl.so", "liblcms2.so", "libpng16.so",
        "libspng.so", "libtiff.so",
    ]

    private init(finding: Void) {
        // First, since this loads the plug-ins of libheif.
        var heif = CVipsHEIF()
        let hasHEIF = cvips_heif(&heif) != 0
        let paths = Self.paths()
        let vips = (0..<3).map { String(cvips.vips_version(Int32($0))) }.joined(separator: ".")
        libheif = hasHEIF ? heif.version.map { String(cString: $0) } : nil
        let names = paths.compactMap(Self.realName).filter { name in Self.named.contains { name.hasPrefix($0 + ".") } }
        let all = ["libvips-\(vips)", "libheif-\(libheif ?? "none")"] + Set(names).sorted()
        versions = all.joined(separator: " ") + " webp-\(WebPGetEncoderVersion())"
        written = Set(
            Catalogue.outputs.filter { output in
                output.saver.map { VipsLibrary.has($0) } != false && (output.format != .avif || heif.writes_av1 != 0)
            }.map { $0.format })
        read = Set(
            Catalogue.decoders.filter { decoder in
                VipsLibrary.has(decoder.loader) && (decoder.format != .avif || heif.reads_av1 != 0)
                    && (decoder.format != .heif || heif.reads_hevc != 0)
            }.map { $0.format })
        func folder(of library: String) -> String? {
            guard let path = paths.first(where: { $0.contains("/" + library + ".so") }) else { return nil }
            return path.lastIndex(of: "/").map { String(path[..<$0]) }
        }
        let module = vips.split(separator: ".").prefix(2).joined(separator: ".")
        let folders = [
            folder(of: "libvips").map { $0 + "/vips-modules-" + module },
            folder(of: "libheif").map { $0 + "/libheif/plugins" },
        ]
        files = paths + folders.compactMap { $0 } + ["/etc/ld.so.cache"]
    }

    /// The shared libraries of this process, as the loader found them.
    private static func paths() -> [String] {
        var paths: [String] = []
        withUnsafeMutablePointer(to: &paths) { paths in
            cvips_each_library(
                { path, paths in
                    guard let path, path.pointee == 0x2F, let paths else { return }
                    paths.assumingMemoryBound(to: [String].self).pointee.append(String(cString: path))
                }, paths)
        }
        return paths
    }

    /// The name of the file that a link leads to, which has the whole version.
    private static func realName(_ path: String) -> String? {
        guard let real = realpath(path, nil) else { return nil }
        defer { free(real) }
        return String(cString: real).split(separator: "/").last.map(String.init)
    }
}

extension RenderLibraries {
    /// What cannot be written, or read though it may be, and what would help: a sentence for each format.
    package func missing(decoding formats: Set<ImageFormat>) -> [String] {
        Catalogue.outputs.filter { !written.contains($0.format) }.map { Self.sentence("write", $0.format, $0.packages) }
            + Catalogue.decoders.filter { formats.contains($0.format) && !read.contains($0.format) }.map {
                Self.sentence("read", $0.format, $0.packages)
            }
    }

    /// Throws `notAvailable` if a format cannot be written.
    package func checkWrites(_ format: ImageFormat) throws(RenderError) {
        guard let encoder = format.encoder else {
            throw RenderError(.notAvailable, "`\(format)` is not an output format")
        }
        if written.contains(format) { return }
        throw RenderError(
            .notAvailable, Self.sentence("write", format, encoder.packages) + ", or choose another output")
    }

    /// Throws `unsupportedFormat` if a format cannot be read.
    func checkReads(_ format: ImageFormat) throws(RenderError) {
        guard let decoder = format.decoder, !read.contains(format) else { return }
        throw RenderError(.unsupportedFormat, Self.sentence("read", format, decoder.packages))
    }

    private static func sentence(
        _ what: String, _ format: ImageFormat, _ packages: (debian12: String, debian13: String)
    ) -> String {
        "the libraries of this machine cannot \(what) \(format.title): install \(packages.debian12) (Debian 12) or "
            + "\(packages.debian13) (Debian 13)"
    }
}

extension RenderLibraries {
    /// As text that `init(text:)` reads again.
    package var text: String {
        func names(_ formats: Set<ImageFormat>) -> String { formats.map(\.rawValue).sorted().joined(separator: " ") }
        return ([versions, libheif ?? "", names(written), names(read)] + files).joined(separator: "\n")
    }

    /// nil if it is not such a text.
    package init?(text: some StringProtocol) {
        let lines = String(text).split(separator: "\n" as Character, omittingEmptySubsequences: false).map {
            String($0)
        }
        guard lines.count >= 4 else { return nil }
        func formats(_ line: String) -> Set<ImageFormat> {
            Set(line.split(separator: " ").compactMap { ImageFormat(rawValue: String($0)) })
        }
        self.init(
            versions: lines[0], libheif: lines[1].isEmpty ? nil : lines[1], written: formats(lines[2]),
            read: formats(lines[3]), files: Array(lines[4...]))
    }
}
