/// The transparency of an AVIF or HEIF picture, which is stored as a separate picture in the file (`auxl`; 23008-12
/// §6.4.5).
///
/// Writers attach `irot`, `imir` and `clap` either only to the colors or to both pictures. Readers apply the
/// transformations of the colors to both. However, libheif 1.15 applies only those transformations to alpha that are
/// attached to it, and libvips does not divide premultiplied colors by alpha (`prem`; 23000-22 §7.3.5.2).
extension HEIFHeader {
    struct Alpha {
        fileprivate let meta, properties: ByteReader
        fileprivate let all: [Box]
        fileprivate var associations: [(item: Int, indexes: [Int])]
        fileprivate var primary = 0
        fileprivate var item = 0
        /// Whether the colors are premultiplied by alpha.
        var isPremultiplied: Bool { references("prem").contains { $0.from == primary && $0.to.contains(item) } }

        /// The part of a file to decode: colors with alpha, only colors, or only alpha.
        enum Part { case both, colors, alpha }

        /// Whether alpha can be enlarged to the size of the colors (`ispe`). This requires that alpha is smaller and
        /// that the colors are not cropped. nil if the sizes are equal.
        var canBeEnlarged: Bool? {
            func size(_ item: Int) -> [Int]? {
                indexes(of: item) { $0.type == "ispe" }.first.flatMap(box).map { box in
                    [box.data.uint32(4) ?? 0, box.data.uint32(8) ?? 0]
                }
            }
            guard let colors = size(primary), let own = size(item), own != colors else { return nil }
            return own[0] <= colors[0] && own[1] <= colors[1] && indexes(of: primary) { $0.type == "clap" }.isEmpty
        }

        /// Reads the alpha picture of the primary picture. Returns nil if the primary picture has no alpha.
        init?(_ file: ByteReader) {
            guard let meta = child("meta", of: file)?.part(4), let primary = primaryItem(meta),
                let properties = child("iprp", of: meta), let container = child("ipco", of: properties)
            else { return nil }
            (self.meta, self.properties, self.primary) = (meta, properties, primary)
            (all, associations) = (Array(boxes(container)), HEIFHeader.associations(properties))
            guard
                let found = references("auxl").first(where: { reference in
                    reference.to.contains(primary)
                        && !indexes(of: reference.from, { $0.type == "auxC" && isAlpha($0.data) }).isEmpty
                })
            else { return nil }
            item = found.from
        }

        /// Returns the indexes of an item's properties that pass a test.
        fileprivate func indexes(of item: Int, _ test: (Box) -> Bool) -> [Int] {
            associations.filter { $0.item == item }.flatMap(\.indexes).filter { box($0).map(test) == true }
        }

        fileprivate func box(_ index: Int) -> Box? {
            all.indices.contains(index & 0x7FFF - 1) ? all[index & 0x7FFF - 1] : nil
        }

        /// Returns the references of a type between items (14496-12 §8.11.12).
        private func references(_ type: String) -> [(from: Int, to: [Int])] {
            guard let box = child("iref", of: meta), let version = box.byte(0) else { return [] }
            let bytes = version == 0 ? 2 : 4
            return boxes(box.part(4)).filter { $0.type == type }.compactMap { reference in
                func id(_ at: Int) -> Int? { version == 0 ? reference.data.uint16(at) : reference.data.uint32(at) }
                guard let from = id(0), let count = reference.data.uint16(bytes) else { return nil }
                return (from, (0..<min(count, reference.data.count / bytes)).compactMap { id(2 + bytes * ($0 + 1)) })
            }
        }
    }

    /// Returns a modified file for libheif. The colors' transformations are also attached to alpha, and `prem` is
    /// removed, so that transformations and premultiplication are handled exactly once, whatever libheif does.
    /// Depending on `part`, the file contains only the colors or only alpha instead. Returns nil if the file needs no
    /// change or is damaged.
    ///
    /// The new `meta` box is appended, and the old box becomes `free`, so that all offsets stay valid.
    static func file(_ file: ByteReader, with part: Alpha.Part = .both) -> [UInt8]? {
        let top = Array(boxes(file))
        guard var alpha = Alpha(file), let old = top.first(where: { $0.type == "meta" }), let last = top.last,
            let first = alpha.associations.firstIndex(where: { $0.item == alpha.item }), file.count < 1 << 31
        else { return nil }
        let isTransformation = { (box: Box) in ["clap", "irot", "imir"].contains(box.type) }
        func content(_ indexes: [Int]) -> [[UInt8]] {
            indexes.compactMap(alpha.box).map { [UInt8]($0.type.utf8) + $0.data.all }
        }
        let wanted = alpha.indexes(of: alpha.primary, isTransformation)
        let present = alpha.indexes(of: alpha.item, isTransformation)
        if part == .both, !alpha.isPremultiplied, content(wanted) == content(present) { return nil }
        // A truncated box would extend into the new box.
        let (size, actual) = (file.uint32(last.start), last.end - last.start)
        guard size == 0 || (size == 1 ? file.uint64(last.start + 8) : size) == actual else { return nil }

        for index in alpha.associations.indices where alpha.associations[index].item == alpha.item {
            alpha.associations[index].indexes.removeAll(where: present.contains)
        }
        // libheif reads only the first entry of an item.
        alpha.associations[first].indexes += wanted
        let entries = alpha.associations.flatMap { item, indexes in
            Bytes.bigEndian(item) + [UInt8(min(255, indexes.count))]
                + indexes.prefix(255).flatMap { Bytes.bigEndian($0, 2) }
        }
        let table = Bytes.box("ipma", [1, 0, 0, 1] + Bytes.bigEndian(alpha.associations.count) + entries)
        let container = [UInt8](child("ipco", of: alpha.properties)?.all ?? .init(start: nil, count: 0))
        let children = boxes(alpha.meta).flatMap { child -> [UInt8] in
            switch child.type {
            case "iprp": return Bytes.box("iprp", Bytes.box("ipco", container) + table)
            case "pitm" where part == .alpha: return Bytes.box("pitm", [1, 0, 0, 0] + Bytes.bigEndian(alpha.item))
            case "iinf" where part == .alpha:
                // Alpha may be marked as hidden. The hidden flag is the lowest bit.
                let head = child.data.byte(0) == 0 ? 6 : 8
                let items = boxes(child.data.part(head)).flatMap { item in
                    Bytes.box(
                        item.type, item.data.part(0, 3).all + [(item.data.byte(3) ?? 0) & 0xFE] + item.data.part(4).all)
                }
                return Bytes.box("iinf", child.data.part(0, head).all + items)
            case "iref":
                let kept = boxes(child.data.part(4)).filter {
                    $0.type != "prem" && (part == .both || $0.type != "auxl")
                }
                return Bytes.box(
                    "iref", child.data.part(0, 4).all + kept.flatMap { Bytes.box($0.type, [UInt8]($0.data.all)) })
            default: return Bytes.box(child.type, [UInt8](child.data.all))
            }
        }
        var result = [UInt8](file.part(0, last.end).all)
        result.replaceSubrange(old.start + 4..<old.start + 8, with: "free".utf8)
        if size == 0 { result.replaceSubrange(last.start..<last.start + 4, with: Bytes.bigEndian(actual)) }
        return result + Bytes.box("meta", old.data.part(0, 4).all + children)
    }
}
