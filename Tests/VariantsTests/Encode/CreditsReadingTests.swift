import TestSupport
import Testing

@testable import Variants

/// Credits are read from every form of XMP and IIM, however damaged.
@Suite struct CreditsReadingTests {
    private static let head =
        "<x:xmpmeta xmlns:x='adobe:ns:meta/'><r:RDF xmlns:r='http://www.w3.org/1999/02/22-rdf-syntax-ns#'>"
    private static let names =
        "xmlns:d='http://purl.org/dc/elements/1.1/' xmlns:q=\"http://ns.useplus.org/ldf/xmp/1.0/\" "
        + "xmlns:m='http://ns.adobe.com/xap/1.0/mm/' xmlns:c='http://creativecommons.org/ns#' "
        + "xmlns:e='http://ns.adobe.com/exif/1.0/'"

    private static func packet(_ body: String, _ attributes: String = "") -> [UInt8] {
        Array("\(head)<r:Description \(names) \(attributes)>\(body)</r:Description></r:RDF></x:xmpmeta>".utf8)
    }

    private static func read(_ packet: [UInt8]) -> String { XMPCredits.properties(of: packet).map(\.text).joined() }

    @Test(arguments: [
        (
            "<d:creator>\n<r:Seq> <r:li> Ann </r:li>\n</r:Seq></d:creator>",
            "<dc:creator><rdf:Seq><rdf:li>Ann</rdf:li></rdf:Seq></dc:creator>"
        ),
        (
            "<d:creator><r:Bag><r:li>A &amp; B</r:li><r:li/></r:Bag></d:creator>",
            "<dc:creator><rdf:Bag><rdf:li>A &amp; B</rdf:li></rdf:Bag></dc:creator>"
        ),
        ("<d:rights>&#169; &#xc4;<!-- no --><![CDATA[<b>]]></d:rights>", "<dc:rights>© Ä&lt;b&gt;</dc:rights>"),
        ("<creator xmlns='http://purl.org/dc/elements/1.1/'>Ann</creator>", "<dc:creator>Ann</dc:creator>"),
        (
            "<c:license r:resource=\"https://a.example/?a&amp;b\"/>",
            "<cc:license rdf:resource=\"https://a.example/?a&amp;b\"></cc:license>"
        ),
        (
            "<q:Licensor><r:Seq><r:li r:parseType='Resource' e:GPSLatitude='1'><q:LicensorName>L</q:LicensorName>"
                + "<e:GPSLatitude>1</e:GPSLatitude></r:li><r:li q:LicensorURL='u' r:ID='x'/></r:Seq></q:Licensor>",
            "<plus:Licensor><rdf:Seq><rdf:li rdf:parseType=\"Resource\"><plus:LicensorName>L</plus:LicensorName></rdf:li>"
                + "<rdf:li plus:LicensorURL=\"u\"></rdf:li></rdf:Seq></plus:Licensor>"
        ),
        // An ingredient is another picture.
        (
            "<m:Pantry><r:Bag><r:li><r:Description><d:creator>No</d:creator></r:Description></r:li></r:Bag></m:Pantry>",
            ""
        ),
        (
            "<d:rights></d:rights><d:rights> </d:rights><d:title>No</d:title><d:rights>Yes</d:rights>",
            "<dc:rights>Yes</dc:rights>"
        ),
        ("<d:rights>a&unknown;b\u{1}c</d:rights>", "<dc:rights>a&amp;unknown;bc</dc:rights>"),
        (
            "<d:rights><r:Alt><r:li xml:lang='de' e:x='1'>Ja</r:li></r:Alt></d:rights>",
            "<dc:rights><rdf:Alt><rdf:li xml:lang=\"de\">Ja</rdf:li></rdf:Alt></dc:rights>"
        ),
        // A markup character and the next scalar can be one character.
        ("<d:rights>a&lt;&#x200D;b&amp;&#x301;</d:rights>", "<dc:rights>a&lt;\u{200D}b&amp;\u{301}</dc:rights>"),
    ]) func `every form of XMP is read`(body: String, expected: String) {
        let packet = Self.packet(body)
        #expect(Self.read(packet) == expected)
        for isBig in [true, false] {
            let units = String(decoding: packet, as: UTF8.self).utf16
            let wide = units.flatMap { isBig ? [UInt8($0 >> 8), UInt8($0 & 255)] : [UInt8($0 & 255), UInt8($0 >> 8)] }
            #expect(Self.read(wide) == expected)
            #expect(Self.read((isBig ? [0xFE, 0xFF] : [0xFF, 0xFE]) + wide) == expected)
        }
        for length in 0..<packet.count { _ = XMPCredits.properties(of: Array(packet[..<length])) }
    }

    @Test func `attributes are read`() {
        #expect(
            Self.read(Self.packet("", "d:creator='A &quot;B&quot;' e:GPSLatitude='1'"))
                == "<dc:creator>A &quot;B&quot;</dc:creator>")
    }

    @Test func `hostile packets are read in bounded time, and little is written`() {
        let started = ContinuousClock.now
        let bomb = "<!DOCTYPE x [<!ENTITY a 'zzzzzzzzzz'><!ENTITY b '&a;&a;&a;'>]>"
        let many = 100_000
        let bodies = [
            String(repeating: "<d:creator>", count: many), String(repeating: "<r:Description>", count: many),
            "<d:creator><r:Seq>" + String(repeating: "<r:li>Ann</r:li>", count: many) + "</r:Seq></d:creator>",
            "<d:rights>" + String(repeating: "Ä&amp;", count: many) + "</d:rights>",
            (0..<many).map { "<q:P\($0)>text</q:P\($0)>" }.joined(), String(repeating: "<!--", count: many),
            "<d:rights>" + String(repeating: "<![CDATA[a]]>", count: many) + "</d:rights>",
            "<d:rights \(String(repeating: "a='b' ", count: many))>x</d:rights>",
            "<d:rights>e" + String(repeating: "\u{301}", count: many) + "</d:rights>",
        ]
        for body in bodies {
            let packet = Array(bomb.utf8) + Self.packet(body + "<q:T>&b;</q:T>")
            let credits = KeptCredits(nil, iim: nil, xmp: packet, for: .webp)
            #expect(credits.xmp?.count ?? 0 <= KeptCredits.limit)
            #expect(credits.xmp.map { !$0.contains("zzzz".utf8) } ?? true)
        }
        #expect(ContinuousClock.now - started < .seconds(60))
    }

    @Test func `long texts are cut at a character, and everything fits in 8 kB`() throws {
        let long = String(repeating: "Ä", count: 3000)
        let items = (0..<40).map { "<q:P\($0)>\(long)</q:P\($0)>" }.joined()
        let sets = (0..<40).map { IIM.DataSet((2, [80, 110, 116][$0 % 3], Array(long.utf8))) }
        for format in [ImageFormat.jpeg, .webp, .gif, .tiff] {
            let credits = CameraText.block(artist: long, copyright: long).withUnsafeBytes { exif in
                KeptCredits(
                    TIFFHeader(ByteReader(exif)), iim: IIM(sets),
                    xmp: Self.packet("<d:rights>x\(long)</d:rights>" + items),
                    for: format)
            }
            let all = [credits.exif, credits.iim, credits.xmp].compactMap(\.self)
            #expect(all.reduce(0) { $0 + $1.count } <= KeptCredits.limit)
            let xmp = String(validating: try #require(credits.xmp), as: UTF8.self)
            #expect(xmp?.contains("<dc:rights>x" + String(repeating: "Ä", count: 499) + "</dc:rights>") == true)
            if format != .gif {
                let exif = try #require(credits.exif)
                exif.withUnsafeBytes {
                    #expect(TIFFHeader(ByteReader($0))?.text(0x013B, limit: 9999) == String(repeating: "Ä", count: 500))
                }
            }
        }
    }

    @Test func `blank texts are no credits, and a cut text stays UTF-8`() throws {
        let blank = CameraText.block(artist: "\t\n", copyright: " ").withUnsafeBytes { exif in
            KeptCredits(TIFFHeader(ByteReader(exif)), iim: IIM([(2, 80, [0x20, 0x09])]), xmp: [], for: .jpeg)
        }
        #expect(blank.exif == nil && blank.iim?.isEmpty != false && blank.xmp == nil)
        // 4,096 bytes end within the last character.
        let long = Array("x".utf8) + Array(String(repeating: "Ä", count: 3000).utf8)
        let text = long.withUnsafeBytes { ByteReader($0).text(0, limit: 4096) }
        #expect(text == "x" + String(repeating: "Ä", count: 2047))
    }

    @Test func `the copyright of an editor stays`() {
        for isBigEndian in [true, false] {
            for (given, expected) in [
                ("Ann\0Ed", "Ann\0Ed\0"), (" \0Ed", " \0Ed\0"), ("Ann\0", "Ann\0"), ("Ann\0 ", "Ann\0"),
            ] {
                let block = CameraText.block(artist: "", copyright: given, isBigEndian: isBigEndian)
                let exif = block.withUnsafeBytes { bytes in
                    KeptCredits(TIFFHeader(ByteReader(bytes)), iim: nil, xmp: [], for: .png).exif ?? []
                }
                let found = exif.withUnsafeBytes { TIFFHeader(ByteReader($0))?.block(0x8298).map { [UInt8]($0.all) } }
                #expect(found == Array(expected.utf8))
            }
        }
    }

    @Test func `IIM is read from several segments, however damaged`() throws {
        let sets: [IIM.DataSet] = [(2, 80, Array("Ann".utf8)), (2, 116, [0xA9, 0x20, 0x41])]
        let iim = try #require(IIM(sets).bytes)
        let whole = IIM.segment(iim)
        let mark = Array("Photoshop 3.0\0".utf8)
        let other: [UInt8] = Array("8BIM\u{4}\u{C}\u{3}abc".utf8) + [0, 0, 0, 3, 1, 2, 3, 0]
        let resources: [UInt8] = other + whole.dropFirst(mark.count)
        func segment(_ body: [UInt8]) -> [UInt8] { [0xFF, 0xED, 0, UInt8(body.count + 2)] + body }
        let plain = try RenderFixture.jpeg(RenderFixture.gradientImage(8, 8))
        // A second segment contains the rest of the resource.
        let segments: [UInt8] = segment(mark + resources[..<40]) + segment(mark + resources[40...])
        let jpeg: [UInt8] = plain[..<2] + segments + plain[2...]
        let found = jpeg.withUnsafeBytes { IIM.resources(ofJPEG: ByteReader($0)) }
        let read = try #require(found).withUnsafeBytes { IIM(ByteReader($0)) }
        #expect(read.texts(80) == ["Ann"] && read.texts(116) == ["© A"])
        for at in resources.indices {
            for value: UInt8 in [0, 0x1C, 0x7F, 0xFF] {
                var damaged = resources
                damaged[at] = value
                damaged.withUnsafeBytes { _ = IIM(ByteReader($0)).texts(80) }
                damaged[..<at].withUnsafeBytes { _ = IIM(ByteReader($0)).texts(80) }
            }
        }
    }
}

private enum CameraText {
    static func block(artist: String, copyright: String, isBigEndian: Bool = true) -> [UInt8] {
        let camera = CameraEXIF(isBigEndian: isBigEndian)
        return camera.block([camera.text(0x013B, artist), camera.text(0x8298, copyright)])
    }
}
