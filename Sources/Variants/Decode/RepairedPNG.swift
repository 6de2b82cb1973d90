import CVips

/// Repairs the structure of a PNG with complete pixels, so that libpng can decode the file.
///
/// libpng fails if the zlib stream (RFC 1950) lacks its Adler-32 checksum or declares a window that is too small, if an
/// IDAT chunk is truncated or has a wrong CRC, or if chunks are in the wrong order (W3C PNG §5.6). Browsers show such
/// files. The deflate data itself reveals whether pixels are missing, and a checksum reveals whether the pixels are
/// correct. If a CRC is wrong, the Adler-32 checksum must therefore match.
struct RepairedPNG {
    /// The header and, in order, all chunks that a still picture may have before its pixels.
    private var head: [UInt8]
    /// All compressed pixel data, as stored.
    private var zlib: [UInt8] = []
    private var found = CVipsInflated()
    /// Whether the CRC of every pixel chunk matches.
    private var isProven = true

    /// Returns the repaired file. Returns nil if the data is truncated or modified. libpng checks whether the data is
    /// sufficient for all rows.
    static func bytes(_ bytes: UnsafeRawBufferPointer) -> PixelStorage? {
        guard let png = RepairedPNG(bytes), png.found.is_complete == 1 else { return nil }
        let end = 2 + png.found.used
        let adler = Bytes.bigEndian(Int(png.found.adler))
        guard png.isProven || png.zlib[end...].prefix(4).elementsEqual(adler) else { return nil }
        return png.file([0x78, 0x01] + png.zlib[2..<end] + adler)  // Declares the largest window.
    }

    /// Returns a file with the remaining pixels, for callers that accept damage, and the number of complete rows.
    /// Returns nil if the picture is interlaced.
    static func part(_ bytes: UnsafeRawBufferPointer) -> (file: PixelStorage, rows: Int)? {
        let file = ByteReader(bytes)
        guard let width = file.uint32(16), let height = file.uint32(20), let depth = file.byte(24),
            let samples = [0: 1, 2: 3, 3: 1, 4: 2, 6: 4][file.byte(25) ?? 1], file.byte(28) == 0,
            let png = RepairedPNG(bytes)
        else { return nil }
        // Each row begins with its filter type.
        let rowBytes = 1 + (width * samples * Int(depth) + 7) / 8
        return (png.file(png.zlib), min(height, png.found.made / rowBytes))
    }

    private init?(_ bytes: UnsafeRawBufferPointer) {
        let file = ByteReader(bytes)
        guard let width = file.uint32(16), let height = file.uint32(20), max(width, height) < 1 << 24,
            // The parts are copied several times, and a failed allocation terminates the process.
            AddressSpace.hasRoom(for: 6 * bytes.count)
        else { return nil }
        head = [UInt8](file.part(0, 33).all)
        // The order of chunks: color spaces, the palette, chunks that depend on the palette, and all other chunks, such
        // as text.
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
        // The data is preceded by two bytes: the method, which is 8, and flags. Flag 32 requests a dictionary, which
        // PNG does not support.
        guard zlib.count > 2, zlib[0] & 15 == 8, zlib[1] & 32 == 0 else { return nil }
        // The maximum length of all rows, with any number of passes.
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
