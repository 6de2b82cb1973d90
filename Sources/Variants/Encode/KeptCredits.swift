/// The author and owner of a picture, which `keep=copyright` keeps.
struct KeptCredits {
    /// EXIF that contains only Artist and Copyright (TIFF 6.0 §8). nil if both are missing.
    var exif: [UInt8]?
    /// XMP that contains only `dc:creator`, `dc:rights` and `photoshop:Credit`. nil if all are missing.
    var xmp: [UInt8]?

    /// - Parameters:
    ///   - tiff: EXIF or a TIFF file. Its strings are used for fields that are missing from XMP.
    ///   - packet: the XMP packet.
    init(_ tiff: TIFFHeader?, xmp packet: [UInt8]) {
        let texts = [0x013B, 0x8298].map { tag in tiff?.text(tag, limit: 4096).map { [UInt8]($0.utf8) } }
        if texts != [nil, nil] { exif = Self.exif(artist: texts[0], copyright: texts[1]) }

        let core = "http://purl.org/dc/elements/1.1/"
        let creators = Self.values("creator", core, packet) ?? texts[0].map { [Self.escaped($0)] } ?? []
        let rights = Self.values("rights", core, packet)?.first ?? texts[1].map(Self.escaped)
        let credit = Self.values("Credit", "http://ns.adobe.com/photoshop/1.0/", packet)?.first
        guard !creators.isEmpty || rights != nil || credit != nil else { return }
        func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }
        var body = ""
        if !creators.isEmpty {
            let items = creators.map { "<rdf:li>\(text($0))</rdf:li>" }.joined()
            body += "<dc:creator><rdf:Seq>\(items)</rdf:Seq></dc:creator>"
        }
        if let rights {
            body += "<dc:rights><rdf:Alt><rdf:li xml:lang=\"x-default\">\(text(rights))</rdf:li></rdf:Alt></dc:rights>"
        }
        if let credit { body += "<photoshop:Credit>\(text(credit))</photoshop:Credit>" }
        xmp = [UInt8](
            """
            <x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">\
            <rdf:Description rdf:about="" xmlns:dc="\(core)" xmlns:photoshop="http://ns.adobe.com/photoshop/1.0/">\
            \(body)</rdf:Description></rdf:RDF></x:xmpmeta>
            """.utf8)
    }

    /// Returns the strings of a property in their XML form, one per array item. Returns nil if there are no strings.
    private static func values(_ name: String, _ namespace: String, _ xmp: [UInt8]) -> [[UInt8]]? {
        for (_, range) in KeptBlobs.properties(name, namespace, of: xmp) {
            // If there is no markup, the value is a single string. Otherwise, each string is between the ">" of a tag
            // and the next "<".
            let parts = xmp[range].split(separator: UInt8(ascii: "<"))
            let isText = !xmp[range].contains(UInt8(ascii: "<"))
            let texts = parts.prefix(64).map { part -> [UInt8] in
                let text = isText ? part : part.drop { $0 != UInt8(ascii: ">") }.dropFirst()
                return Array(text.drop { $0 <= 0x20 }.reversed().drop { $0 <= 0x20 }.reversed())
            }.filter { !$0.isEmpty }
            if !texts.isEmpty { return texts }
        }
        return nil
    }

    private static func escaped(_ text: [UInt8]) -> [UInt8] {
        text.flatMap { $0 == 0x26 ? [UInt8]("&amp;".utf8) : $0 == 0x3C ? [UInt8]("&lt;".utf8) : [$0] }
    }

    private static func exif(artist: [UInt8]?, copyright: [UInt8]?) -> [UInt8] {
        let entries = [(0x013B, artist), (0x8298, copyright)].compactMap { tag, text in text.map { (tag, $0 + [0]) } }
        var directory: [UInt8] = Bytes.bigEndian(entries.count, 2)
        var data: [UInt8] = []
        let start = 8 + 2 + entries.count * 12 + 4
        for (tag, text) in entries {
            directory += Bytes.bigEndian(tag, 2) + Bytes.bigEndian(2, 2) + Bytes.bigEndian(text.count)
            // Values of up to four bytes are in the entry itself. Longer values begin at even offsets.
            if text.count <= 4 {
                directory += text + [UInt8](repeating: 0, count: 4 - text.count)
            } else {
                directory += Bytes.bigEndian(start + data.count)
                data += text + (text.count % 2 == 1 ? [0] : [])
            }
        }
        return [UInt8]("MM\0*".utf8) + Bytes.bigEndian(8) + directory + [0, 0, 0, 0] + data
    }
}
