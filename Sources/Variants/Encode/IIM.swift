/// Reads and writes data sets of the Information Interchange Model (IPTC IIM 4.2), as in JPEG and TIFF files.
struct IIM {
    typealias DataSet = (record: UInt8, number: UInt8, data: [UInt8])

    private(set) var dataSets: [DataSet] = []

    /// The application record's numbers of By-line, Credit and Copyright Notice.
    static let (creator, credit, copyright) = (UInt8(80), UInt8(110), UInt8(116))
    /// The application record's data sets that describe where a picture was taken, or which place it shows.
    private static let places: Set<UInt8> = [26, 27, 90, 92, 95, 100, 101]
    private static let mark = [UInt8]("Photoshop 3.0\0".utf8)

    /// Returns the resources of Photoshop in a JPEG, which can be in several segments. Returns nil if it has no resources.
    static func resources(ofJPEG file: ByteReader) -> [UInt8]? {
        var found: [UInt8] = []
        // `forEachSegment` only rethrows errors of its body, and this body does not throw.
        _ = try? JPEGDecoder.forEachSegment(file) { marker, segment, _ in
            if marker == 0xED, segment.matches("Photoshop 3.0\0") { found += segment.part(mark.count).all }
            return marker != 0xDA && found.count < KeptCredits.inputLimit
        }
        return found.isEmpty ? nil : found
    }

    /// Reads data sets, or resources of Photoshop that contain them. Stops at the first damaged data set.
    init(_ block: ByteReader) {
        var block = block
        if block.matches("8BIM") { block = Self.dataSets(inResources: block) }
        var at = 0
        while block.byte(at) == 0x1C, let record = block.byte(at + 1), let number = block.byte(at + 2),
            let length = block.uint16(at + 3), dataSets.count < 256
        {
            // Lengths of 32,768 and more announce longer ones, which only pictures in the file need.
            let data = block.part(at + 5, length)
            guard length < 0x8000, data.count == length else { return }
            dataSets.append((record, number, [UInt8](data.all)))
            at += 5 + length
        }
    }

    init(_ dataSets: [DataSet]) { self.dataSets = dataSets }

    /// Returns the resource 0x0404. A resource has a signature, a number, a name and a length, and starts at an even
    /// offset (Adobe Photoshop File Formats Specification).
    private static func dataSets(inResources block: ByteReader) -> ByteReader {
        var at = 0
        while let number = block.uint16(at + 4), let nameLength = block.byte(at + 6) {
            let start = at + 6 + (Int(nameLength) + 2) / 2 * 2
            guard let length = block.uint32(start) else { break }
            if number == 0x0404, block.matches("8BIM", at: at) { return block.part(start + 4, length) }
            at = start + 4 + (length + 1) / 2 * 2
        }
        return block.part(block.count)
    }

    /// Returns the texts of a data set in the application record. Texts are in UTF-8, ISO 8859-1 or Windows-1252,
    /// whatever the declared character set.
    func texts(_ number: UInt8) -> [String] {
        dataSets.filter { $0.record == 2 && $0.number == number }.compactMap { set in
            set.data.withUnsafeBytes { ByteReader($0).text(0, limit: 4096) }
        }
    }

    /// Returns the data sets that describe a variant: all of the envelope and the application record, but not previews.
    func kept(keepsPosition: Bool) -> IIM {
        IIM(
            dataSets.filter { set in
                set.record == 1
                    || set.record == 2 && !(200...202).contains(set.number)
                        && (keepsPosition || !Self.places.contains(set.number))
            })
    }

    /// The encoded data sets, or nil if the list is empty.
    var bytes: [UInt8]? {
        if dataSets.isEmpty { return nil }
        return dataSets.flatMap { [0x1C, $0.record, $0.number] + Bytes.bigEndian($0.data.count, 2) + $0.data }
    }

    /// Returns the content of a JPEG's APP13 segment with encoded data sets.
    static func segment(_ bytes: [UInt8]) -> [UInt8] {
        let head = mark + [UInt8]("8BIM".utf8) + [4, 4, 0, 0] + Bytes.bigEndian(bytes.count)
        return head + bytes + (bytes.count % 2 == 1 ? [0] : [])
    }
}
