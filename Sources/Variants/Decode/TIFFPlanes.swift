extension TIFFHeader {
    /// Returns a copy of the file with a directory that declares RGB without associated alpha, so that libvips copies
    /// the samples unchanged.
    ///
    /// - Parameters:
    ///   - keepsColors: whether to keep PhotometricInterpretation.
    ///   - planes: the number of tiled planes (PlanarConfiguration 2), or nil if the samples are not in tiled planes.
    ///     The planes become a single gray picture: a file stores the tiles of all planes one after another, as if the
    ///     planes were stacked vertically.
    /// - Returns: the file, and the number of rows from one plane to the next, or nil if an entry is damaged.
    func plain(keepsColors: Bool, planes: Int?) -> (file: PixelStorage, rows: Int)? {
        guard let (count, start) = entries(first) else { return nil }
        var rows = 0
        if planes != nil {
            guard let height = value(257), let tile = value(323), tile > 0, height > 0, height < 1 << 24,
                tile < 1 << 24
            else { return nil }
            rows = (height + tile - 1) / tile * tile
        }
        let wide = isBig ? 8 : 4
        var kept: [[UInt8]] = []
        for at in stride(from: start, to: start + count * entryBytes, by: entryBytes) {
            guard let tag = reader.uint16(at, order), reader.byte(at + entryBytes - 1) != nil else { return nil }
            let number: Int
            switch (tag, planes) {
            case (338, nil): number = 2  // Unassociated alpha.
            case (262, _) where !keepsColors: number = planes == nil ? 2 : 1
            case (338, _?), (340, _?), (341, _?): continue  // Drops ExtraSamples and the sample ranges.
            case (257, let planes?): number = rows * planes
            case (258, _?), (339, _?): number = value(tag) ?? 1
            case (277, _?), (284, _?): number = 1
            default:
                kept.append([UInt8](reader.part(at, entryBytes).all))
                continue
            }
            // A single LONG or SHORT value.
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
