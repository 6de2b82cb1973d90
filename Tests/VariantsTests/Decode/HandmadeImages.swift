import TestSupport

/// Smallest files of each format, put together byte by byte: enough of a header for the probe, not always a picture.
enum HandmadeImages {
    static func big(_ value: Int, _ bytes: Int) -> [UInt8] {
        (0..<bytes).reversed().map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
    }

    static func little(_ value: Int, _ bytes: Int) -> [UInt8] { big(value, bytes).reversed() }

    static func ascii(_ text: String) -> [UInt8] { Array(text.utf8) }

    // MARK: JPEG

    static func segment(_ marker: UInt8, _ data: [UInt8]) -> [UInt8] { [0xFF, marker] + big(data.count + 2, 2) + data }

    static func jpeg(width: Int, height: Int, scans: Int = 1, extra: [UInt8] = []) -> [UInt8] {
        let frame = segment(0xC0, [8] + big(height, 2) + big(width, 2) + [1, 1, 0x11, 0])
        let scan = segment(0xDA, [1, 1, 0, 0, 63, 0]) + [0x12, 0xFF, 0x00, 0x34, 0xFF, 0xD0, 0x56]
        return [0xFF, 0xD8] + extra + frame + Array(repeating: scan, count: scans).joined() + [0xFF, 0xD9]
    }

    /// An EXIF block with nothing but an orientation.
    static func exif(_ orientation: Int, bigEndian: Bool = true) -> [UInt8] {
        let number = bigEndian ? big : little
        return ascii(bigEndian ? "MM" : "II") + number(42, 2) + number(8, 4) + number(1, 2)
            + number(0x0112, 2) + number(3, 2) + number(1, 4) + number(orientation, 2) + [0, 0] + number(0, 4)
    }

    // MARK: PNG

    static func pngChunk(_ type: String, _ data: [UInt8]) -> [UInt8] {
        big(data.count, 4) + ascii(type) + data + [0, 0, 0, 0]
    }

    static func png(width: Int, height: Int, color: UInt8 = 2, extra: [UInt8] = []) -> [UInt8] {
        [0x89, 0x50, 0x4E, 0x47, 13, 10, 26, 10]
            + pngChunk("IHDR", big(width, 4) + big(height, 4) + [8, color, 0, 0, 0]) + extra
            + pngChunk("IDAT", [1, 2, 3]) + pngChunk("IEND", [])
    }

    // MARK: WebP

    static func webp(_ chunks: [(String, [UInt8])]) -> [UInt8] {
        var body: [UInt8] = []
        for (type, data) in chunks {
            body += ascii(type) + little(data.count, 4) + data
            if data.count % 2 == 1 { body.append(0) }
        }
        return ascii("RIFF") + little(body.count + 4, 4) + ascii("WEBP") + body
    }

    static func vp8x(_ flags: UInt8, width: Int, height: Int) -> (String, [UInt8]) {
        ("VP8X", [flags, 0, 0, 0] + little(width - 1, 3) + little(height - 1, 3))
    }

    static func vp8(width: Int, height: Int) -> (String, [UInt8]) {
        ("VP8 ", [0, 0, 0, 0x9D, 0x01, 0x2A] + little(width, 2) + little(height, 2))
    }

    static func vp8l(width: Int, height: Int, alpha: Bool) -> (String, [UInt8]) {
        ("VP8L", [0x2F] + little((width - 1) | (height - 1) << 14 | (alpha ? 1 << 28 : 0), 4))
    }

    // MARK: GIF

    static func gif(width: Int, height: Int, frames: [(Int, Int, Int, Int)], transparent: Bool = false) -> [UInt8] {
        let control: [UInt8] = [0x21, 0xF9, 4, transparent ? 1 : 0, 0, 0, 0, 0]
        let images = frames.flatMap { left, top, width, height -> [UInt8] in
            control + [0x2C] + little(left, 2) + little(top, 2) + little(width, 2) + little(height, 2)
                + [0, 2, 2, 0x44, 0x01, 0]
        }
        return ascii("GIF89a") + little(width, 2) + little(height, 2) + [0x80, 0, 0] + [0, 0, 0, 255, 255, 255]
            + images + [0x3B]
    }

    // MARK: TIFF

    /// One directory per page; the last one points to `loop` if given.
    static func tiff(
        width: Int, height: Int, samples: Int = 3, orientation: Int = 1, pages: Int = 1, loop: Int = 0,
        bigEndian: Bool = false
    ) -> [UInt8] {
        let number = bigEndian ? big : little
        var bytes = ascii(bigEndian ? "MM" : "II") + number(42, 2) + number(8, 4)
        for page in 1...pages {
            let entries = [(256, 4, width), (257, 4, height), (262, 3, 2), (274, 3, orientation), (277, 3, samples)]
            bytes += number(entries.count, 2)
            for (tag, type, value) in entries {
                let field = type == 3 ? number(value, 2) + [0, 0] : number(value, 4)
                bytes += number(tag, 2) + number(type, 2) + number(1, 4) + field
            }
            bytes += number(page < pages ? bytes.count + 4 : loop, 4)
        }
        return bytes
    }

    /// A BigTIFF with offsets and counts of eight bytes.
    static func bigTIFF(width: Int, height: Int, pages: Int = 1, bigEndian: Bool = false) -> [UInt8] {
        let number = bigEndian ? big : little
        var bytes = ascii(bigEndian ? "MM" : "II") + number(43, 2) + number(8, 2) + [0, 0] + number(16, 8)
        for page in 1...pages {
            let entries = [(256, 16, width), (257, 4, height), (262, 3, 2), (274, 3, 6), (277, 3, 4)]
            bytes += number(entries.count, 8)
            for (tag, type, value) in entries {
                let field = number(value, type == 3 ? 2 : type == 4 ? 4 : 8)
                bytes += number(tag, 2) + number(type, 2) + number(1, 8) + field
                bytes += [UInt8](repeating: 0, count: 8 - field.count)
            }
            bytes += number(page < pages ? bytes.count + 8 : 0, 8)
        }
        return bytes
    }

    // MARK: AVIF, HEIF

    static func box(_ type: String, _ data: [UInt8]) -> [UInt8] { big(data.count + 8, 4) + ascii(type) + data }

    static func heif(
        brand: String = "avif", width: Int, height: Int, turns: UInt8 = 0, alpha: Bool = false, profile: Int = 0
    ) -> [UInt8] {
        var properties = box("ispe", [0, 0, 0, 0] + big(width, 4) + big(height, 4)) + box("irot", [turns])
        properties += box("colr", ascii("prof") + [UInt8](repeating: 0, count: profile))
        let auxiliary = ascii("urn:mpeg:mpegB:cicp:systems:auxiliary:alpha") + [0]
        if alpha { properties += box("auxC", [0, 0, 0, 0] + auxiliary) }
        let association = box("ipma", [0, 0, 0, 0] + big(1, 4) + big(7, 2) + [3, 0x81, 0x82, 0x03])
        let meta = box("pitm", [0, 0, 0, 0] + big(7, 2)) + box("iprp", box("ipco", properties) + association)
        return box("ftyp", ascii(brand) + [0, 0, 0, 0] + ascii("mif1")) + box("meta", [0, 0, 0, 0] + meta)
    }

    /// A picture with a thumbnail, which is another item with a different size.
    static func heif(width: Int, height: Int, thumbnail: (width: Int, height: Int)) -> [UInt8] {
        let sizes = [thumbnail, (width, height)].map { box("ispe", [0, 0, 0, 0] + big($0.0, 4) + big($0.1, 4)) }
        // Item 8 is the thumbnail, item 7 the picture.
        let association = box("ipma", [0, 0, 0, 0] + big(2, 4) + big(8, 2) + [1, 0x81] + big(7, 2) + [1, 0x82])
        let meta =
            box("pitm", [0, 0, 0, 0] + big(7, 2))
            + box("iref", [0, 0, 0, 0] + box("thmb", big(8, 2) + big(1, 2) + big(7, 2)))
            + box("iprp", box("ipco", sizes[0] + sizes[1]) + association)
        return box("ftyp", ascii("heic") + [0, 0, 0, 0] + ascii("mif1")) + box("meta", [0, 0, 0, 0] + meta)
    }

    /// One well-formed example of every format that the probe parses.
    static let all: [[UInt8]] = [
        jpeg(width: 640, height: 480, scans: 3, extra: segment(0xE1, ascii("Exif\0\0") + exif(6))),
        png(width: 31, height: 17, color: 6, extra: pngChunk("eXIf", exif(3, bigEndian: false))),
        webp([vp8x(0x1A, width: 9, height: 8), ("ANMF", [1, 2, 3]), ("ANMF", [4]), ("EXIF", exif(8))]),
        webp([vp8(width: 100, height: 50)]),
        webp([vp8l(width: 100, height: 50, alpha: true)]),
        gif(width: 10, height: 10, frames: [(0, 0, 10, 10), (5, 5, 20, 2)], transparent: true),
        tiff(width: 300, height: 200, samples: 4, orientation: 5, pages: 3),
        tiff(width: 300, height: 200, bigEndian: true),
        heif(width: 400, height: 300, turns: 1, alpha: true, profile: 12),
        bigTIFF(width: 300, height: 200, pages: 3),
        JXLHeaderTests.complete(orientation: 6),
        [0, 0, 0, 12] + ascii("JXL ") + [13, 10, 0x87, 10] + box("jxlc", JXLHeaderTests.complete(orientation: 1))
            + box("Exif", [0, 0, 0, 0] + CameraEXIF().complete),
        jpeg(width: 64, height: 48, extra: segment(0xE1, ascii("Exif\0\0") + CameraEXIF().complete)),
        png(width: 31, height: 17, extra: pngChunk("eXIf", CameraEXIF(isBigEndian: false).complete)),
        HandmadeBMP(header: 108, bits: 16, compression: 3, masks: [0xF800, 0x7E0, 0x1F, 0]).file,
        ascii("<!DOCTYPE svg [<!ENTITY a 'b'>]><svg width='9' viewBox='0 0 3 4'><g a='&a;'></g></svg>"),
        HandmadeBMP.icon([HandmadeBMP().bitmap(isIcon: true), png(width: 300, height: 200)]),
        JP2Tests.codestream(300, 200, tile: (64, 64), precincts: [0x77, 0x88]),
        JP2Tests.file(box("colr", [1, 0, 0] + big(16, 4)), JP2Tests.codestream(300, 200, components: 4)),
    ]
}
