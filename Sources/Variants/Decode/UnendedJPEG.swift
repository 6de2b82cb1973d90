/// Ends a JPEG that lacks its EOI marker, so that libjpeg decodes it if its data is there and fails if it is not.
///
/// libjpeg fails where a file without EOI ends, even if all of its data is there, since it reads ahead. With an EOI it
/// fills in what is missing, and at best warns. What it does not notice by itself are whole scans that are missing: their
/// headers tell (ITU-T T.81 §B.2.3 and §G.1.1.1).
struct UnendedJPEG {
    /// What to append, and the warnings of the decoder that mean missing pixels.
    struct Ending: Equatable {
        var bytes: [UInt8]
        /// The value of libvips' `fail_on`.
        var failOn: String

        /// For a file of one sequential scan, which is decoded row by row: a warning about the last row would come
        /// after it. These are eight bytes of ones, as many as libjpeg reads ahead. They are no valid code, and a
        /// decoder that lacks data takes more of them than there are, and so meets the end of the file; unless what it
        /// lacks is a part of the last two blocks (8 × 8 pixels each), which are then left as far as they are known.
        static let readAhead = Ending(
            bytes: Array(repeatElement([0xFF, 0x00], count: 8).joined()), failOn: "truncated")
        /// For a file of several scans, which libjpeg reads to EOI before it gives the first row: it has warned by then
        /// of data that is missing.
        static let marker = Ending(bytes: [0xFF, 0xD9], failOn: "warning")
    }

    /// The frame's components; empty before its header.
    private var components: [UInt8] = []
    private var isProgressive = false
    /// The components of the first scan.
    private var inFirstScan = 0
    /// For each coefficient of each component, how many of its lowest bits no scan has brought; nil if all are missing.
    private var missingBits: [UInt8: [Int?]] = [:]

    private init() {}

    /// What a file needs to be decoded; nil if it has an EOI marker, or lacks scans, or codes its data in a way that
    /// gives no warnings (arithmetic coding, lossless).
    static func ending(_ file: ByteReader) -> Ending? {
        if file.count < 4 || file.uint16(file.count - 2) == 0xFFD9 { return nil }
        var jpeg = UnendedJPEG()
        var isReadable = true
        // Cameras append data after EOI. The walk only rethrows errors of its body, and this body throws none.
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
