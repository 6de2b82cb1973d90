import TestSupport
import Testing

@testable import Variants

/// Kept EXIF and XMP describe the output.
@Suite struct KeptMetadataTests {
    private static let thumbnail: [UInt8] = {
        let start: [UInt8] = [0xFF, 0xD8, 0xFF, 0xDB, 0, 4, 1, 2, 0xFF, 0xDA, 0, 2]
        return start + [UInt8](repeating: 0x5A, count: 90) + [0xFF, 0xD9]
    }()

    /// EXIF with sizes, an area, a preview in the maker's note, and a thumbnail in IFD1, as a JPEG or as strips.
    private static func exif(isBigEndian: Bool, isStrip: Bool = false) -> [UInt8] {
        func number(_ value: Int, _ count: Int) -> [UInt8] {
            isBigEndian ? HandmadeImages.big(value, count) : HandmadeImages.little(value, count)
        }
        func directory(_ entries: [(Int, Int, Int, Int)], next: Int) -> [UInt8] {
            var bytes = number(entries.count, 2)
            for (tag, type, count, value) in entries {
                bytes += number(tag, 2) + number(type, 2) + number(count, 4)
                bytes += type == 3 && count == 1 ? number(value, 2) + [0, 0] : number(value, 4)
            }
            return bytes + number(next, 4)
        }
        let note = [UInt8]("Maker".utf8) + thumbnail + [UInt8]("note".utf8)
        let (ifd0, photo) = (8, 8 + 2 + 5 * 12 + 4)
        let make = photo + 2 + 5 * 12 + 4
        let noteAt = make + 6
        let ifd1 = noteAt + note.count
        let data = ifd1 + 2 + 3 * 12 + 4
        let pixels = isStrip ? [UInt8](repeating: 0x5A, count: 90) : thumbnail
        var bytes: [UInt8] = isBigEndian ? [0x4D, 0x4D] : [0x49, 0x49]
        bytes += number(42, 2) + number(ifd0, 4)
        bytes += directory(
            [(0x100, 4, 1, 400), (0x101, 3, 1, 300), (0x10F, 2, 6, make), (0x112, 3, 1, 6), (0x8769, 4, 1, photo)],
            next: ifd1)
        let noteEntry = (0x927C, 7, note.count, noteAt)
        bytes += directory(
            [(0x8827, 3, 1, 800), (0x9214, 3, 2, 0x0010_0020), noteEntry, (0xA002, 4, 1, 400), (0xA003, 3, 1, 300)],
            next: 0)
        bytes += [UInt8]("Canon\0".utf8) + note
        let places =
            isStrip ? [(0x111, 4, 1, data), (0x117, 4, 1, 90)] : [(0x201, 4, 1, data), (0x202, 4, 1, pixels.count)]
        bytes += directory([(0x103, 3, 1, isStrip ? 1 : 6)] + places, next: 0)
        return bytes + pixels
    }

    private static let size = PixelSize(width: 120, height: 90)

    @Test(arguments: [false, true], [false, true])
    func `EXIF loses its thumbnail, previews and areas, and has the variant's size`(
        isBigEndian: Bool, isStrip: Bool
    ) throws {
        let whole = Self.exif(isBigEndian: isBigEndian, isStrip: isStrip)
        for prefix in [[], KeptBlobs.exifPrefix] {
            let kept = try #require(KeptBlobs.exif(prefix + whole, of: Self.size, isUpright: true))
            #expect(!kept.contains([UInt8](repeating: 0x5A, count: 20)))
            #expect(kept.count < whole.count - 120)
            kept.withUnsafeBytes { bytes in
                guard let tiff = TIFFHeader(ByteReader(bytes)), let photo = tiff.value(0x8769) else {
                    Issue.record("no EXIF")
                    return
                }
                #expect(tiff.chain.count == 1 && tiff.orientation == 1 && tiff.text(0x10F) == "Canon")
                #expect(tiff.value(0x100) == 120 && tiff.value(0x101) == 90)
                #expect(tiff.value(0xA002, in: photo) == 120 && tiff.value(0xA003, in: photo) == 90)
                #expect(tiff.value(0x8827, in: photo) == 800 && tiff.entry(0x9214, in: photo) == nil)
                // The maker's note stays where it was, since it may refer to offsets of the block.
                let note = tiff.entry(0x927C, in: photo).flatMap { tiff.place($0, bytes: 100) } ?? 0
                #expect(bytes[note..<note + 5].elementsEqual("Maker".utf8))
            }
            let stored = try #require(KeptBlobs.exif(whole, of: Self.size, isUpright: false))
            stored.withUnsafeBytes { #expect(TIFFHeader.orientation(exif: ByteReader($0)) == 6) }
        }
    }

    @Test func `sizes that their entries cannot hold go`() throws {
        let kept = try #require(
            KeptBlobs.exif(Self.exif(isBigEndian: true), of: PixelSize(width: 70_000, height: 70_001), isUpright: true))
        kept.withUnsafeBytes { bytes in
            guard let tiff = TIFFHeader(ByteReader(bytes)), let photo = tiff.value(0x8769) else {
                Issue.record("no EXIF")
                return
            }
            #expect(tiff.value(0xA002, in: photo) == 70_000 && tiff.entry(0xA003, in: photo) == nil)
            #expect(tiff.value(0x100) == 70_000 && tiff.entry(0x101) == nil && tiff.orientation == 1)
        }
    }

    @Test func `no EXIF is too strange`() {
        for isBigEndian in [false, true] {
            let whole = Self.exif(isBigEndian: isBigEndian)
            for length in 0..<whole.count {
                _ = KeptBlobs.exif(Array(whole[..<length]), of: Self.size, isUpright: true)
                for value: UInt8 in [0, 1, 8, 0x7F, 0xFF] {
                    var bytes = whole
                    bytes[length] = value
                    _ = KeptBlobs.exif(bytes, of: Self.size, isUpright: true)
                }
            }
        }
        #expect(KeptBlobs.exif([], of: Self.size, isUpright: true) == nil)
        // An IFD1 that is IFD0, and a thumbnail that is everything.
        var loop = Self.exif(isBigEndian: false)
        loop.replaceSubrange(70..<74, with: [8, 0, 0, 0])
        #expect(KeptBlobs.exif(loop, of: Self.size, isUpright: true) != nil)
    }

    @Test(arguments: ["jpeg", "png", "webp", "avif", "jxl"])
    func `variants have no thumbnail of the original`(output: String) async throws {
        let jpeg = try RenderFixture.jpeg(RenderFixture.gradientImage(400, 300))
        let original = CameraEXIF.inserted(Self.exif(isBigEndian: true), into: jpeg)
        for steps in ["crop:100x90+0+250,", "blur:20,", ""] {
            let variant = try await RenderFixture.renderer.render(
                RenderSamples.job(original, steps + output + ":keep=exif"))
            #expect(!variant.bytes.contains([UInt8](repeating: 0x5A, count: 20)))
            let header = try ImageHeader.probe(variant.bytes)
            #expect(header.orientation == 1 && header.width == variant.width)
            let big = HandmadeImages.big(variant.width, 4)
            #expect(variant.bytes.contains([0xA0, 2, 0, 4, 0, 0, 0, 1] + big))
        }
    }

    @Test func `XMP loses what shows or measures the original`() {
        func packet(_ attributes: String, _ elements: String) -> [UInt8] {
            Array(
                """
                <x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">\
                <rdf:Description xmlns:xmp="http://ns.adobe.com/xap/1.0/" xmlns:t='http://ns.adobe.com/tiff/1.0/' \
                xmlns:exif="http://ns.adobe.com/exif/1.0/" xmlns:xmpGImg="http://ns.adobe.com/xap/1.0/g/img/" \
                xmlns:mwg-rs="http://www.metadataworkinggroup.com/schemas/regions/" \
                xmlns:dcterms="http://purl.org/dc/terms/" t:Make="Canon"\(attributes)>\(elements)<xmp:Rating>3</xmp:Rating>\
                </rdf:Description></rdf:RDF></x:xmpmeta>
                """.utf8)
        }
        let full = packet(
            " t:ImageWidth=\"400\" exif:PixelXDimension='400' dcterms:provenance=\"self#jumbf=c2pa\"",
            "<t:ImageLength>300</t:ImageLength><xmp:Thumbnails><rdf:Alt><rdf:li rdf:parseType=\"Resource\">"
                + "<xmpGImg:image>/9j/4AAQ</xmpGImg:image></rdf:li></rdf:Alt></xmp:Thumbnails>"
                + "<mwg-rs:Regions rdf:parseType=\"Resource\"><exif:PixelYDimension>1</exif:PixelYDimension></mwg-rs:Regions>"
                + "<exif:SubjectArea/>")
        #expect(KeptBlobs.xmp(full, isUpright: true) == packet("   ", ""))
        for length in 0..<full.count { _ = KeptBlobs.xmp(Array(full[..<length]), isUpright: true) }
        let cut = KeptBlobs.xmp(packet("", "<xmp:Thumbnails><a>/9j/4AAQ"), isUpright: true)
        #expect(!cut.contains("/9j/".utf8))
    }

    @Test(arguments: ["jpeg", "png", "webp", "avif", "jxl"])
    func `where a picture was taken is kept only if the recipe says so`(output: String) async throws {
        for camera in [CameraEXIF(), CameraEXIF(isBigEndian: false)] {
            let block = camera.block(
                [camera.text(0x10F, "Canon")],
                position: [camera.text(1, "N"), camera.rationals(2, [(48, 1), (51, 1), (2991, 100)])])
            let jpeg = CameraEXIF.inserted(block, into: try RenderFixture.jpeg(RenderFixture.gradientImage(60, 40)))
            var blobs = KeptBlobs()
            blobs.xmp = Array(Self.places(Self.positions).utf8)
            let original = blobs.inserted(intoJPEG: jpeg)
            let latitude = camera.rationals(2, [(48, 1), (51, 1), (2991, 100)])
            func render(_ keep: String) async throws -> [UInt8] {
                try await RenderFixture.renderer.render(
                    RenderSamples.job(original, "thumbnail:30,\(output):keep=\(keep)")
                ).bytes
            }
            let place = Array("48,51.5N".utf8)
            for keep in ["exif", "xmp", "exif+xmp"] {
                let bytes = try await render(keep)
                #expect(!bytes.contains(latitude.data) && !bytes.contains(place), "\(keep)")
                #expect(bytes.contains(Array((keep == "xmp" ? "Rating" : "Canon").utf8)))
            }
            let all = try await render("exif+position+xmp")
            #expect(all.contains(latitude.data) && all.contains(place))
        }
    }

    private static let positions = [
        "<e:GPSLatitude>48,51.5N</e:GPSLatitude>", "<e:GPSAltitude>10/1</e:GPSAltitude>", "<e:GPSAnything/>",
        "<x:LocationCreated><a>48,51.5N</a></x:LocationCreated>", "<x:LocationShown>48,51.5N</x:LocationShown>",
        "<c:Location>48,51.5N</c:Location>", "<p:City>48,51.5N</p:City>",
    ].joined()

    private static func places(_ elements: String) -> String {
        """
        <x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">\
        <rdf:Description xmlns:e="http://ns.adobe.com/exif/1.0/" xmlns:x="http://iptc.org/std/Iptc4xmpExt/2008-02-29/" \
        xmlns:c="http://iptc.org/std/Iptc4xmpCore/1.0/xmlns/" xmlns:p="http://ns.adobe.com/photoshop/1.0/" \
        xmlns:xmp="http://ns.adobe.com/xap/1.0/">\(elements)<xmp:Rating>3</xmp:Rating></rdf:Description></rdf:RDF>\
        </x:xmpmeta>
        """
    }

    @Test func `XMP loses its positions, as attributes too`() {
        let empty = Array(Self.places("").utf8)
        #expect(KeptBlobs.xmp(Array(Self.places(Self.positions).utf8), isUpright: true) == empty)
        let attributes = Self.places("").replacing(
            "<xmp:Rating>", with: "<a e:GPSLongitude='2' e:GPSVersionID=\"2.2.0.0\"/><xmp:Rating>")
        #expect(!KeptBlobs.xmp(Array(attributes.utf8), isUpright: true).contains(Array("GPS".utf8)))
    }

    private static let credits = """
        <x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">\
        <rdf:Description xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:ps="http://ns.adobe.com/photoshop/1.0/" \
        xmlns:xmp="http://ns.adobe.com/xap/1.0/" xmp:CreatorTool="Secret" ps:Credit="Agency &amp; Co">\
        <dc:rights><rdf:Alt><rdf:li xml:lang="x-default">© 2024 Ä</rdf:li><rdf:li xml:lang="de">anders</rdf:li></rdf:Alt>\
        </dc:rights><dc:creator><rdf:Seq><rdf:li>Ann</rdf:li> <rdf:li>Bob</rdf:li></rdf:Seq></dc:creator>\
        </rdf:Description></rdf:RDF></x:xmpmeta>
        """

    @Test(arguments: ["jpeg", "png", "webp", "avif", "jxl", "gif", "tiff"])
    func `copyright, artist and credit line are kept by default, and nothing else`(output: String) async throws {
        let camera = CameraEXIF()
        let block = camera.block([
            camera.text(0x010F, "Secret"), camera.text(0x013B, "Eve <e@x>"), camera.text(0x8298, "(c) Eve & Co"),
        ])
        let jpeg = CameraEXIF.inserted(block, into: try RenderFixture.jpeg(RenderFixture.gradientImage(60, 40)))
        var blobs = KeptBlobs()
        blobs.xmp = Array(Self.credits.utf8)
        for (original, words) in [
            (jpeg, output == "gif" ? ["<rdf:li>Eve &lt;e@x&gt;</rdf:li>", "(c) Eve &amp; Co"] : []),
            (
                blobs.inserted(intoJPEG: jpeg),
                [
                    "<rdf:li>Ann</rdf:li><rdf:li>Bob</rdf:li>", ">© 2024 Ä</rdf:li>", ">anders</rdf:li>",
                    ">Agency &amp; Co</photoshop:Credit>",
                ]
            ),
        ] {
            let variant = try await RenderFixture.renderer.render(
                RenderSamples.job(original, "thumbnail:30,\(output)"))
            let text = String(decoding: variant.bytes, as: UTF8.self)
            for word in words { #expect(text.contains(word), "\(word)") }
            #expect(!text.contains("Secret"))
            if output != "gif" {
                #expect(text.contains("Eve <e@x>\0") && text.contains("(c) Eve & Co\0"))
            }
        }
        // A TIFF file's own directory has what EXIF has elsewhere.
        var tiff = HandmadeTIFF(copyright: "(c) Tim")
        tiff.entries = [256: [4], 257: [4], 258: [8], 259: [1], 262: [1], 273: [8], 277: [1], 278: [4], 279: [16]]
        let scan = try await RenderFixture.renderer.render(
            RenderSamples.job(tiff.file(Array(repeating: 9, count: 16)), output))
        let notice = output == "gif" ? ">(c) Tim</rdf:li>" : "(c) Tim\0"
        #expect(String(decoding: scan.bytes, as: UTF8.self).contains(notice))
        let plain = try RenderFixture.png(RenderFixture.gradientImage(60, 40))
        var sizes: Set<[UInt8]> = []
        for keep in ["", ":keep=none", ":keep=copyright"] {
            let variant = try await RenderFixture.renderer.render(
                RenderSamples.job(plain, "thumbnail:30,\(output)\(keep)"))
            sizes.insert(variant.bytes)
        }
        #expect(sizes.count == 1, "a picture without credits gets no metadata")
    }

    @Test func `texts of ISO 8859-1 and Windows-1252 are read`() throws {
        let tiff: [UInt8] = HandmadeTIFF(copyright: "(c) #m").file([])
        let latin = tiff.map { $0 == UInt8(ascii: "#") ? 0xC4 : $0 }
        latin.withUnsafeBytes { #expect(TIFFHeader(ByteReader($0))?.text(33_432) == "(c) Äm") }
        let quoted = tiff.map { $0 == UInt8(ascii: "#") ? 0x92 : $0 }
        quoted.withUnsafeBytes { #expect(TIFFHeader(ByteReader($0))?.text(33_432) == "(c) ’m") }
    }

    @Test func `much that is open, or says the same, takes no time`() {
        let spaces = "<a xmlns:x='http://ns.adobe.com/xap/1.0/' xmlns:t='http://ns.adobe.com/tiff/1.0/'>"
        let started = ContinuousClock.now
        for part in ["<x:Thumbnails>", "<x:Thumbnails", "<x:Thumbnails></x:Thumbnails>", " t:ImageWidth='", spaces] {
            _ = KeptBlobs.xmp(Array((spaces + String(repeating: part, count: 4000)).utf8), isUpright: true)
        }
        let whole = Self.exif(isBigEndian: true)
        // Directories that refer to each other, and entries with equal tags.
        let entry: [UInt8] = [0x92, 0x14, 0, 7, 0, 0, 0xFF, 0xFF, 0, 0, 0, 8]
        var many: [UInt8] = Array(whole[..<8]) + [0xFF, 0xFF]
        for _ in 0..<65_535 { many += entry }
        _ = KeptBlobs.exif(many + whole, of: Self.size, isUpright: true)
        many =
            Array(whole[..<8])
            + Array(repeating: [0, 1, 0x02, 0x01, 0, 4, 0, 0, 0xFF, 0xFF, 0, 8], count: 5000).flatMap { $0 }
        _ = KeptBlobs.exif(many, of: Self.size, isUpright: true)
        _ = KeptBlobs.exif(
            Array(repeating: [0xFF, 0xD8, 0xFF, 0xE0], count: 50_000).flatMap { $0 }, of: Self.size, isUpright: true)
        #expect(ContinuousClock.now - started < .seconds(60))
    }

    @Test func `with EXIF or XMP, copyright adds what they do not have`() async throws {
        var blobs = KeptBlobs()
        blobs.xmp = Array(Self.credits.utf8)
        let jpeg = try RenderFixture.jpeg(RenderFixture.gradientImage(60, 40))
        let original = blobs.inserted(intoJPEG: CameraEXIF.inserted(CameraEXIF().complete, into: jpeg))
        let variant = try await RenderFixture.renderer.render(
            RenderSamples.job(original, "webp:keep=copyright+exif"))
        let text = String(decoding: variant.bytes, as: UTF8.self)
        #expect(text.contains("Canon EOS R5") && text.contains("Agency &amp; Co") && !text.contains("Secret"))
    }
}
