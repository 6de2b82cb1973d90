import CVips
import PipelineSupport

/// A property of a JPEG that prevents storing its coefficients as JPEG XL. libjxl accepts baseline, extended and
/// progressive files with Huffman coding, 8 bits per sample, and one or three components.
package enum TranscodingObstacle: Int, Sendable, Hashable, CaseIterable {
    case components = 1
    case arithmeticCoding, depth, process

    /// Reads a frame header (ITU-T T.81 §B.2.2). Returns nil if it has no obstacle.
    init?(frame marker: UInt8, _ segment: ByteReader) {
        if marker >= 0xC9 {
            self = .arithmeticCoding
        } else if marker > 0xC2 {
            self = .process
        } else if segment.byte(0) != 8 {
            self = .depth
        } else if ![1, 3].contains(segment.byte(5)) {
            self = .components
        } else {
            return nil
        }
    }

    fileprivate var reason: String {
        switch self {
        case .components: "JPEG XL can keep the data of grayscale and color JPEGs, but not of CMYK"
        case .arithmeticCoding: "the JPEG uses arithmetic coding; save it with Huffman coding"
        case .depth: "the JPEG has more than 8 bits per sample"
        case .process: "the JPEG uses a lossless or hierarchical process"
        }
    }
}

extension Recipe {
    /// Whether the variant has the same pixels as the original, apart from the color space.
    var keepsPixels: Bool { steps.isEmpty && orients }

    /// Returns the reason why the data of an original cannot be kept, or nil if no reason is known.
    func transcodingProblem(for header: ImageHeader) -> String? {
        if header.format != .jpeg { return "the original's format is \(header.format.title), not JPEG" }
        return keepsPixels ? header.transcodingObstacle?.reason : "the settings add steps to the recipe"
    }

    /// Returns the reason why the pixels of an original are encoded although the recipe says `transcode`. Otherwise
    /// returns nil.
    package func refusedTranscoding(of header: ImageHeader) -> String? {
        output?.transcodes == true ? transcodingProblem(for: header) : nil
    }
}

/// Explains why a JPEG was not transcoded.
struct RefusedTranscoding: Error {
    var reason: String
}

extension Render {
    /// Returns a JPEG XL file with the coefficients of the original. Fails if libjxl does not accept the original, for
    /// example because it is damaged.
    func transcoded() throws(RenderError) -> Result<RenderedVariant, RefusedTranscoding> {
        try Encoding.checkAvailability(job.output)
        try job.checkSizes()
        func refused(_ reason: String) -> Result<RenderedVariant, RefusedTranscoding> {
            .failure(RefusedTranscoding(reason: reason))
        }
        let header = job.header
        guard let library = JXLDecoder.library else { return refused("libjxl is not a separate library here") }
        guard let jpeg = TranscodedJPEG(ByteReader(original), job) else { return refused("the JPEG is truncated") }
        // libjxl 0.7 does not check its allocations. For pictures of 1 to 12 megapixels, it needs 57 to 66 bytes of
        // address space per pixel and 1.3 times the bytes of the JPEG.
        let needed = 68 * header.encodedWidth * header.encodedHeight + 2 * jpeg.bytes.count + 16 << 20
        guard AddressSpace.hasRoom(for: needed) else {
            return refused(
                "transcoding \(header.sizeText) takes about \(needed / 1_000_000) MB, more than limits.workerMemory allows"
            )
        }
        try context.control.check()
        let file = jpeg.stored(by: library)
        try context.control.check()
        let found = file?.withUnsafeBytes { try? JXLHeader.read(ByteReader($0)) }
        guard let file, let found, found.width == header.encodedWidth, found.height == header.encodedHeight,
            found.orientation == header.orientation
        else {
            return refused("libjxl does not accept the JPEG, which is damaged or has an unusual structure")
        }
        var variant = RenderedVariant(
            bytes: file, format: .jxl, width: header.width, height: header.height, hasAlpha: false,
            timings: Timings(encode: .seconds(SystemClock.monotonic.seconds - started)),
            cpuTime: .seconds(max(0, SystemClock.threadCPU.seconds - startedCPU)))
        variant.libraries = RenderLibraries.loaded
        return .success(variant)
    }
}

/// The JPEG that is stored. It has the original's frame, scans, tables and color profile, and the metadata that the output
/// keeps. Entropy-coded data is copied unchanged.
private struct TranscodedJPEG {
    private(set) var bytes: [UInt8]
    private let exif: [UInt8]?
    private let xmp: [UInt8]?

    private static let xmpMark: StaticString = "http://ns.adobe.com/xap/1.0/\0"

    /// Returns nil if the JPEG has no EOI marker. If the output keeps all metadata, the file is not changed.
    init?(_ file: ByteReader, _ job: RenderJob) {
        let own = Self.metadata(of: file)
        if job.output.keep.isSuperset(of: JXLOutput.holds) {
            bytes = [UInt8](file.all)
            (exif, xmp) = (own.tiff, own.xmp)
            return
        }
        guard let plain = Self.withoutMetadata(file) else { return nil }
        let size = PixelSize(width: job.header.encodedWidth, height: job.header.encodedHeight)
        var kept = own.kept(for: job.output, of: size, isUpright: false, tiff: file.part(0, 0))
        kept.exif = Self.oriented(kept.tiff, job.header.orientation)
        bytes = kept.inserted(intoJPEG: plain)
        (exif, xmp) = (kept.exif, kept.xmp)
    }

    /// Returns the first EXIF and XMP segments and all IIM. libjxl, too, uses only the first segments.
    private static func metadata(of file: ByteReader) -> KeptBlobs {
        var found = KeptBlobs()
        found.iim = IIM.resources(ofJPEG: file)
        // `forEachSegment` only rethrows errors of its body, and this body does not throw.
        _ = try? JPEGDecoder.forEachSegment(file) { marker, segment, _ in
            if marker == 0xE1, found.exif == nil, segment.matches("Exif\0\0") {
                found.exif = [UInt8](segment.part(6).all)
            } else if marker == 0xE1, found.xmp == nil, segment.matches(xmpMark) {
                found.xmp = [UInt8](segment.part(xmpMark.utf8CodeUnitCount).all)
            }
            return marker != 0xDA
        }
        return found
    }

    /// Returns the file without metadata, comments, thumbnails, further pictures, and bytes between segments. Keeps the
    /// tables, frames, scans and profile, and the segments that determine the color model (JFIF and Adobe). Returns nil
    /// if the file has no EOI marker.
    private static func withoutMetadata(_ file: ByteReader) -> [UInt8]? {
        var bytes: [UInt8] = [0xFF, 0xD8]
        bytes.reserveCapacity(file.count)
        /// The offset of the entropy-coded data after a scan header.
        var scan: Int?
        var end = 2
        let isComplete = try? JPEGDecoder.forEachSegment(file) { marker, segment, offset in
            let start = offset - segment.count - 4
            if let scan { bytes += file.part(scan, start - scan).all }
            scan = marker == 0xDA ? offset : nil
            end = offset
            let content: [UInt8]
            switch marker {
            case 0xC4, 0xDA, 0xDB, 0xDD: content = [UInt8](segment.all)
            case _ where JPEGDecoder.isFrame(marker): content = [UInt8](segment.all)
            case 0xE0 where segment.matches("JFIF\0") && segment.count >= 14:
                content = segment.part(0, 12).all + [0, 0]  // The size of the thumbnail.
            case 0xE2 where segment.matches("ICC_PROFILE\0"): content = [UInt8](segment.all)
            case 0xEE where segment.matches("Adobe"): content = [UInt8](segment.part(0, 12).all)
            default: return true
            }
            bytes += [0xFF, marker] + Bytes.bigEndian(content.count + 2, 2) + content
            return true
        }
        guard isComplete == true else { return nil }
        if let scan {
            while let next = file.firstOffset(of: 0xFF, from: end), file.byte(next + 1) != 0xD9 { end = next + 1 }
            bytes += file.part(scan, (file.firstOffset(of: 0xFF, from: end) ?? file.count) - scan).all
        }
        return bytes + [0xFF, 0xD9]
    }

    /// Returns EXIF with this orientation.
    private static func oriented(_ exif: [UInt8]?, _ orientation: Int) -> [UInt8]? {
        let block = exif ?? [UInt8]("MM\0*".utf8) + Bytes.bigEndian(8)
        return block.withUnsafeBytes { bytes in
            guard let tiff = TIFFHeader(ByteReader(bytes)), tiff.orientation ?? 1 != orientation else { return exif }
            return tiff.adding([(0x0112, 3, tiff.bytes(orientation, 2))])
        }
    }

    /// Returns a JPEG XL file with the same coefficients, or nil if libjxl does not accept the JPEG. Checks that the JPEG
    /// can be restored, because libjxl 0.7 writes unreadable files for RGB with subsampled components.
    func stored(by library: String) -> [UInt8]? {
        bytes.withUnsafeBytes { jpeg -> [UInt8]? in
            guard let start = jpeg.baseAddress else { return nil }
            // The boxes and the data for restoring can exceed the savings in a small file.
            let file = [UInt8](unsafeUninitializedCapacity: jpeg.count + 1 << 16) { file, count in
                guard let target = file.baseAddress else { return }
                count = cvips_jxl_transcode(library, start, jpeg.count, target, file.count)
            }
            if file.isEmpty { return nil }
            let readable = uncompressed(file)
            return cvips_jxl_restores(library, readable, readable.count, start, jpeg.count) == 1 ? readable : nil
        }
    }

    /// Returns the JPEG XL file with EXIF and XMP in plain boxes. libjxl compresses them (`brob`, ISO/IEC 18181-2 §9),
    /// which few programs read.
    private func uncompressed(_ file: [UInt8]) -> [UInt8] {
        file.withUnsafeBytes { bytes in
            HEIFHeader.boxes(ByteReader(bytes)).reduce(into: []) { result, box in
                if box.type == "brob", let exif, box.data.matches("Exif") {
                    // The four bytes before the EXIF data are the offset of its TIFF header.
                    result += Bytes.box("Exif", [0, 0, 0, 0] + exif)
                } else if box.type == "brob", let xmp, box.data.matches("xml ") {
                    result += Bytes.box("xml ", xmp)
                } else {
                    result += bytes[box.start..<box.end]
                }
            }
        }
    }
}
