import PipelineSupport
package import HTTPCaching
public import PipelineCaching
public import Variants

/// Conversions between stored media descriptions and image headers.
extension OriginalRecord {
    /// The image header of the body, or nil if the body is not an image in a known format.
    public var header: ImageHeader? {
        get { media.flatMap { ImageHeader($0) } }
        set { media = newValue.map { MediaDescription($0) } }
    }

    /// Whether this is a 200 or 203 response with a body that cannot be decoded.
    var isUnusable: Bool { response.isOK && media == nil }

    /// Whether one of the two records is a provisional replacement for the other.
    func isAlternative(to other: OriginalRecord) -> Bool {
        isProvisional != other.isProvisional && response.selecting == other.response.selecting
    }

    package init(
        source: String, response: StoredResponse, digest: String, length: Int, header: ImageHeader?,
        fetchMilliseconds: Double, finalURL: String? = nil
    ) {
        self.init(
            source: source, response: response, digest: digest, length: length,
            media: header.map { MediaDescription($0) }, fetchMilliseconds: fetchMilliseconds, finalURL: finalURL)
    }
}

extension VariantEntry {
    /// The format of the body, or nil if this version does not know the media type.
    package var format: ImageFormat? { ImageFormat(mediaType: mediaType) }

    package init(
        key: String, originalDigest: String, digest: String, length: Int, format: ImageFormat, width: Int, height: Int,
        recipe: String, cost: Double, created: Double
    ) {
        self.init(
            key: key, originalDigest: originalDigest, digest: digest, length: length, mediaType: format.mediaType,
            width: width, height: height, recipe: recipe, cost: cost, created: created)
    }
}

extension MediaDescription {
    /// Stores the header's details in this order: pages, alpha (0 or 1), orientation (1…8), scans, bytes of the ICC
    /// profile, few colors (0 or 1), bytes that decoders hold, levels, windows (0 or 1), and eight numbers for each
    /// further page. A JPEG has no further pages, but a number for what prevents transcoding if that is known. Older
    /// records lack the last ones.
    fileprivate init(_ header: ImageHeader) {
        self.init(
            type: header.format.mediaType, width: header.encodedWidth, height: header.encodedHeight,
            details: [
                header.pages, header.hasAlpha ? 1 : 0, header.orientation, header.scans, header.profileBytes,
                header.hasFewColors ? 1 : 0, header.heldBytes, header.levels, header.readsWindows ? 1 : 0,
            ]
                + (header.transcodingObstacle.map { [$0.rawValue] } ?? [])
                + header.furtherPages.flatMap {
                    [
                        $0.encodedWidth, $0.encodedHeight, $0.hasAlpha ? 1 : 0, $0.orientation, $0.profileBytes,
                        $0.heldBytes, $0.levels, $0.readsWindows ? 1 : 0,
                    ]
                })
    }
}

extension ImageHeader {
    fileprivate init?(_ media: MediaDescription) {
        let details = media.details
        // Older records of TIFF files do not list their pages, so the header is read again.
        guard let format = ImageFormat(mediaType: media.type), details.count >= (format == .tiff ? 9 : 5) else {
            return nil
        }
        self.init(
            format: format, encodedWidth: media.width, encodedHeight: media.height, pages: details[0],
            hasAlpha: details[1] != 0, orientation: details[2], scans: details[3], profileBytes: details[4],
            hasFewColors: details.count > 5 && details[5] != 0, heldBytes: details.count > 6 ? details[6] : 0)
        guard details.count > 8 else { return }
        (levels, readsWindows) = (min(62, max(0, details[7])), details[8] != 0)
        if format == .jpeg, details.count > 9 { transcodingObstacle = TranscodingObstacle(rawValue: details[9]) }
        furtherPages = stride(from: 9, through: details.count - 8, by: 8).map { start in
            let page = Array(details[start..<start + 8])
            var header = ImageHeader(
                format: format, encodedWidth: page[0], encodedHeight: page[1], pages: details[0],
                hasAlpha: page[2] != 0, orientation: page[3], profileBytes: page[4], heldBytes: page[5])
            (header.levels, header.readsWindows) = (min(62, max(0, page[6])), page[7] != 0)
            return header
        }
    }
}

extension ImageFormat {
    private static let byMediaType = Dictionary(
        allCases.map { ($0.mediaType, $0) }, uniquingKeysWith: { first, _ in first })

    fileprivate init?(mediaType: String) {
        guard let format = Self.byMediaType[mediaType] else { return nil }
        self = format
    }
}

extension EntryBody {
    /// Runs `ImageHeader.probe` on a download. A file is read only as far as its format requires, which may be to its
    /// end.
    ///
    /// A file is memory-mapped, so the kernel can reclaim its pages. The file has no name yet, so no other process can
    /// truncate it.
    func probe() throws(RenderError) -> ImageHeader {
        switch self {
        case .bytes(let bytes):
            return try ImageHeader.probe(bytes)
        case .file(let file):
            let result = file.withMapping { buffer in
                Result { () throws(RenderError) in try ImageHeader.probe(buffer) }
            }
            guard let result else { throw RenderError(.undecodable, Self.lost) }
            return try result.get()
        }
    }
}

/// Decoded pixels, which have their own memory tier.
extension Tiers {
    /// Returns the decoded pixels of a variant, or nil if they are not in memory.
    ///
    /// - Parameter digest: the SHA-256 of the variant's encoded bytes.
    func decoded(_ digest: String) -> PixelBuffer? {
        guard isMemoryCurrent, let entry = pixels.entry(for: digest) else { return nil }
        return PixelBuffer(width: entry.value.width, height: entry.value.height, pixels: entry.body)
    }

    /// Keeps decoded pixels, unless a purge has removed their original since `generation`.
    func keep(
        _ decoded: PixelBuffer, _ digest: String, of original: OriginalRecord, milliseconds: Double,
        generation: PurgeMark
    ) {
        let size = DecodedVariant(width: decoded.width, height: decoded.height)
        pixels.insert(
            size, body: decoded.pixels, for: digest, cost: milliseconds, generation: generation, name: original.digest,
            source: original.source)
    }
}
