/// Appends an EOI marker to a JPEG without one, so that libjpeg decodes the file if its data is complete and fails
/// otherwise.
///
/// Because libjpeg reads ahead, it fails at the end of a file without EOI even if the data is complete. With EOI it
/// fills in missing data, and at best issues a warning. It does not notice that complete scans are missing, so the scan
/// headers are checked here (ITU-T T.81 §B.2.3 and §G.1.1.1).
struct UnterminatedJPEG {
    /// The bytes to append, and the level of decoder warnings that indicates missing pixels.
    struct Ending: Equatable {
        var bytes: [UInt8]
        /// The value of libvips' `fail_on`.
        var failOn: String

        /// The ending for a file with one sequential scan. Such a file is decoded row by row, so a warning would come
        /// after the last row. The ending therefore contains eight bytes in which all bits are set, because libjpeg
        /// reads that many bytes ahead. They are not a valid code. A decoder that lacks data consumes more bytes than
        /// there are, and thus reaches the end of the file. The only undetected case is missing data in the last two
        /// blocks (8 × 8 pixels each), which are then decoded as far as possible.
        static let readAhead = Ending(
            bytes: Array(repeatElement([0xFF, 0x00], count: 8).joined()), failOn: "truncated")
        /// The ending for a file with several scans. libjpeg reads all scans before it returns the first row, so by
        /// then it has issued any warnings about missing data.
        static let marker = Ending(bytes: [0xFF, 0xD9], failOn: "warning")
    }

    /// The components of the frame. Empty until the frame header has been read.
    private var components: [UInt8] = []
    private var isProgressive = false
    /// The number of components in the first scan.
    private var inFirstScan = 0
    /// For each coefficient of each component, the number of lowest bits that no scan has provided yet. nil if all bits
    /// are missing.
    private var missingBits: [UInt8: [Int?]] = [:]

    private init() {}

    /// Returns the ending that the file needs in order to be decoded. Returns nil if the file has an EOI marker, lacks
    /// scans, or uses a coding for which libjpeg issues no warnings (arithmetic or lossless coding).
    static func ending(_ file: ByteReader) -> Ending? {
        if file.count < 4 || file.uint16(file.count - 2) == 0xFFD9 { return nil }
        var jpeg = UnterminatedJPEG()
        var isReadable = true
        // Check for EOI in the whole file, because cameras append data after it. `forEachSegment` only rethrows errors
        // of its body, and this body does not throw.
        let hasEnd = try? JPEGDecoder.forEachSegment(file) { marker, segment, _ in
            if marker == 0xDA {
                isReadable = jpeg.readScan(segment)
            } else if JPEGDecoder.isFrame(marker) {
                isReadable = jpeg.components.isEmpty && marker <= 0xC2 && jpeg.readFrame(segment, marker)
            }
            return isReadable
        }
        guard hasEnd == false, isReadable, !jpeg.components.isEmpty,
            jpeg.components.allSatisfy({ jpeg.missingBits[$0]?.allSatisfy { $0 == 0 } == true })
        else { return nil }
        return jpeg.isProgressive || jpeg.inFirstScan < jpeg.components.count ? .marker : .readAhead
    }

    private mutating func readFrame(_ segment: ByteReader, _ marker: UInt8) -> Bool {
        guard let count = segment.byte(5), (1...4).contains(count) else { return false }
        for index in 0..<Int(count) {
            guard let id = segment.byte(6 + index * 3) else { return false }
            components.append(id)
        }
        isProgressive = marker == 0xC2
        return true
    }

    private mutating func readScan(_ header: ByteReader) -> Bool {
        guard let count = header.byte(0), (1...4).contains(count) else { return false }
        var (first, last, low) = (0, 63, 0)
        if isProgressive {
            let at = 1 + Int(count) * 2
            guard let start = header.byte(at), let end = header.byte(at + 1), let bits = header.byte(at + 2),
                start <= end, end < 64
            else { return false }
            (first, last, low) = (Int(start), Int(end), Int(bits & 15))
        }
        for index in 0..<Int(count) {
            guard let id = header.byte(1 + index * 2), components.contains(id) else { return false }
            for coefficient in first...last {
                missingBits[id, default: Array(repeating: nil, count: 64)][coefficient] = low
            }
        }
        if inFirstScan == 0 { inFirstScan = Int(count) }
        return true
    }
}
