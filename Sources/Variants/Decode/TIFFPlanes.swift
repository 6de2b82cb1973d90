extension TIFFHeader {
    /// The file with the planes of a picture whose samples are stored apart in tiles (PlanarConfiguration 2) as one grey
    /// picture, and the rows from one plane to the next. A file has the tiles of all planes one after the other, as if the
    /// planes lay below each other. The directory is rewritten in its place. nil if an entry is damaged.
    func stackedPlanes(_ samples: Int) -> (file: PixelStorage, rows: Int)? {
        guard let (count, start) = entries(first), let height = value(257), let tile = value(323), tile > 0,
            height > 0, height < 1 << 24, tile < 1 << 24
        else { return nil }
        let wide = isBig ? 8 : 4
        let rows = (height + tile - 1) / tile * tile
        var kept: [[UInt8]] = []
        for at in stride(from: start, to: start + count * entryBytes, by: entryBytes) {
            guard let tag = reader.uint16(at, order), reader.byte(at + entryBytes - 1) != nil else { return nil }
            let number: Int
            switch tag {
            case 338, 340, 341: continue  // ExtraSamples, and the range of all samples.
            case 257: number = rows * samples
            case 258, 339: number = value(tag) ?? 1
            case 262: number = value(262) == 0 ? 0 : 1
            case 277, 284: number = 1
            default:
                kept.append([UInt8](reader.part(at, entryBytes).all))
                continue
            }
            // One LONG, or SHORT.
            let (type, size) = tag == 257 ? (4, 4) : (3, 2)
            kept.append(
                bytes(tag, 2) + bytes(type, 2) + bytes(1, wide) + bytes(number, size)
                    + [UInt8](repeating: 0, count: wide - size))
        }
        let next = [UInt8](reader.part(start + count * entryBytes, wide).all)
        let directory = bytes(kept.count, start - first) + kept.flatMap { $0 } + next
        let storage = PixelStorage(byteCount: reader.count)
        storage.write(reader.all, at: 0)
        directory.withUnsafeBytes { storage.write($0, at: first) }
        return (storage, rows)
    }
}
