import CVips

/// The libraries that a renderer has loaded, and the formats that they can encode and decode. A worker reports its
/// libraries when it starts.
package struct RenderLibraries: Sendable, Hashable {
    /// The version of libvips, such as `8.14.1`. The version is part of each variant's key, so an update of libvips
    /// leads to new variants instead of stale hits.
    package var libvips: String
    /// The version of libheif, such as `1.15.1`, or nil if libheif is not loaded. Distributions often fix
    /// vulnerabilities without changing this version.
    package var libheif: String?
    /// The formats that can be encoded.
    package var written: Set<ImageFormat>
    /// The formats that can be decoded.
    package var read: Set<ImageFormat>
    /// The files that determine which libraries are loaded: the library paths as the loader resolved them, the loader's
    /// cache, and the plug-in folders.
    package var files: [String]

    /// A placeholder for unknown libraries. Every format is assumed to work, and a render that fails reports the error.
    package static let unknown = RenderLibraries(
        libvips: "unknown", libheif: nil, written: Set(Catalog.outputs.map { $0.format }),
        read: Set(ImageFormat.decodable), files: [])

    package init(
        libvips: String, libheif: String?, written: Set<ImageFormat>, read: Set<ImageFormat>, files: [String]
    ) {
        self.libvips = libvips
        self.libheif = libheif
        self.written = written
        self.read = read
        self.files = files
    }
}

extension RenderLibraries {
    /// The libraries that this process has loaded. This must be read only after `VipsLibrary.load()` and, in a worker,
    /// before the sandbox is applied.
    static let loaded = RenderLibraries(finding: ())

    private init(finding: Void) {
        // This call comes first because it loads libheif's plug-ins.
        var heif = CVipsHEIF()
        let hasHEIF = cvips_heif(&heif) != 0
        let paths = Self.paths()
        let version = (0..<3).map { String(cvips.vips_version(Int32($0))) }
        libvips = version.joined(separator: ".")
        libheif = hasHEIF ? heif.version.map { String(cString: $0) } : nil
        written = Set(
            Catalog.outputs.filter { output in
                output.saver.map { VipsLibrary.has($0) } != false && (output.format != .avif || heif.writes_av1 != 0)
            }.map { $0.format })
        read = Set(
            Catalog.decoders.filter { decoder in
                VipsLibrary.has(decoder.loader) && (decoder.format != .avif || heif.reads_av1 != 0)
                    && (decoder.format != .heif || heif.reads_hevc != 0)
            }.map { $0.format })
        func folder(of library: String) -> String? {
            guard let path = paths.first(where: { $0.contains("/" + library + ".so") }) else { return nil }
            return path.lastIndex(of: "/").map { String(path[..<$0]) }
        }
        let folders = [
            folder(of: "libvips").map { $0 + "/vips-modules-" + version.prefix(2).joined(separator: ".") },
            folder(of: "libheif").map { $0 + "/libheif/plugins" },
        ]
        files = paths + folders.compactMap { $0 } + ["/etc/ld.so.cache"]
    }

    /// Returns the paths of the shared libraries in this process, as the loader resolved them.
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
}

extension RenderLibraries {
    /// Returns a sentence for each output format that cannot be encoded and for each of `formats` that cannot be
    /// decoded. The sentence says how to fix the problem.
    package func missing(decoding formats: Set<ImageFormat>) -> [String] {
        Catalog.outputs.filter { !written.contains($0.format) }.map { Self.sentence("write", $0.format, $0.packages) }
            + Catalog.decoders.filter { formats.contains($0.format) && !read.contains($0.format) }.map {
                Self.sentence("read", $0.format, $0.packages)
            }
    }

    /// Throws `notAvailable` if the format cannot be encoded.
    package func checkWrites(_ format: ImageFormat) throws(RenderError) {
        guard let encoder = format.encoder else {
            throw RenderError(.notAvailable, "`\(format)` is not an output format")
        }
        if written.contains(format) { return }
        throw RenderError(
            .notAvailable, Self.sentence("write", format, encoder.packages) + ", or use a different output")
    }

    /// Throws `unsupportedFormat` if the format cannot be decoded.
    func checkReads(_ format: ImageFormat) throws(RenderError) {
        guard let decoder = format.decoder, !read.contains(format) else { return }
        throw RenderError(.unsupportedFormat, Self.sentence("read", format, decoder.packages))
    }

    private static func sentence(
        _ what: String, _ format: ImageFormat, _ packages: (debian12: String, debian13: String)
    ) -> String {
        "the libraries on this machine cannot \(what) \(format.title): install \(packages.debian12) (Debian 12) or "
            + "\(packages.debian13) (Debian 13)"
    }
}

extension RenderLibraries: CustomStringConvertible {
    /// A description such as `libvips 8.14.1, libheif 1.15.1`.
    package var description: String { "libvips \(libvips)" + (libheif.map { ", libheif \($0)" } ?? "") }

    /// The text form, which `init(text:)` can parse.
    package var text: String {
        func names(_ formats: Set<ImageFormat>) -> String { formats.map(\.rawValue).sorted().joined(separator: " ") }
        return ([libvips, libheif ?? "", names(written), names(read)] + files).joined(separator: "\n")
    }

    /// Parses the text form. Returns nil if the text is invalid.
    package init?(text: some StringProtocol) {
        let lines = String(text).split(separator: "\n" as Character, omittingEmptySubsequences: false).map {
            String($0)
        }
        guard lines.count >= 4 else { return nil }
        func formats(_ line: String) -> Set<ImageFormat> {
            Set(line.split(separator: " ").compactMap { ImageFormat(rawValue: String($0)) })
        }
        self.init(
            libvips: lines[0], libheif: lines[1].isEmpty ? nil : lines[1], written: formats(lines[2]),
            read: formats(lines[3]), files: Array(lines[4...]))
    }
}
