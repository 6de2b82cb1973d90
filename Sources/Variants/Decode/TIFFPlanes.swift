extension TIFFHeader {
    /// The file with a directory for each plane of a picture whose samples are stored apart (PlanarConfiguration 2): the
    /// pages are then grey pictures, one for each sample. nil if an entry is damaged.
    func planesAsPages(_ samples: Int) -> PixelStorage? {
        guard let (count, start) = entries(first) else { return nil }
        let wide = isBig ? 8 : 4
        func short(_ tag: Int, _ number: Int) -> [UInt8] {
            bytes(tag, 2) + bytes(3, 2) + bytes(1, wide) + bytes(number, 2) + [UInt8](repeating: 0, count: wide - 2)
        }
        // Directories begin at even offsets (TIFF 6.0 §2).
        let padding = reader.count & 1
        var added = [UInt8](repeating: 0, count: padding)
        for plane in 0..<samples {
            var kept: [[UInt8]] = []
            for at in stride(from: start, to: start + count * entryBytes, by: entryBytes) {
                guard let tag = reader.uint16(at, order), let type = reader.uint16(at + 2, order),
                    let count = self.count(at)
                else { return nil }
                switch tag {
                // NewSubfileType, SubIFDs, ExtraSamples, and the range of all samples.
                case 254, 330, 338, 340, 341: continue
                case 258, 339: kept.append(short(tag, value(tag, in: first) ?? 1))
                case 262: kept.append(short(tag, value(262) == 0 ? 0 : 1))
                case 277, 284: kept.append(short(tag, 1))
                case 324, 325:  // TileOffsets and TileByteCounts, plane by plane.
                    let size = [3: 2, 4: 4, 16: 8][type] ?? 0
                    guard size > 0, count % samples == 0, count <= reader.count,
                        let place = place(at, bytes: count * size)
                    else { return nil }
                    let tiles = count / samples
                    let mine = reader.part(place + plane * tiles * size, tiles * size)
                    guard mine.count == tiles * size else { return nil }
                    let value = mine.count > wide ? bytes(place + plane * mine.count, wide) : [UInt8](mine.all)
                    kept.append(
                        bytes(tag, 2) + bytes(type, 2) + bytes(tiles, wide) + value
                            + [UInt8](repeating: 0, count: wide - value.count))
                default: kept.append([UInt8](reader.part(at, entryBytes).all))
                }
            }
            let here = reader.count + added.count
            let length = (isBig ? 8 : 2) + kept.count * entryBytes + wide
            added += bytes(kept.count, isBig ? 8 : 2) + kept.flatMap { $0 }
            added += bytes(plane == samples - 1 ? 0 : here + length, wide)
        }
        let storage = PixelStorage(byteCount: reader.count + added.count)
        storage.write(reader.all, at: 0)
        added.withUnsafeBytes { storage.write($0, at: reader.count) }
        bytes(reader.count + padding, wide).withUnsafeBytes { storage.write($0, at: isBig ? 8 : 4) }
        return storage
    }
}
