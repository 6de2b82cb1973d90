/// Reads the boxes of AVIF and HEIF still pictures (ISO/IEC 14496-12 §4, 23008-12 §6 and §9): the brands, and the size,
/// transformations, alpha and profile of the primary item.
///
/// libheif applies `clap`, `irot` and `imir` while decoding, and libvips drops the EXIF orientation of these formats.
/// The size in the header is therefore the transformed size, and the orientation is always 1.
enum HEIFHeader {
    private static let avifBrands: Set<String> = ["avif", "avis"]
    private static let heifBrands: Set<String> = [
        "heic", "heix", "heim", "heis", "hevc", "hevx", "hevm", "hevs", "mif1", "mif2", "msf1",
    ]

    /// Returns the format according to the `ftyp` box. Checks the major brand and the first 64 compatible brands.
    static func format(_ reader: ByteReader) -> ImageFormat? {
        guard let size = reader.uint32(0), size >= 16, reader.matches("ftyp", at: 4) else { return nil }
        var isHEIF = false
        for offset in [8] + stride(from: 16, to: min(size, 16 + 64 * 4), by: 4) {
            guard let brand = reader.fourCharacters(offset) else { continue }
            if avifBrands.contains(brand) { return .avif }
            isHEIF = isHEIF || heifBrands.contains(brand)
        }
        return isHEIF ? .heif : nil
    }

    static func parse(_ reader: ByteReader, format: ImageFormat) throws(RenderError) -> ImageHeader {
        let name = format.title
        try checkBoxes(reader, name)
        guard let (_, boxes, own) = properties(reader) else {
            throw ImageHeader.damaged(name, "it has no picture properties")
        }
        guard var (width, height) = size(own.isEmpty ? boxes : own) else {
            throw ImageHeader.damaged(name, "its primary picture has no size")
        }
        try ImageHeader.checkSize(name, width, height)
        for box in own {
            if box.type == "irot", let turns = box.data.byte(0), turns & 1 == 1 { swap(&width, &height) }
        }
        var header = ImageHeader(format: format, encodedWidth: width, encodedHeight: height)
        header.hasAlpha = boxes.contains { $0.type == "auxC" && isAlpha($0.data) }
        // libheif and its decoders do not stream. They keep the planes, the decoder's own frames, and the converted
        // colors.
        let isWide = own.contains { $0.type == "pixi" && ($0.data.byte(5) ?? 8) > 8 }
        header.hold(bytesPerPixel: (isWide ? 24 : 14) * (header.hasAlpha ? 1.5 : 1))
        for profile in own.compactMap(\.profile) { header.profileBytes = max(header.profileBytes, profile.count) }
        return header
    }

    /// Throws if the top level or `meta` contains more boxes than will be read, or if too many items have properties.
    private static func checkBoxes(_ reader: ByteReader, _ name: String) throws(RenderError) {
        try checkCount(of: boxes(reader), name)
        guard let meta = child("meta", of: reader)?.part(4) else { return }
        try checkCount(of: boxes(meta), name)
        for (parent, head) in [("iprp", 0), ("iinf", 6), ("iinf", 8), ("iref", 4)] {
            guard let list = child(parent, of: meta)?.part(head) else { continue }
            try checkCount(of: boxes(list), name)
            if let properties = child("ipco", of: list) { try checkCount(of: boxes(properties), name) }
            for box in boxes(list) where box.type == "ipma" {
                // An entry has at least three bytes.
                let entries = min(box.data.uint32(4) ?? 0, box.data.count / 3)
                try HeaderParts.check(name, entries, "items with properties", most: HeaderParts.boxes)
            }
        }
    }

    static func checkCount(of boxes: some Sequence<Box>, _ name: String) throws(RenderError) {
        let count = boxes.prefix(HeaderParts.maxCounted).reduce(0) { count, _ in count + 1 }
        try HeaderParts.check(name, count, "boxes", most: HeaderParts.boxes)
    }

    /// Reads the bit depth and channels from `pixi`, the name of the profile from `colr`, and EXIF from its item
    /// (23008-12 §A.2).
    static func details(_ reader: ByteReader) -> ImageDetails {
        var details = ImageDetails(colorSpace: "RGB")
        // The identifier of the C2PA box in this family of formats.
        let credentials: [UInt8] = [
            0xD8, 0xFE, 0xC3, 0xD6, 0x1B, 0x0E, 0x48, 0x3C, 0x92, 0x97, 0x58, 0x28, 0x87, 0x7E, 0xC4, 0x81,
        ]
        details.hasContentCredentials = boxes(reader).contains { $0.type == "uuid" && $0.data.matches(credentials) }
        guard let (meta, all, own) = properties(reader) else { return details }
        details.hasGainMap =
            itemID("tmap", meta) != nil
            || all.contains { $0.type == "auxC" && $0.data.matches("urn:com:apple:photo:2020:aux:hdrgainmap", at: 4) }
        for box in own {
            if box.type == "pixi" {
                details.bitDepth = box.data.byte(5).map(Int.init)
                if box.data.byte(4) == 1 { details.colorSpace = "grey" }
            } else if let profile = box.profile {
                details.profileName = ProfileName.read(profile)
            }
        }
        details.profileName = details.profileName ?? color(reader)?.title
        if let item = itemID("Exif", meta), let place = location(of: item, in: meta) {
            let block = reader.part(place.offset, place.length)
            // The first four bytes are the offset of the TIFF header, relative to their end.
            if let skipped = block.uint32(0) { details.exif = EXIFSummary(block.part(4 + skipped)) }
        }
        return details
    }

    /// Converts stored samples to RGB (H.273 §8.3) in cases that libheif 1.15 handles incorrectly. That version does
    /// not expand a limited range for gray or matrix 0 (RGB), and truncates samples of matrix 8 (YCgCo) to 8 bits if
    /// they have more.
    struct Matrix {
        /// The offset of the matrix code in the file. The range flag follows the matrix code.
        private let codes: Int
        private let isYCgCo: Bool

        /// Returns nil if libheif converts the samples correctly.
        init?(_ file: ByteReader) {
            guard let own = properties(file)?.own, let start = file.all.baseAddress,
                let box = own.first(where: { $0.type == "colr" && $0.data.matches("nclx") })?.data,
                let matrix = box.uint16(8), let range = box.byte(10), let place = box.all.baseAddress
            else { return nil }
            let isGray = own.contains {
                $0.type == "pixi" && $0.data.byte(4) == 1 || $0.type == "av1C" && ($0.data.byte(2) ?? 0) & 0x10 != 0
                    || $0.type == "hvcC" && ($0.data.byte(16) ?? 1) & 3 == 0
            }
            let isFull = range & 0x80 != 0
            isYCgCo = matrix == 8 && isFull && !isGray
            guard isYCgCo || !isFull && (isGray || matrix == 0) else { return nil }
            codes = place + 8 - start
        }

        /// Returns the file with a full range and, unless the picture is gray, with matrix 0. Every version of libheif
        /// copies such samples unchanged.
        func unmixed(_ file: ByteReader) -> PixelStorage {
            let storage = PixelStorage(byteCount: file.count)
            storage.write(file.all, at: 0)
            if isYCgCo { storage.mutableBytes[codes + 1] = 0 }
            storage.mutableBytes[codes + 2] |= 0x80
            return storage
        }

        /// Converts samples to RGB that libheif has copied unchanged.
        func rgb(_ image: Image) throws(RenderError) -> Image {
            // Co, Y and Cg are in the red, green and blue bands.
            let half = image.isWide ? 32768.0 : 128
            if isYCgCo { return try image.mixed([[1, 1, -1], [0, 1, 1], [-1, 1, -1]], [0, -half, 2 * half]) }
            let scale = Double(image.largestSample) / (219 * half / 128)
            let rows = [[scale, 0, 0], [0, scale, 0], [0, 0, scale]]
            return try image.mixed(rows, rows.map { _ in -16 * half / 128 * scale })
        }
    }

    /// Returns the color space of `nclx` (14496-12 §12.1.5). As in browsers, the curve of BT.709 and an unspecified
    /// curve are treated as the curve of sRGB.
    static func color(_ reader: ByteReader) -> CodedColorSpace? {
        guard let own = properties(reader)?.own,
            let codes = own.first(where: { $0.type == "colr" && $0.data.matches("nclx") })?.data,
            let primaries = codes.uint16(4), let transfer = codes.uint16(6)
        else { return nil }
        var color = CodedColorSpace(
            primaries: primaries == 2 ? 1 : primaries, transfer: [1, 2, 6, 14, 15].contains(transfer) ? 13 : transfer,
            " (nclx)")
        if let light = own.first(where: { $0.type == "clli" })?.data.uint16(0), light > 0 {
            color?.peak = Double(light)
        }
        return color
    }

    /// Returns the ID of the first item of a type in `iinf` (14496-12 §8.11.6, entries of version 2 or 3).
    private static func itemID(_ type: StaticString, _ meta: ByteReader) -> Int? {
        guard let items = child("iinf", of: meta), let version = items.byte(0) else { return nil }
        for box in boxes(items.part(version == 0 ? 6 : 8)) where box.type == "infe" {
            let idBytes = box.data.byte(0) == 2 ? 2 : 4
            guard box.data.matches(type, at: 4 + idBytes + 2) else { continue }
            return idBytes == 2 ? box.data.uint16(4) : box.data.uint32(4)
        }
        return nil
    }

    /// Returns the offset and length of an item's first extent (14496-12 §8.11.3). Returns nil if the extent is not in
    /// the file itself.
    static func location(of item: Int, in meta: ByteReader) -> (offset: Int, length: Int)? {
        guard let box = child("iloc", of: meta), let version = box.byte(0), version < 3, let sizes = box.uint16(4),
            let count = version < 2 ? box.uint16(6) : box.uint32(6)
        else { return nil }
        let (offsetBytes, lengthBytes) = (sizes >> 12, sizes >> 8 & 15)
        let (baseBytes, indexBytes) = (sizes >> 4 & 15, version == 0 ? 0 : sizes & 15)
        // Without a length field, extents would take up no bytes, so a forged number of extents could keep this loop
        // busy.
        guard lengthBytes > 0 else { return nil }
        var at = version < 2 ? 8 : 10
        func number(_ bytes: Int) -> Int? {
            defer { at += bytes }
            switch bytes {
            case 0: return 0
            case 2: return box.uint16(at)
            case 4: return box.uint32(at)
            case 8: return box.uint64(at)
            default: return nil
            }
        }
        for _ in 0..<count {
            guard let id = number(version < 2 ? 2 : 4) else { return nil }
            // Construction method 0 means that the item is in the file itself, and not in `idat` or another item.
            let method = version == 0 ? 0 : number(2)
            guard let method, number(2) != nil, let base = number(baseBytes), let extents = number(2) else {
                return nil
            }
            for extent in 0..<extents {
                guard number(indexBytes) != nil, let offset = number(offsetBytes), let length = number(lengthBytes)
                else {
                    return nil
                }
                guard id == item, extent == 0 else { continue }
                let (place, overflow) = base.addingReportingOverflow(offset)
                return method & 15 == 0 && !overflow ? (place, length) : nil
            }
        }
        return nil
    }

    struct Box {
        var type: String
        var data: ByteReader
        /// The range of the box in the surrounding bytes, including its header.
        var start, end: Int

        /// The ICC profile if the box contains one.
        var profile: ByteReader? {
            type == "colr" && (data.matches("prof") || data.matches("rICC")) ? data.part(4) : nil
        }
    }

    /// Returns the content of the `meta` box, all picture properties, and the properties of the primary item. Returns
    /// nil if a box is missing.
    private static func properties(_ reader: ByteReader) -> (meta: ByteReader, all: [Box], own: [Box])? {
        guard let meta = child("meta", of: reader)?.part(4), let properties = child("iprp", of: meta),
            let container = child("ipco", of: properties)
        else { return nil }
        let all = Array(boxes(container))
        let primary = primaryItem(meta)
        let own = associations(properties).filter { $0.item == primary }.flatMap(\.indexes).map { $0 & 0x7FFF - 1 }
        return (meta, all, own.filter(all.indices.contains).map { all[$0] })
    }

    /// Returns the direct child boxes in order. The sequence is finite, because each box has at least its 8-byte
    /// header.
    static func boxes(_ reader: ByteReader) -> some Sequence<Box> {
        sequence(state: 0) { (offset: inout Int) -> Box? in
            guard let size = reader.uint32(offset), let type = reader.fourCharacters(offset + 4) else { return nil }
            let left = reader.count - offset
            let head = size == 1 ? 16 : 8
            let length = size == 1 ? reader.uint64(offset + 8) : size == 0 ? left : size
            guard let length, length >= head else { return nil }
            let start = offset
            offset += min(length, left)
            return Box(type: type, data: reader.part(start + head, length - head), start: start, end: offset)
        }
    }

    static func child(_ type: String, of reader: ByteReader) -> ByteReader? {
        boxes(reader).first { $0.type == type }?.data
    }

    static func primaryItem(_ meta: ByteReader) -> Int? {
        guard let box = child("pitm", of: meta), let version = box.byte(0) else { return nil }
        return version == 0 ? box.uint16(4) : box.uint32(4)
    }

    /// Returns the properties that the `ipma` boxes associate with items, in order. Indexes start at 1 and include
    /// 0x8000 for essential properties.
    static func associations(_ properties: ByteReader) -> [(item: Int, indexes: [Int])] {
        var result: [(item: Int, indexes: [Int])] = []
        nextBox: for box in boxes(properties) where box.type == "ipma" {
            guard let flags = box.data.uint24(1), let entries = box.data.uint32(4) else { continue }
            let idBytes = box.data.byte(0) == 0 ? 2 : 4
            let indexBytes = flags & 1 == 1 ? 2 : 1
            var offset = 8
            for _ in 0..<entries {
                guard let id = idBytes == 2 ? box.data.uint16(offset) : box.data.uint32(offset),
                    let count = box.data.byte(offset + idBytes)
                else { continue nextBox }
                offset += idBytes + 1
                var indexes: [Int] = []
                for _ in 0..<count {
                    let index = indexBytes == 2 ? box.data.uint16(offset) : box.data.byte(offset).map(Int.init)
                    guard let index else { break }
                    indexes.append(indexBytes == 2 ? index : (index & 0x80) << 8 | index & 0x7F)
                    offset += indexBytes
                }
                result.append((id, indexes))
            }
        }
        return result
    }

    /// Returns the size in `ispe`, cropped by `clap` if it is present and plausible. If there are several sizes,
    /// returns the largest, so that limits err on the safe side.
    private static func size(_ boxes: [Box]) -> (width: Int, height: Int)? {
        var size: (width: Int, height: Int)?
        for box in boxes where box.type == "ispe" {
            guard let width = box.data.uint32(4), let height = box.data.uint32(8) else { continue }
            if let known = size, UInt(known.width) * UInt(known.height) >= UInt(width) * UInt(height) { continue }
            size = (width, height)
        }
        guard let size, let clap = boxes.first(where: { $0.type == "clap" })?.data,
            let widthN = clap.uint32(0), let widthD = clap.uint32(4), widthD > 0,
            let heightN = clap.uint32(8), let heightD = clap.uint32(12), heightD > 0
        else { return size }
        let width = widthN / widthD
        let height = heightN / heightD
        guard (1...max(1, size.width)).contains(width), (1...max(1, size.height)).contains(height) else { return size }
        return (width, height)
    }

    static func isAlpha(_ data: ByteReader) -> Bool {
        data.matches("urn:mpeg:mpegB:cicp:systems:auxiliary:alpha", at: 4)
            || data.matches("urn:mpeg:hevc:2015:auxid:1", at: 4) || data.matches("urn:mpeg:avc:2015:auxid:1", at: 4)
    }
}
