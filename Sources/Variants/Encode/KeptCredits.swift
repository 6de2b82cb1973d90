/// The credits of a picture, which every output keeps by default: author, copyright, license, and whether the picture
/// was generated. Each is nil if the original has none of them, or if the output cannot hold it.
struct KeptCredits {
    /// EXIF that contains only Artist and Copyright (TIFF 6.0 §8).
    var exif: [UInt8]?
    /// IIM that contains only By-line, Credit and Copyright Notice (2:80, 2:110 and 2:116).
    var iim: [UInt8]?
    /// The properties of `XMPCredits`.
    var xmp: [UInt8]?
    /// XMP's description of what the output holds in no other place and the original's XMP lacks.
    var missing: String?

    /// The maximum size of all credits in bytes.
    static let limit = 8000
    /// The maximum size of EXIF, IIM or XMP in bytes that is read. The rest of longer metadata is ignored.
    static let inputLimit = 4 << 20
    /// The maximum size of the data sets of IIM in bytes.
    private static let iimLimit = 3000

    /// - Parameters:
    ///   - tiff: EXIF or a TIFF file.
    ///   - packet: the XMP packet.
    ///   - format: the format of the output. GIF holds XMP, JPEG and TIFF hold all three, and other formats hold EXIF
    ///     and XMP.
    init(_ tiff: TIFFHeader?, iim: IIM?, xmp packet: [UInt8], for format: ImageFormat) {
        // The editor's copyright may follow the photographer's (Exif 3.0 §4.6.4).
        let (artist, rights) = (tiff?.texts(0x013B).prefix(1) ?? [], tiff?.texts(0x8298).prefix(2) ?? [])
        var added: [XMPCredits.Property] = []
        func add(_ artists: some Sequence<String>, _ rights: some Sequence<String>, _ credit: String? = nil) {
            func items(_ texts: some Sequence<String>, _ attributes: String = "") -> String {
                texts.map(XMPCredits.written).filter { !$0.isEmpty }
                    .map { "<rdf:li\(attributes)>\($0)</rdf:li>" }.joined()
            }
            let (people, owners) = (items(artists), items(rights.prefix(1), " xml:lang=\"x-default\""))
            if !people.isEmpty { added.append(.init(name: "dc:creator", content: "<rdf:Seq>\(people)</rdf:Seq>")) }
            if !owners.isEmpty { added.append(.init(name: "dc:rights", content: "<rdf:Alt>\(owners)</rdf:Alt>")) }
            if let credit { added.append(.init(name: "photoshop:Credit", content: XMPCredits.written(credit))) }
        }
        if format == .gif {
            add(artist, rights.isEmpty ? [] : [rights.filter { $0 != " " }.joined(separator: "; ")])
        } else if !artist.isEmpty || !rights.isEmpty {
            exif = Self.exif(artist, rights)
        }
        if let iim {
            if format.encoder?.holds.contains(.iptc) == true {
                self.iim = Self.credits(of: iim).bytes
            } else {
                add(iim.texts(IIM.creator).prefix(16), iim.texts(IIM.copyright), iim.texts(IIM.credit).first)
            }
        }
        let own = XMPCredits.properties(of: packet)
        var seen = Set(own.map(\.name))
        let lacking = added.filter { seen.insert($0.name).inserted }
        let room = Self.limit - (exif?.count ?? 0) - (self.iim?.count ?? 0)
        missing = Self.description(lacking, room: Self.limit)
        guard let description = Self.description(own + lacking, room: room) else { return }
        xmp = [UInt8](
            """
            <x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="\(XMPCredits.rdf)">\(description)</rdf:RDF></x:xmpmeta>
            """.utf8)
    }

    /// Returns `rdf:Description` with as many properties as fit in `room` bytes. Returns nil if no property fits.
    private static func description(_ properties: [XMPCredits.Property], room: Int) -> String? {
        var (names, body) = ("", "")
        var room = room - 200
        for space in XMPCredits.namespaces {
            var name = " xmlns:\(space.prefix)=\"\(space.uri)\""
            for property in properties where property.prefix == space.prefix {
                let text = property.text
                guard name.utf8.count + text.utf8.count <= room else { continue }
                room -= name.utf8.count + text.utf8.count
                names += name
                body += text
                name = ""
            }
        }
        return body.isEmpty ? nil : "<rdf:Description rdf:about=\"\"\(names)>\(body)</rdf:Description>"
    }

    private static func credits(of iim: IIM) -> IIM {
        var sets: [IIM.DataSet] = []
        var size = 0
        for number in [IIM.copyright, IIM.creator, IIM.credit] {
            for text in iim.texts(number).map(XMPCredits.cut)
            where !text.isEmpty && size + text.utf8.count <= iimLimit {
                sets.append((2, number, [UInt8](text.utf8)))
                size += text.utf8.count + 5
            }
        }
        if sets.isEmpty { return IIM([]) }
        // The application record begins with its version. The envelope declares UTF-8 (ISO 2022: ESC % G).
        let isASCII = sets.allSatisfy { $0.data.allSatisfy { $0 < 0x80 } }
        return IIM((isASCII ? [] : [(1, 90, [0x1B, 0x25, 0x47])]) + [(2, 0, [0, 4])] + sets)
    }

    private static func exif(_ artist: ArraySlice<String>, _ rights: ArraySlice<String>) -> [UInt8]? {
        let texts = [(0x013B, artist), (0x8298, rights)].map { tag, texts in
            (tag, texts.map { $0 == " " ? $0 : XMPCredits.cut($0) }.joined(separator: "\0"))
        }
        guard texts.contains(where: { !$0.1.allSatisfy { $0 == " " || $0 == "\0" } }) else { return nil }
        return ([UInt8]("MM\0*".utf8) + Bytes.bigEndian(8)).withUnsafeBytes { header in
            TIFFHeader(ByteReader(header))?.adding(
                texts.filter { !$0.1.isEmpty }.map { ($0, 2, [UInt8]($1.utf8) + [0]) })
        }
    }
}

extension TIFFHeader {
    /// Returns the texts of an ASCII entry, which are separated by NUL. A missing text before another one is a space.
    fileprivate func texts(_ tag: Int) -> [String] {
        guard let entry = entry(tag), [2, 129].contains(reader.uint16(entry + 2, order)), let count = count(entry),
            let place = place(entry, bytes: count)
        else { return [] }
        let block = reader.part(place, min(count, 8192))
        let texts = block.all.split(separator: 0, maxSplits: 2).prefix(2).map { part in
            ByteReader(UnsafeRawBufferPointer(rebasing: part)).text(0, limit: 4096)
        }
        if texts.count == 2, texts[0] == nil, let editor = texts[1] { return [" ", editor] }
        return texts.compactMap(\.self)
    }

    /// An entry with a value of bytes: ASCII (type 2) or UNDEFINED (type 7), or of one SHORT (type 3).
    typealias Entry = (tag: Int, type: Int, value: [UInt8])

    /// Returns the file with entries added to the first directory, which moves to the end of the file. The file may end
    /// after its header. BigTIFF is not supported.
    func adding(_ added: [Entry]) -> [UInt8] {
        let (count, start) = entries(first) ?? (0, 0)
        let length = 2 + (count + added.count) * 12
        var file = [UInt8](reader.all) + (reader.count % 2 == 1 ? [0] : [])
        var data: [UInt8] = count > 0 ? [UInt8](reader.part(start + count * 12, 4).all) : [0, 0, 0, 0]
        var entries = (0..<count).map { [UInt8](reader.part(start + $0 * 12, 12).all) }
        for (tag, type, value) in added {
            let head = bytes(tag, 2) + bytes(type, 2) + bytes(type == 3 ? 1 : value.count, 4)
            // Values of up to four bytes are in the entry itself. Longer values begin at even offsets.
            if value.count <= 4 {
                entries.append(head + value + [UInt8](repeating: 0, count: 4 - value.count))
            } else {
                entries.append(head + bytes(file.count + length + data.count, 4))
                data += value + (value.count % 2 == 1 ? [0] : [])
            }
        }
        func tag(_ entry: [UInt8]) -> Int { Int(entry[order == .big ? 0 : 1]) << 8 | Int(entry[order == .big ? 1 : 0]) }
        entries.sort { tag($0) < tag($1) }
        file.replaceSubrange(4..<8, with: bytes(file.count, 4))
        file += bytes(entries.count, 2) + entries.flatMap(\.self) + data
        return file
    }
}
