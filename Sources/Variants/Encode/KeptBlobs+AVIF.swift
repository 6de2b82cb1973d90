/// Inserts metadata into AVIF files (ISO/IEC 14496-12 §8.11 and §12.1.5, 23008-12 §6.5.5, §9.3 and annex A).
///
/// The files that libheif writes contain one picture, possibly with alpha, and a `meta` box before the data. A profile
/// becomes a property of the primary item. EXIF and XMP become separate items, and their data is appended to the file.
/// The `meta` box grows, so all offsets after it are adjusted. libvips is not used for this because it writes profiles
/// and XMP only together with EXIF that it has created or changed, with a resolution, sizes and versions that the
/// original does not have.
extension KeptBlobs {
    /// Returns the file with the metadata. Throws `encodingFailed` if the structure of the file differs from what
    /// libheif writes.
    func inserted(intoAVIF file: [UInt8]) throws(RenderError) -> [UInt8] {
        if isEmpty { return file }
        if let changed = file.withUnsafeBytes({ AVIFMetadata(ByteReader($0))?.adding(self) }) { return changed }
        throw RenderError(.encodingFailed, "metadata cannot be written to the AVIF file; write `keep=none`")
    }
}

private struct AVIFMetadata {
    private typealias Item = (type: String, data: [UInt8])

    private let file: ByteReader
    /// The box that describes the picture.
    private let meta: HEIFHeader.Box
    private let children: [HEIFHeader.Box]
    /// The IDs of the primary item and of the first new item.
    private let (primary, firstID): (Int, Int)

    init?(_ file: ByteReader) {
        guard let meta = HEIFHeader.boxes(file).first(where: { $0.type == "meta" }),
            let primary = HEIFHeader.primaryItem(meta.data.part(4)),
            let items = HEIFHeader.child("iinf", of: meta.data.part(4)), items.byte(0) == 0
        else { return nil }
        let ids = HEIFHeader.boxes(items.part(6)).map { $0.data.byte(0) == 2 ? $0.data.uint16(4) : nil }
        guard !ids.contains(nil) else { return nil }
        (self.file, self.meta, self.primary) = (file, meta, primary)
        children = Array(HEIFHeader.boxes(meta.data.part(4)))
        firstID = ids.compactMap(\.self).reduce(0, max) + 1
    }

    /// Returns the file with the metadata. Returns nil if the structure of the file differs from what libheif writes.
    func adding(_ kept: KeptBlobs) -> [UInt8]? {
        var items: [Item] = []
        // The four bytes before the EXIF data are the offset of its TIFF header.
        if let tiff = kept.tiff { items.append(("Exif", [0, 0, 0, 0] + tiff)) }
        if let xmp = kept.xmp { items.append(("mime", xmp)) }
        var boxes = children.map(\.type)
        if !items.isEmpty, !boxes.contains("iref") { boxes.append("iref") }

        func meta(movedBy growth: Int) -> [UInt8]? {
            var body = [UInt8](self.meta.data.part(0, 4).all)
            for (index, type) in boxes.enumerated() {
                let data = index < children.count ? children[index].data : nil
                let box: [UInt8]? =
                    switch type {
                    case "iinf": data.flatMap { itemInfos($0, adding: items) }
                    case "iref": references(data, adding: items.count)
                    case "iprp": data.flatMap { properties($0, adding: kept.profile) }
                    case "iloc": data.flatMap { locations($0, movedBy: growth, adding: items) }
                    default: data.map { [UInt8]($0.all) }
                    }
                guard let box else { return nil }
                body += Bytes.box(type, box)
            }
            return Bytes.box("meta", body)
        }
        // The length of the new box does not depend on the offsets.
        let length = self.meta.end - self.meta.start
        guard let grown = meta(movedBy: 0), let new = meta(movedBy: grown.count - length) else { return nil }
        let data = items.isEmpty ? [] : Bytes.box("mdat", items.flatMap(\.data))
        let before = [UInt8](file.part(0, self.meta.start).all)
        return before + new + [UInt8](file.part(self.meta.end).all) + data
    }

    /// Returns `iinf` (version 0) with an additional entry (`infe`, version 2) for each item.
    private func itemInfos(_ box: ByteReader, adding items: [Item]) -> [UInt8]? {
        guard let count = box.uint16(4) else { return nil }
        var body = Bytes.bigEndian(0) + Bytes.bigEndian(count + items.count, 2) + box.part(6).all
        for (index, item) in items.enumerated() {
            var entry: [UInt8] = [2, 0, 0, 0] + Bytes.bigEndian(firstID + index, 2) + [0, 0]
            entry += [UInt8](item.type.utf8) + [0]
            if item.type == "mime" { entry += [UInt8]("application/rdf+xml\0".utf8) }
            body += Bytes.box("infe", entry)
        }
        return body
    }

    /// Returns `iref`, which may be missing in the file, with an additional `cdsc` (content description) reference for
    /// each item.
    private func references(_ box: ByteReader?, adding count: Int) -> [UInt8]? {
        let body = box.map { [UInt8]($0.all) } ?? [0, 0, 0, 0]
        guard body.first == 0 else { return nil }
        return (0..<count).reduce(into: body) { body, index in
            body += Bytes.box(
                "cdsc", Bytes.bigEndian(firstID + index, 2) + Bytes.bigEndian(1, 2) + Bytes.bigEndian(primary, 2))
        }
    }

    /// Returns `iprp` with an additional `colr` property that is associated with the primary item.
    private func properties(_ box: ByteReader, adding profile: [UInt8]?) -> [UInt8]? {
        guard let profile else { return [UInt8](box.all) }
        // Version 0 with flags 0 means two-byte item IDs and seven-bit property indexes.
        guard let container = HEIFHeader.child("ipco", of: box), let table = HEIFHeader.child("ipma", of: box),
            table.uint32(0) == 0
        else { return nil }
        let index = HEIFHeader.boxes(container).reduce(1) { count, _ in count + 1 }
        guard index < 128 else { return nil }
        let associations = HEIFHeader.associations(box)
        var entries: [UInt8] = [0, 0, 0, 0] + Bytes.bigEndian(associations.count)
        for (item, indexes) in associations {
            let listed = indexes.map { UInt8($0 >> 8 & 0x80 | $0 & 0x7F) } + (item == primary ? [UInt8(index)] : [])
            entries += Bytes.bigEndian(item, 2) + [UInt8(listed.count)] + listed
        }
        let color = Bytes.box("colr", [UInt8]("prof".utf8) + profile)
        return Bytes.box("ipco", container.all + color) + Bytes.box("ipma", entries)
    }

    /// Returns `iloc` with all offsets after `meta` adjusted, and with the locations of the new items in a box at the
    /// end of the file.
    private func locations(_ box: ByteReader, movedBy growth: Int, adding items: [Item]) -> [UInt8]? {
        // The expected layout is: four-byte offsets and lengths, four-byte or no bases, and no extent indexes.
        guard let version = box.byte(0), version <= 1, box.byte(4) == 0x44, let sizes = box.byte(5),
            sizes == 0x40 || sizes == 0, let count = box.uint16(6)
        else { return nil }
        let baseBytes = Int(sizes >> 4)
        var body = box.part(0, 6).all + Bytes.bigEndian(count + items.count, 2)
        var at = 8
        for _ in 0..<count {
            let head = version == 1 ? 6 : 4
            let method = version == 0 ? 0 : box.uint16(at + 2)
            guard let method, let base = baseBytes == 0 ? 0 : box.uint32(at + head),
                let extents = box.uint16(at + head + baseBytes)
            else { return nil }
            body += box.part(at, head + baseBytes + 2).all
            at += head + baseBytes + 2
            for _ in 0..<extents {
                guard let offset = box.uint32(at), box.byte(at + 7) != nil else { return nil }
                let moves = method & 15 == 0 && base + offset >= meta.end
                body += Bytes.bigEndian(offset + (moves ? growth : 0)) + box.part(at + 4, 4).all
                at += 8
            }
        }
        var offset = file.count + growth + 8
        for (index, item) in items.enumerated() {
            body += Bytes.bigEndian(firstID + index, 2) + (version == 1 ? [0, 0] : []) + [0, 0]
            body += [UInt8](repeating: 0, count: baseBytes) + [0, 1]
            body += Bytes.bigEndian(offset) + Bytes.bigEndian(item.data.count)
            offset += item.data.count
        }
        return body
    }
}
