/// Decodes JPEG. Reads the markers (ITU-T T.81 annex B) for the frame header, EXIF orientation, size of the ICC profile
/// and number of scans.
enum JPEGDecoder: OriginalDecoder {
    static let format = ImageFormat.jpeg
    static let loader = "jpegload_buffer"
    static let averagesSquares = true
    /// The number of scans at which counting stops. No encoder writes this many scans, and the limit that is checked
    /// afterwards is far lower.
    static let maxCountedScans = 1000

    static func recognizes(_ file: ByteReader) -> Bool { file.matches([0xFF, 0xD8, 0xFF]) }

    /// Each scan processes the coefficients of the complete picture.
    static func nanosecondsPerPixel(_ header: ImageHeader) -> Double {
        header.scans > 1 ? 6 + 1.2 * Double(header.scans) : 6
    }

    static func header(_ file: ByteReader) throws(RenderError) -> ImageHeader {
        var header: ImageHeader?
        var orientation = 1
        var seenExif = false
        var profileBytes = 0
        var (scans, segments) = (0, 0)
        // Whether libjpeg keeps the coefficients of the complete picture. It does so for progressive files and for
        // components in separate scans.
        var isHeld = false
        var components: UInt8?
        try forEachSegment(file) { marker, segment, _ throws(RenderError) in
            segments += 1
            switch marker {
            case _ where segments > HeaderParts.segments: return segments < HeaderParts.maxCounted
            case _ where isFrame(marker):
                if header == nil {
                    header = try frame(segment)
                    header?.transcodingObstacle = TranscodingObstacle(frame: marker, segment)
                    components = segment.byte(5)
                }
                if [0xC2, 0xC6, 0xCA, 0xCE].contains(marker) { isHeld = true }
            case 0xE1 where !seenExif && segment.matches("Exif\0\0"):
                seenExif = true
                orientation = TIFFHeader.orientation(exif: segment.part(6)) ?? 1
            case 0xE2 where segment.matches("ICC_PROFILE\0"):
                profileBytes += max(0, segment.count - 14)
            case 0xDA:
                scans += 1
                if header == nil { throw ImageHeader.damaged("JPEG", "image data precedes the frame header") }
                if segment.byte(0) != components { isHeld = true }
                return scans <= maxCountedScans
            default: break
            }
            return true
        }
        try HeaderParts.check("JPEG", segments, "segments", most: HeaderParts.segments)
        guard var header else { throw ImageHeader.damaged("JPEG", "it ends before its frame header") }
        header.orientation = orientation
        header.profileBytes = profileBytes
        header.scans = max(1, scans)
        if !isHeld { header.heldBytes = 0 }
        return header
    }

    static func details(_ file: ByteReader) -> ImageDetails {
        var details = ImageDetails()
        var isSearched = false
        // `ImageHeader.probe` has already read the same segments and reported their errors.
        _ = try? forEachSegment(file) { marker, segment, _ in
            if isFrame(marker), details.bitDepth == nil {
                details.bitDepth = segment.byte(0).map(Int.init)
                details.colorSpace =
                    switch segment.byte(5) {
                    case 1: "grey"
                    case 3: "RGB"
                    case 4: "CMYK"
                    default: nil
                    }
            } else if marker == 0xE1, details.exif == nil, segment.matches("Exif\0\0") {
                details.exif = EXIFSummary(segment.part(6))
            } else if marker == 0xE2, segment.matches("ICC_PROFILE\0"), segment.byte(12) == 1 {
                // The name of the profile is in the first segment of the profile.
                details.profileName = ProfileName.read(segment.part(14))
            } else if marker == 0xE2, segment.matches("urn:iso:std:iso:ts:21496:-1\0") {
                details.hasGainMap = true
            } else if marker == 0xE2, !isSearched, segment.matches("MPF\0") {
                isSearched = true
                // Other pictures may follow this one. In Apple's files, the metadata of such a picture describes its
                // content.
                if file.contains("urn:com:apple:photo:2020:aux:hdrgainmap") { details.hasGainMap = true }
            } else if marker == 0xE1, segment.matches("http://ns.adobe.com/xap/1.0/\0") {
                if segment.contains("http://ns.adobe.com/hdr-gain-map/1.0/") { details.hasGainMap = true }
            } else if marker == 0xEB, segment.matches("JP"), segment.matches("jumb", at: 12) {
                // This is the first part of a JUMBF box, after its length (ISO/IEC 19566-5 §D.2).
                if isCredentials(segment.part(16)) { details.hasContentCredentials = true }
            }
            return marker != 0xDA
        }
        return details
    }

    /// Returns the shrink factor. At 1/8, a decoder keeps one rounded number per block, which is visible in the
    /// smallest pictures. Decoding them at 1/4 costs little more.
    static func shrink(_ factor: Double, _ quality: RenderQuality) -> Int {
        (quality == .fast ? [8, 4, 2] : [4, 2]).first { Double($0) * quality.leftToResampler <= factor } ?? 1
    }

    static func source(_ bytes: UnsafeRawBufferPointer) -> (bytes: VipsArgument, failOn: String) {
        guard let ending = UnterminatedJPEG.ending(ByteReader(bytes)) else { return (.bytes(bytes), "truncated") }
        let storage = PixelStorage(byteCount: bytes.count + ending.bytes.count)
        storage.write(bytes, at: 0)
        ending.bytes.withUnsafeBytes { storage.write($0, at: bytes.count) }
        return (.stored(storage), ending.failOn)
    }

    static func open(_ bytes: UnsafeRawBufferPointer, shrink: Int, frames: Int) throws(RenderError) -> Image {
        let (source, failOn) = source(bytes)
        let file = if case .stored(let ended) = source { ended.bytes } else { bytes }
        let whole = shrink > 1 ? withWholeSquares(file, shrink) : nil
        return try load(whole.map { .stored($0) } ?? source, failOn: failOn, options(shrink: shrink, frames: frames))
    }

    static let readsDamaged = true
    static func openDamaged(_ bytes: UnsafeRawBufferPointer, shrink: Int) throws(RenderError) -> Image {
        let whole = shrink > 1 ? withWholeSquares(bytes, shrink) : nil
        return try load(whole.map { .stored($0) } ?? .bytes(bytes), failOn: "none", options(shrink: shrink, frames: 1))
    }

    /// Returns the file with a frame size at which all squares that the decoder averages are complete, because libvips
    /// ignores incomplete squares. Blocks of 8 × 8 pixels are always coded completely (ITU-T T.81 §A.2.4), so the file
    /// stays decodable. Returns nil if all squares are already complete, or if a different size could change the number
    /// of blocks.
    private static func withWholeSquares(_ bytes: UnsafeRawBufferPointer, _ shrink: Int) -> PixelStorage? {
        var places: [(offset: Int, edge: Int)] = []
        // `forEachSegment` only rethrows errors of its body, and this body does not throw.
        _ = try? forEachSegment(ByteReader(bytes)) { marker, segment, end in
            guard isFrame(marker) else { return true }
            let components = Int(segment.byte(5) ?? 0)
            let factors = (0..<components).flatMap { index in
                let both = segment.byte(7 + index * 3) ?? 0
                return [both >> 4, both & 15]
            }
            guard factors.allSatisfy({ [1, 2, 4].contains($0) }) else { return false }
            for at in [1, 3] {
                guard let edge = segment.uint16(at) else { return false }
                let whole = (edge + shrink - 1) / shrink * shrink
                if whole != edge, whole <= 65_500 { places.append((end - segment.count + at, whole)) }
            }
            return false
        }
        if places.isEmpty { return nil }
        let storage = PixelStorage(byteCount: bytes.count)
        storage.write(bytes, at: 0)
        for (offset, edge) in places {
            storage.mutableBytes[offset] = UInt8(edge >> 8)
            storage.mutableBytes[offset + 1] = UInt8(edge & 255)
        }
        return storage
    }

    /// This is the size of the file, a copy with an appended ending, and a copy with complete squares.
    static func memory(_ header: ImageHeader, shrink: Int, count: Int) -> Int { 3 * count + header.heldBytes }

    static func options(shrink: Int, frames: Int) -> [(String, VipsArgument)] { [("shrink", .int(shrink))] }

    /// Calls `body` with the marker, content and end offset of each segment up to EOI, until `body` returns false.
    ///
    /// - Returns: whether EOI was reached.
    @discardableResult
    static func forEachSegment(
        _ reader: ByteReader, _ body: (UInt8, ByteReader, _ end: Int) throws(RenderError) -> Bool
    ) throws(RenderError) -> Bool {
        var offset = 2
        while let marker = nextMarker(reader, &offset) {
            switch marker {
            case 0xD9: return true
            case 0x01, 0xD0...0xD8: continue  // TEM, RSTn and SOI have no length.
            default: break
            }
            guard let given = reader.uint16(offset) else { return false }
            // If the length is invalid, continue directly after it as libjpeg does, because scans may follow.
            let length = max(2, given)
            let segment = reader.part(offset + 2, length - 2)
            offset += length
            guard try body(marker, segment, offset) else { return false }
        }
        return false
    }

    /// Returns the ranges of complete or truncated JPEG streams in a block.
    static func streams(in block: ByteReader) -> [Range<Int>] {
        var found: [Range<Int>] = []
        var at = 0
        while let start = block.firstOffset(of: 0xFF, from: at) {
            at = start + 1
            // A stream starts with SOI and a marker for tables, APPn, a comment or a frame.
            guard block.matches([0xFF, 0xD8, 0xFF], at: start), let marker = block.byte(start + 3),
                [0xDB, 0xC4, 0xFE].contains(marker) || 0xE0...0xEF ~= marker || isFrame(marker)
            else { continue }
            var end = start + 2
            // `forEachSegment` only rethrows errors of its body, and this body does not throw.
            _ = try? forEachSegment(block.part(start)) { _, _, offset in
                end = start + offset
                return true
            }
            while let next = block.firstOffset(of: 0xFF, from: end), block.byte(next + 1) != 0xD9 { end = next + 1 }
            at = min(block.count, (block.firstOffset(of: 0xFF, from: end) ?? block.count) + 2)
            found.append(start..<at)
        }
        return found
    }

    static func isFrame(_ marker: UInt8) -> Bool {
        switch marker {
        case 0xC0...0xC3, 0xC5...0xC7, 0xC9...0xCB, 0xCD...0xCF: true
        default: false
        }
    }

    private static func frame(_ segment: ByteReader) throws(RenderError) -> ImageHeader {
        guard let height = segment.uint16(1), let width = segment.uint16(3), segment.byte(5) != nil else {
            throw ImageHeader.damaged("JPEG", "its frame header is truncated")
        }
        try ImageHeader.checkSize("JPEG", width, height)
        var header = ImageHeader(format: .jpeg, encodedWidth: width, encodedHeight: height)
        let factors = (0..<Int(segment.byte(5) ?? 0)).map { segment.byte(7 + $0 * 3) ?? 0x11 }
        let most = (factors.map { max(1, $0 >> 4) }.max() ?? 1, factors.map { max(1, $0 & 15) }.max() ?? 1)
        // A coefficient takes two bytes. The memory of incomplete blocks at the edges is part of the estimate for rows
        // (`RenderMemory.rows`).
        header.hold(
            bytesPerPixel: factors.reduce(0) {
                $0 + 2 * Double($1 >> 4) * Double($1 & 15) / Double(most.0) / Double(most.1)
            })
        return header
    }

    /// Returns the next marker at or after `offset`, and moves `offset` past the marker. Like libjpeg, skips stray
    /// bytes, entropy-coded data including its stuffed zeros, and fill bytes.
    private static func nextMarker(_ reader: ByteReader, _ offset: inout Int) -> UInt8? {
        while let found = reader.firstOffset(of: 0xFF, from: offset) {
            offset = found + 1
            while let byte = reader.byte(offset), byte == 0xFF { offset += 1 }
            guard let marker = reader.byte(offset) else { return nil }
            offset += 1
            if marker != 0 { return marker }
        }
        return nil
    }
}
