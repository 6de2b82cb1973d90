import CVips

/// Repairs what surrounds the pixels of a PNG, so that libpng decodes it, if all of them are there.
///
/// libpng fails if the zlib stream (RFC 1950) lacks its Adler-32, says that it needs a smaller window than it does, if
/// an IDAT chunk has a wrong CRC or is cut within it, or if chunks are out of order (W3C PNG §5.6). Browsers show these
/// files. The deflate data itself tells whether pixels are missing, and one checksum whether they are the right ones: if
/// a CRC is wrong, the Adler-32 has to agree.
struct MendedPNG {
    /// The header, and all chunks that a still picture may have before its pixels, in order.
    private var head: [UInt8]
    /// All data of the pixels, as stored.
    private var zlib: [UInt8] = []
    private var found = CVipsInflated()
    /// Whether the CRC of each chunk of pixels agrees.
    private var isProven = true

    /// nil if the data is cut short or changed. Whether it makes all rows, libpng finds out.
    static func bytes(_ bytes: UnsafeRawBufferPointer) -> PixelStorage? {
        guard let png = MendedPNG(bytes), png.found.is_complete == 1 else { return nil }
        let end = 2 + png.found.used
        let adler = Bytes.bigEndian(Int(png.found.adler))
        guard png.isProven || png.zlib[end...].prefix(4).elementsEqual(adler) else { return nil }
        return png.file([0x78, 0x01] + png.zlib[2..<end] + adler)  // The largest window.
    }

    /// A file with the pixels that are left, for a reader that accepts damage, and how many rows it has whole; nil if the
    /// picture is interlaced.
    static func part(_ bytes: UnsafeRawBufferPointer) -> (file: PixelStorage, rows: Int)? {
        let file = ByteReader(bytes)
        guard let width = file.uint32(16), let height = file.uint32(20), let depth = file.byte(24),
            let samples = [0: 1, 2: 3, 3: 1, 4: 2, 6: 4][file.byte(25) ?? 1], file.byte(28) == 0,
            let png = MendedPNG(bytes)
        else { return nil }
        // Each row begins with its filter.
        let rowBytes = 1 + (width * samples * Int(depth) + 7) / 8
        return (png.file(png.zlib), min(height, png.found.made / rowBytes))
    }

    private init?(_ bytes: UnsafeRawBufferPointer) {
        let file = ByteReader(bytes)
        guard let width = file.uint32(16), let height = file.uint32(20), max(width, height) < 1 << 24,
            // Its parts are copied some times, and memory that cannot be had terminates the process.
            AddressSpace.hasRoom(for: 6 * bytes.count)
        else { return nil }
        head = [UInt8](file.part(0, 33).all)
        // The palette, what belongs to it, and everything else, such as text. Colour spaces come before them.
        let ranks = ["cICP": 0, "iCCP": 0, "sRGB": 0, "gAMA": 0, "cHRM": 0, "sBIT": 0, "PLTE": 1, "tRNS": 2]
        var chunks = [[UInt8]](repeating: [], count: 4)
        var seen: Set<String> = []
        var at = 33
        while let length = file.uint32(at), let type = file.fourCharacters(at + 4), type != "IEND" {
            defer { at += 12 + length }
            if type == "IDAT" {
                zlib += [UInt8](file.part(at + 8, length).all)
                guard let crc = file.uint32(at + 8 + length) else { continue }
                isProven = isProven && crc == Int(PNGChunk.crc32([UInt8](file.part(at + 4, 4 + length).all)))
            } else if file.byte(at + 11 + length) != nil, !["acTL", "fcTL", "fdAT"].contains(type),
                ranks[type] == nil || seen.insert(type).inserted
            {
                chunks[ranks[type] ?? 3] += file.part(at, 12 + length).all
            }
        }
        head += chunks.joined()
        // Two bytes precede the data: the method, 8, and flags, of which 32 asks for a dictionary, which PNG has not.
        guard zlib.count > 2, zlib[0] & 15 == 8, zlib[1] & 32 == 0 else { return nil }
        // More than all rows have, in any number of passes.
        let most = 2 * height * (1 + 8 * width)
        let isRead = zlib.withUnsafeBytes { data in
            data.baseAddress.map { cvips_inflate($0 + 2, data.count - 2, most, &found) } == 1
        }
        guard isRead else { return nil }
    }

    private func file(_ data: [UInt8]) -> PixelStorage {
        PixelStorage(head + PNGChunk.bytes("IDAT", data) + PNGChunk.bytes("IEND", []))
    }
}
