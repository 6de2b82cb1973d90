import CVips

/// Repairs what surrounds the pixels of a PNG, so that libpng decodes it, if all of them are there.
///
/// libpng fails if the zlib stream (RFC 1950) lacks its Adler-32, says that it needs a smaller window than it does, or if
/// an IDAT chunk has a wrong CRC or is cut within it. Browsers show these files. The deflate data itself tells whether
/// pixels are missing, and one checksum whether they are the right ones: if a CRC is wrong, the Adler-32 has to agree.
enum MendedPNG {
    /// nil if the data is cut short or changed. Whether it makes all rows, libpng finds out.
    static func bytes(_ bytes: UnsafeRawBufferPointer) -> PixelStorage? {
        let file = ByteReader(bytes)
        guard let width = file.uint32(16), let height = file.uint32(20), max(width, height) < 1 << 24,
            // Its parts are copied some times, and memory that cannot be had terminates the process.
            AddressSpace.hasRoom(for: 6 * bytes.count)
        else { return nil }
        // More than all rows have, in any number of passes.
        let most = 2 * height * (1 + 8 * width)
        // All other chunks, before the pixels and behind them; where the pixels are, and all of their data.
        var chunks: (before: [UInt8], after: [UInt8]) = ([], [])
        var zlib: [UInt8] = []
        var parts: [Int] = []
        var at = 33
        while let length = file.uint32(at), let type = file.fourCharacters(at + 4), type != "IEND" {
            if type == "IDAT" {
                zlib += [UInt8](file.part(at + 8, length).all)
                parts.append(at)
            } else if file.byte(at + 11 + length) != nil {
                let chunk = file.part(at, 12 + length).all
                if zlib.isEmpty { chunks.before += chunk } else { chunks.after += chunk }
            }
            at += 12 + length
        }
        // Two bytes precede the data: the method, 8, and flags, of which 32 asks for a dictionary, which PNG has not.
        guard zlib.count > 2, zlib[0] & 15 == 8, zlib[1] & 32 == 0 else { return nil }
        var found = CVipsInflated()
        let isRead = zlib.withUnsafeBytes { data in
            data.baseAddress.map { cvips_inflate($0 + 2, data.count - 2, most, &found) } == 1
        }
        guard isRead, found.is_complete == 1 else { return nil }
        let end = 2 + found.used
        let adler = Bytes.bigEndian(Int(found.adler))
        let isProven = parts.allSatisfy { at in
            guard let length = file.uint32(at), let crc = file.uint32(at + 8 + length) else { return true }
            return crc == Int(PNGChunk.crc32([UInt8](file.part(at + 4, 4 + length).all)))
        }
        guard isProven || zlib[end...].prefix(4).elementsEqual(adler) else { return nil }
        let data = [0x78, 0x01] + zlib[2..<end] + adler  // The largest window.
        var mended = [UInt8](file.part(0, 33).all) + chunks.before + PNGChunk.bytes("IDAT", data) + chunks.after
        mended += PNGChunk.bytes("IEND", [])
        return PixelStorage(mended)
    }
}
