/// Walks the entropy-coded data of a JPEG that lacks its EOI marker, to find out whether all rows are present (ITU-T
/// T.81 annexes F and G). libjpeg cannot tell a file that lacks two bytes from one that lacks half of the picture.
struct JPEGScans {
    /// The JPEG with the missing EOI marker appended; nil if it already has one, or if pixels are missing.
    static func completed(_ bytes: UnsafeRawBufferPointer) -> PixelStorage? {
        let reader = ByteReader(bytes)
        // Cameras append data after EOI, so look for the marker first. That is cheap compared to walking the scans.
        if bytes.count < 4 || reader.uint16(bytes.count - 2) == 0xFFD9 { return nil }
        if (try? JPEGDecoder.forEachSegment(reader) { _, _, _ in true }) == true { return nil }
        var scans = JPEGScans(reader)
        guard scans.areComplete() else { return nil }
        let storage = PixelStorage(byteCount: bytes.count + 2)
        storage.write(bytes, at: 0)
        [UInt8]([0xFF, 0xD9]).withUnsafeBytes { storage.write($0, at: bytes.count) }
        return storage
    }

    private struct Component {
        var id: UInt8
        var across: Int
        var down: Int
        /// Columns and rows of blocks in a scan of this component alone.
        var columns: Int
        var rows: Int
        /// Blocks per row of `nonzero`, including the padding blocks of scans with several components.
        var stride: Int
        /// For each coefficient, how many of its lowest bits are still missing; nil if all are.
        var missingBits = [Int?](repeating: nil, count: 64)
        /// Per block, one bit for each coefficient that is not zero. Filled for progressive files only.
        var nonzero: [UInt64] = []
    }

    private struct HuffmanTable {
        /// By code length: the first code, the position of its value in `values`, and the number of codes.
        private var first = [Int](repeating: 0, count: 17)
        private var start = [Int](repeating: 0, count: 17)
        private var count = [Int](repeating: 0, count: 17)
        private var values: [UInt8] = []

        /// Reads a table and returns it with the number of bytes it takes; nil if it is invalid or cut short.
        static func read(_ segment: ByteReader) -> (table: HuffmanTable, length: Int)? {
            var table = HuffmanTable()
            var (code, total) = (0, 0)
            for length in 1...16 {
                guard let number = segment.byte(length) else { return nil }
                table.first[length] = code
                table.start[length] = total
                table.count[length] = Int(number)
                code = (code + Int(number)) << 1
                total += Int(number)
            }
            guard total <= 256 else { return nil }
            for index in 0..<total {
                guard let value = segment.byte(17 + index) else { return nil }
                table.values.append(value)
            }
            return (table, 17 + total)
        }

        func symbol(_ bits: inout EntropyBits) -> Int? {
            var code = 0
            for length in 1...16 {
                guard let bit = bits.next() else { return nil }
                code = code << 1 | bit
                let index = code - first[length]
                if index >= 0, index < count[length] { return Int(values[start[length] + index]) }
            }
            return nil
        }
    }

    private let reader: ByteReader
    private var components: [Component] = []
    private var isProgressive = false
    private var restartInterval = 0
    private var mcuColumns = 0
    private var mcuRows = 0
    /// Four DC tables, then four AC tables.
    private var tables: [HuffmanTable?] = Array(repeating: nil, count: 8)

    private init(_ reader: ByteReader) { self.reader = reader }

    private mutating func areComplete() -> Bool {
        var isReadable = true
        // The walk only rethrows errors of its body, and this body throws none.
        _ = try? JPEGDecoder.forEachSegment(reader) { marker, segment, end in
            switch marker {
            case 0xC4: isReadable = readTables(segment)
            case 0xDD: restartInterval = segment.uint16(0) ?? 0
            case 0xDA: isReadable = readScan(segment, from: end)
            case _ where JPEGDecoder.isFrame(marker):
                isReadable = components.isEmpty && marker <= 0xC2 && readFrame(segment, marker)
            default: break
            }
            return isReadable
        }
        return isReadable && !components.isEmpty
            && components.allSatisfy { $0.missingBits.allSatisfy { $0 == 0 } }
    }

    private mutating func readTables(_ segment: ByteReader) -> Bool {
        var rest = segment
        while let target = rest.byte(0) {
            guard target >> 4 < 2, target & 15 < 4, let (table, length) = HuffmanTable.read(rest) else { return false }
            tables[Int(target >> 4) * 4 + Int(target & 15)] = table
            rest = rest.part(length)
        }
        return true
    }

    private mutating func readFrame(_ segment: ByteReader, _ marker: UInt8) -> Bool {
        guard let height = segment.uint16(1), let width = segment.uint16(3), let count = segment.byte(5),
            (1...4).contains(count), height > 0, width > 0
        else { return false }
        var factors: [(id: UInt8, across: Int, down: Int)] = []
        for index in 0..<Int(count) {
            guard let id = segment.byte(6 + index * 3), let sampling = segment.byte(7 + index * 3),
                (1...4).contains(sampling >> 4), (1...4).contains(sampling & 15)
            else { return false }
            factors.append((id, Int(sampling >> 4), Int(sampling & 15)))
        }
        let across = factors.map(\.across).max() ?? 1
        let down = factors.map(\.down).max() ?? 1
        func blocks(_ length: Int, _ factor: Int, _ most: Int) -> Int { ((length * factor + most - 1) / most + 7) / 8 }
        mcuColumns = (width + 8 * across - 1) / (8 * across)
        mcuRows = (height + 8 * down - 1) / (8 * down)
        // Every block takes at least one bit, so this bounds work and memory by the size of the file.
        let blocksOfMCU = factors.reduce(0) { $0 + $1.across * $1.down }
        guard mcuColumns * mcuRows * blocksOfMCU <= reader.count * 8 else { return false }
        isProgressive = marker == 0xC2
        components = factors.map { factor in
            let stride = mcuColumns * factor.across
            return Component(
                id: factor.id, across: factor.across, down: factor.down,
                columns: blocks(width, factor.across, across), rows: blocks(height, factor.down, down), stride: stride,
                nonzero: isProgressive ? Array(repeating: 0, count: stride * mcuRows * factor.down) : [])
        }
        return true
    }

    // MARK: Scans

    /// A scan's components, its spectral selection (`first`…`last`) and its successive approximation (`high`, `low`).
    private struct Scan {
        var members: [(component: Int, dc: HuffmanTable?, ac: HuffmanTable?)] = []
        var first = 0
        var last = 63
        var high = 0
        var low = 0
    }

    /// Reads a scan's data, which starts after its header. Returns whether all of it is present.
    private mutating func readScan(_ header: ByteReader, from start: Int) -> Bool {
        guard let scan = scan(header) else { return false }
        var bits = EntropyBits(reader, at: start)
        let isAlone = scan.members.count == 1
        let only = components[scan.members[0].component]
        let columns = isAlone ? only.columns : mcuColumns
        let rows = isAlone ? only.rows : mcuRows
        var bandsLeft = 0
        for mcu in 0..<(columns * rows) {
            if restartInterval > 0, mcu > 0, mcu % restartInterval == 0 {
                guard bits.restart() else { return false }
                bandsLeft = 0
            }
            let (row, column) = (mcu / columns, mcu % columns)
            for member in scan.members {
                let component = components[member.component]
                let (across, down) = isAlone ? (1, 1) : (component.across, component.down)
                for y in 0..<down {
                    for x in 0..<across {
                        let block = (row * down + y) * component.stride + column * across + x
                        let isRead =
                            isProgressive
                            ? skipBand(&bits, scan, member, block, &bandsLeft) : skipBlock(&bits, member.dc, member.ac)
                        guard isRead else { return false }
                    }
                }
            }
        }
        for member in scan.members {
            for coefficient in scan.first...scan.last {
                components[member.component].missingBits[coefficient] = scan.low
            }
        }
        return true
    }

    private func scan(_ header: ByteReader) -> Scan? {
        guard let count = header.byte(0), (1...4).contains(count) else { return nil }
        var scan = Scan()
        for index in 0..<Int(count) {
            guard let id = header.byte(1 + index * 2), let selectors = header.byte(2 + index * 2),
                selectors >> 4 < 4, selectors & 15 < 4, let component = components.firstIndex(where: { $0.id == id })
            else { return nil }
            scan.members.append((component, tables[Int(selectors >> 4)], tables[4 + Int(selectors & 15)]))
        }
        guard isProgressive else { return scan }
        let at = 1 + Int(count) * 2
        guard let first = header.byte(at), let last = header.byte(at + 1), let bits = header.byte(at + 2),
            first <= last, last < 64, first == 0 ? last == 0 : count == 1
        else { return nil }
        (scan.first, scan.last) = (Int(first), Int(last))
        (scan.high, scan.low) = (Int(bits >> 4), Int(bits & 15))
        return scan
    }

    /// Skips a block of a sequential scan (T.81 §F.2.2).
    private func skipBlock(_ bits: inout EntropyBits, _ dc: HuffmanTable?, _ ac: HuffmanTable?) -> Bool {
        guard let dc, let ac, let size = dc.symbol(&bits), size <= 16, bits.skip(size) else { return false }
        var at = 1
        while at < 64 {
            guard let symbol = ac.symbol(&bits) else { return false }
            let (run, size) = (symbol >> 4, symbol & 15)
            if size == 0 {
                if run < 15 { return true }
                at += 16
            } else {
                at += run + 1
                guard bits.skip(size) else { return false }
            }
        }
        return true
    }

    /// Skips a block's part of a progressive scan (T.81 §G.1.2, §G.2).
    private mutating func skipBand(
        _ bits: inout EntropyBits, _ scan: Scan, _ member: (component: Int, dc: HuffmanTable?, ac: HuffmanTable?),
        _ block: Int, _ bandsLeft: inout Int
    ) -> Bool {
        if scan.first == 0 {
            if scan.high > 0 { return bits.next() != nil }
            guard let size = member.dc?.symbol(&bits), size <= 16 else { return false }
            return bits.skip(size)
        }
        guard let table = member.ac else { return false }
        var nonzero = components[member.component].nonzero[block]
        defer { components[member.component].nonzero[block] = nonzero }
        return scan.high == 0
            ? Self.skipFirst(&bits, scan, table, &nonzero, &bandsLeft)
            : Self.skipRefinement(&bits, scan, table, &nonzero, &bandsLeft)
    }

    private static func skipFirst(
        _ bits: inout EntropyBits, _ scan: Scan, _ table: HuffmanTable, _ nonzero: inout UInt64, _ bandsLeft: inout Int
    ) -> Bool {
        if bandsLeft > 0 {
            bandsLeft -= 1
            return true
        }
        var at = scan.first
        while at <= scan.last {
            guard let symbol = table.symbol(&bits) else { return false }
            let (run, size) = (symbol >> 4, symbol & 15)
            if size == 0 {
                if run < 15 {
                    guard let more = bits.number(run) else { return false }
                    bandsLeft = 1 << run + more - 1
                    return true
                }
                at += 16
            } else {
                at += run
                guard at < 64, bits.skip(size) else { return false }
                nonzero |= 1 << UInt64(at)
                at += 1
            }
        }
        return true
    }

    private static func skipRefinement(
        _ bits: inout EntropyBits, _ scan: Scan, _ table: HuffmanTable, _ nonzero: inout UInt64, _ bandsLeft: inout Int
    ) -> Bool {
        /// Skips a bit for each known nonzero coefficient, up to the zero coefficient that follows `zeros` others.
        func skipKnown(_ at: inout Int, zeros: Int) -> Bool {
            var left = zeros
            while at <= scan.last {
                if nonzero >> UInt64(at) & 1 == 1 {
                    guard bits.next() != nil else { return false }
                } else if left == 0 {
                    return true
                } else {
                    left -= 1
                }
                at += 1
            }
            return true
        }
        var at = scan.first
        while at <= scan.last, bandsLeft == 0 {
            guard let symbol = table.symbol(&bits) else { return false }
            let (run, size) = (symbol >> 4, symbol & 15)
            if size == 0, run < 15 {
                guard let more = bits.number(run) else { return false }
                bandsLeft = 1 << run + more
                break
            }
            // Size 1 is a coefficient that becomes 1 or −1; its sign bit comes first.
            guard size <= 1, size == 0 || bits.next() != nil, skipKnown(&at, zeros: run) else { return false }
            if size == 1, at <= scan.last { nonzero |= 1 << UInt64(at) }
            at += 1
        }
        if bandsLeft > 0 {
            guard skipKnown(&at, zeros: 64) else { return false }
            bandsLeft -= 1
        }
        return true
    }
}

/// Reads bits of entropy-coded data, the highest bit of a byte first. Skips stuffed zeros and returns nil at a marker.
private struct EntropyBits {
    private let reader: ByteReader
    private var offset: Int
    private var current = 0
    private var left = 0

    init(_ reader: ByteReader, at offset: Int) {
        self.reader = reader
        self.offset = offset
    }

    mutating func next() -> Int? {
        if left == 0 {
            guard let byte = reader.byte(offset) else { return nil }
            if byte == 0xFF {
                guard reader.byte(offset + 1) == 0 else { return nil }
                offset += 1
            }
            offset += 1
            current = Int(byte)
            left = 8
        }
        left -= 1
        return current >> left & 1
    }

    mutating func number(_ count: Int) -> Int? {
        var value = 0
        for _ in 0..<count {
            guard let bit = next() else { return nil }
            value = value << 1 | bit
        }
        return value
    }

    mutating func skip(_ count: Int) -> Bool { number(count) != nil }

    /// Continues after the restart marker; false if the next marker is not one.
    mutating func restart() -> Bool {
        left = 0
        while reader.byte(offset) == 0xFF, reader.byte(offset + 1) == 0xFF { offset += 1 }
        guard reader.byte(offset) == 0xFF, let marker = reader.byte(offset + 1), (0xD0...0xD7).contains(marker) else {
            return false
        }
        offset += 2
        return true
    }
}
