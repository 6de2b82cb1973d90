/// Metadata in AVIF files (ISO/IEC 14496-12 §8.11 and §12.1.5, 23008-12 §6.5.5, §9.3 and annex A).
///
/// libheif's files hold one picture, possibly with alpha, described by a `meta` box before the data. A profile becomes
/// a property of the primary item; EXIF and XMP become separate items, whose data is appended to the file. Because the
/// `meta` box grows, all offsets after it are adjusted.
extension KeptBlobs {
    /// Throws `encodingFailed` if the file is not laid out as libheif writes it.
    func inserted(intoAVIF file: [UInt8]) throws(RenderError) -> [UInt8] {
        if isEmpty { return file }
        do {
            return try AVIFMetadata(file).adding(self)
        } catch {
            throw RenderError(.encodingFailed, "metadata cannot be put into the AVIF file; leave out `keep=`")
        }
    }
}

private struct AVIFMetadata {
    private struct Unexpected: Error {}
    private typealias Box = (type: String, bytes: ArraySlice<UInt8>)

    private let file: [UInt8]
    private let top: [Box]
    /// The children of `meta`, in file order.
    private let meta: [Box]

    init(_ file: [UInt8]) throws {
        self.file = file
        top = try Self.boxes(file[...])
        guard let meta = top.first(where: { $0.type == "meta" }) else { throw Unexpected() }
        self.meta = try Self.boxes(meta.bytes.dropFirst(12))
    }

    func adding(_ kept: KeptBlobs) throws -> [UInt8] {
        let primary = try number(child("pitm").bytes, at: 12, 2)
        var items: [(type: String, data: [UInt8])] = []
        // The four bytes before EXIF give the offset of its TIFF header.
        if let tiff = kept.tiff { items.append(("Exif", [0, 0, 0, 0] + tiff)) }
        if let xmp = kept.xmp { items.append(("mime", xmp)) }

        // `iloc` comes last: its offsets depend on the length of everything else, whereas its own length does not.
        var children: [[UInt8]] = []
        let firstID = try itemIDs().reduce(0, max) + 1
        for box in meta {
            switch box.type {
            case "iinf": children.append(try itemInfos(box.bytes, adding: items, firstID))
            case "iref": children.append(try references(Array(box.bytes), adding: items.count, firstID, to: primary))
            case "iprp": children.append(try properties(box.bytes, adding: kept.profile, to: primary))
            default: children.append(Array(box.bytes))
            }
        }
        if !items.isEmpty, !meta.contains(where: { $0.type == "iref" }) {
            let empty = Bytes.box("iref", [0, 0, 0, 0])
            children.append(try references(empty, adding: items.count, firstID, to: primary))
        }
        guard let at = meta.firstIndex(where: { $0.type == "iloc" }),
            let metaAt = top.firstIndex(where: { $0.type == "meta" })
        else { throw Unexpected() }
        let oldEnd = top[metaAt].bytes.endIndex
        let growth =
            12 + children.map(\.count).reduce(0, +) + (try locationBytes()) * items.count - top[metaAt].bytes.count
        children[at] = try locations(
            meta[at].bytes, movedBy: growth, from: oldEnd, adding: items.map(\.data.count), firstID,
            at: file.count + growth + 8)
        let grown = Bytes.box("meta", Array(top[metaAt].bytes.dropFirst(8).prefix(4)) + children.flatMap { $0 })
        let data = items.isEmpty ? [] : Bytes.box("mdat", items.flatMap(\.data))
        return file[..<top[metaAt].bytes.startIndex] + grown + file[oldEnd...] + data
    }

    // MARK: The parts of `meta`

    private func itemIDs() throws -> [Int] {
        try Self.boxes(child("iinf").bytes.dropFirst(14)).map { box in
            guard box.type == "infe", try number(box.bytes, at: 8, 1) == 2 else { throw Unexpected() }
            return try number(box.bytes, at: 12, 2)
        }
    }

    /// `iinf` of version 0 with one more entry (`infe`, version 2) for each item.
    private func itemInfos(
        _ box: ArraySlice<UInt8>, adding items: [(type: String, data: [UInt8])], _ firstID: Int
    ) throws -> [UInt8] {
        guard try number(box, at: 8, 1) == 0 else { throw Unexpected() }
        var body = Bytes.bigEndian(0) + Bytes.bigEndian(try number(box, at: 12, 2) + items.count, 2) + box.dropFirst(14)
        for (index, item) in items.enumerated() {
            var entry: [UInt8] = [2, 0, 0, 0] + Bytes.bigEndian(firstID + index, 2) + [0, 0]
            entry += [UInt8](item.type.utf8) + [0]
            if item.type == "mime" { entry += [UInt8]("application/rdf+xml\0".utf8) }
            body += Bytes.box("infe", entry)
        }
        return Bytes.box("iinf", body)
    }

    /// `iref` with one more `cdsc` (content description) reference for each item.
    private func references(_ box: [UInt8], adding count: Int, _ firstID: Int, to primary: Int) throws -> [UInt8] {
        guard try number(box[...], at: 8, 1) == 0 else { throw Unexpected() }
        var body = Array(box.dropFirst(8))
        for index in 0..<count {
            body += Bytes.box(
                "cdsc", Bytes.bigEndian(firstID + index, 2) + Bytes.bigEndian(1, 2) + Bytes.bigEndian(primary, 2))
        }
        return Bytes.box("iref", body)
    }

    /// `iprp` with one more `colr` property, associated with the primary item.
    private func properties(
        _ box: ArraySlice<UInt8>, adding profile: [UInt8]?, to primary: Int
    ) throws -> [UInt8] {
        guard let profile else { return Array(box) }
        var body: [UInt8] = []
        var index = 0
        for part in try Self.boxes(box.dropFirst(8)) {
            if part.type == "ipco" {
                index = try Self.boxes(part.bytes.dropFirst(8)).count + 1
                body += Bytes.box(
                    "ipco",
                    Array(part.bytes.dropFirst(8)) + Bytes.box("colr", [UInt8]("prof".utf8) + profile))
            } else {
                // Version 0 with flags 0 means item IDs of two bytes and property indexes of seven bits.
                guard part.type == "ipma", try number(part.bytes, at: 8, 4) == 0, (1...127).contains(index) else {
                    throw Unexpected()
                }
                var associations = Array(part.bytes.dropFirst(8).prefix(8))
                var at = 16
                for _ in 0..<(try number(part.bytes, at: 12, 4)) {
                    let (item, count) = (try number(part.bytes, at: at, 2), try number(part.bytes, at: at + 2, 1))
                    let isPrimary = item == primary
                    let listed = part.bytes.dropFirst(at + 3).prefix(count)
                    associations += Bytes.bigEndian(item, 2) + [UInt8(count + (isPrimary ? 1 : 0))] + listed
                    if isPrimary { associations.append(UInt8(index)) }
                    at += 3 + count
                }
                body += Bytes.box("ipma", associations)
            }
        }
        return Bytes.box("iprp", body)
    }

    /// The size of an `iloc` entry with one extent, in bytes: version 0 or 1, four-byte offsets and lengths.
    private func locationBytes() throws -> Int {
        let box = try child("iloc").bytes
        let version = try number(box, at: 8, 1)
        guard version <= 1, try number(box, at: 12, 1) == 0x44 else { throw Unexpected() }
        return try (version == 1 ? 8 : 6) + (number(box, at: 13, 1) >> 4) + 8
    }

    private func locations(
        _ box: ArraySlice<UInt8>, movedBy growth: Int, from end: Int, adding lengths: [Int], _ firstID: Int,
        at start: Int
    ) throws -> [UInt8] {
        let version = try number(box, at: 8, 1)
        let baseBytes = try number(box, at: 13, 1) >> 4
        guard try number(box, at: 13, 1) & 15 == 0 else { throw Unexpected() }
        let count = try number(box, at: 14, 2)
        var body = Array(box.dropFirst(8).prefix(6)) + Bytes.bigEndian(count + lengths.count, 2)
        var at = 16
        for _ in 0..<count {
            let head = version == 1 ? 6 : 4
            let isInFile = version == 0 ? true : try number(box, at: at + 2, 2) & 15 == 0
            let base = try number(box, at: at + head, baseBytes)
            let extents = try number(box, at: at + head + baseBytes, 2)
            body += box.dropFirst(at).prefix(head + baseBytes + 2)
            at += head + baseBytes + 2
            for _ in 0..<extents {
                let offset = try number(box, at: at, 4)
                let moves = isInFile && base + offset >= end
                body += Bytes.bigEndian(offset + (moves ? growth : 0)) + box.dropFirst(at + 4).prefix(4)
                at += 8
            }
        }
        var offset = start
        for (index, length) in lengths.enumerated() {
            body += Bytes.bigEndian(firstID + index, 2) + (version == 1 ? [0, 0] : []) + [0, 0]
            body += [UInt8](repeating: 0, count: baseBytes) + [0, 1]
            body += Bytes.bigEndian(offset) + Bytes.bigEndian(length)
            offset += length
        }
        return Bytes.box("iloc", body)
    }

    // MARK: Reading and writing boxes

    private func child(_ type: String) throws -> Box {
        guard let box = meta.first(where: { $0.type == type }) else { throw Unexpected() }
        return box
    }

    private func number(_ bytes: ArraySlice<UInt8>, at offset: Int, _ count: Int) throws -> Int {
        let part = bytes.dropFirst(offset).prefix(count)
        guard part.count == count else { throw Unexpected() }
        return part.reduce(0) { $0 << 8 | Int($1) }
    }

    private static func boxes(_ bytes: ArraySlice<UInt8>) throws -> [Box] {
        var result: [Box] = []
        var at = bytes.startIndex
        while at < bytes.endIndex {
            guard bytes.endIndex - at >= 8 else { throw Unexpected() }
            let size = bytes[at..<(at + 4)].reduce(0) { $0 << 8 | Int($1) }
            guard size >= 8, size <= bytes.endIndex - at else { throw Unexpected() }
            result.append((String(decoding: bytes[(at + 4)..<(at + 8)], as: UTF8.self), bytes[at..<(at + size)]))
            at += size
        }
        return result
    }
}
