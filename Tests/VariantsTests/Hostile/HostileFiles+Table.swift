import TestSupport

@testable import Variants

extension HostileFiles {
    private typealias Make = HandmadeImages
    private static let pixels = RenderLimits().pixels

    static let bombs: [File] = [
        File("a JPEG that says 65,500 × 65,500", .over("pixels", pixels)) {
            Make.jpeg(width: 65_500, height: 65_500)
        },
        File("a JPEG of 200 scans", .over("scans", 64)) { try scans(200) },
        File("a JPEG of 200 scans behind lengths of zero", .over("scans", 64)) {
            try scans(200, between: [0xFF, 0xFE, 0, 0])
        },
        File("a JPEG that repeats a scan forty times", .either) { try scans(40) },
        File("a PNG that says 2³¹ − 1 × 2³¹ − 1", .refused([.overLimit])) {
            Make.png(width: 1 << 31 - 1, height: 1 << 31 - 1)
        },
        File("a PNG of 60,000 × 60,000 zeros", .over("pixels", pixels)) { png(60_000, 60_000, zeros: 258 * 9000 + 1) },
        File("a PNG within the limits that is all zeros", .picture) { png(3000, 3000) },
        File("a small PNG whose pixels inflate to 60 MB", .either) { png(16, 16, zeros: 258 * 232_600 + 1) },
        File("a PNG whose pixels end at once", .refused([.undecodable])) { png(4000, 4000, zeros: 1) },
        File("a PNG with a text that inflates to 60 MB", .either) {
            png(16, 16, extra: chunk("zTXt", Make.ascii("a\0\0") + zlib(zeros: 258 * 232_600 + 1)))
        },
        File("a PNG with a profile that inflates to 30 MB", .either) {
            png(16, 16, extra: chunk("iCCP", Make.ascii("a\0\0") + zlib(zeros: 258 * 116_300 + 1)))
        },
        File("a GIF with a screen of 65,535 × 65,535", .over("pixels", pixels)) { gif(65_535, 65_535) },
        File("a GIF with a frame far outside its screen", .either) { gif(2, 2, x: 60_000) },
        File("a GIF with a second frame far outside its screen", .picture, recipe: "frames:all,gif") {
            let one = [[UInt8]](repeating: [9, 8, 7, 255], count: 4)
            return HandmadeAnimation(
                width: 2, height: 2,
                frames: [
                    .init(width: 2, height: 2, delay: 50, pixels: one),
                    .init(x: 60_000, y: 60_000, width: 2, height: 2, delay: 50, pixels: one),
                ]
            ).gif
        },
        File("a GIF of 5,000 frames, all wanted", .over("frames", 256), recipe: "frames:all,gif") {
            gif(16, 16, frames: 5000)
        },
        File("a GIF of 5,000 frames, the first wanted", .picture) { gif(16, 16, frames: 5000) },
        File("a GIF of 200 frames of 4,000 × 4,000", .over("pixels", pixels), recipe: "frames:all,gif") {
            gif(4000, 4000, frames: 200)
        },
        File("a WebP that says 2²⁴ × 2²⁴", .refused([.overLimit, .undecodable])) {
            Make.webp([Make.vp8x(0, width: 1 << 24, height: 1 << 24), Make.vp8(width: 16, height: 16)])
        },
        File("a WebP of 16,383 × 16,383 without pixels", .over("pixels", pixels)) {
            Make.webp([Make.vp8l(width: 16_383, height: 16_383, alpha: false)])
        },
        File("a WebP of 4,000 × 4,000 without pixels", .refused([.undecodable])) {
            Make.webp([Make.vp8l(width: 4000, height: 4000, alpha: true)])
        },
        File("a TIFF that says 2³² − 1 × 2³² − 1", .refused([.overLimit, .undecodable])) {
            tiff(1 << 32 - 1, 1 << 32 - 1, stripBytes: 100, held: 100)
        },
        File("a TIFF with a strip of 4 GB", .either) { tiff(64, 64, stripBytes: 1 << 32 - 1, held: 4096) },
        File("a TIFF of 7,000 × 7,000 in one strip that is not there", .refused([.undecodable])) {
            tiff(7000, 7000, stripBytes: 49_000_000, held: 50)
        },
        File("a TIFF whose directory follows itself", .either) { Make.tiff(width: 30, height: 20, loop: 8) },
        File("an AVIF that says 10⁶ × 10⁶", .over("pixels", pixels)) {
            Make.heif(width: 1_000_000, height: 1_000_000)
        },
        File("an AVIF without a picture", .refused([.undecodable, .unsupportedFormat])) {
            Make.heif(width: 400, height: 300)
        },
    ]

    static let metadata: [File] = [
        File("a JPEG with 20 MB of EXIF", .either, recipe: "thumbnail:20x20,jpeg:keep=exif") {
            let part = Make.segment(0xE1, Make.ascii("Exif\0\0") + [UInt8](repeating: 0x4D, count: 65_000))
            return try jpeg(Array(Array(repeating: part, count: 308).joined()))
        },
        File("a JPEG with 5 MB of profile", .over("profileBytes", 4 << 20)) {
            let part = (0..<80).map { index in
                Make.segment(
                    0xE2, Make.ascii("ICC_PROFILE\0") + [UInt8(index + 1), 80] + [UInt8](repeating: 0, count: 65_000))
            }
            return try jpeg(Array(part.joined()))
        },
        File("a PNG with 20 MB of text", .either) {
            png(16, 16, extra: Make.pngChunk("tEXt", Make.ascii("a\0") + [UInt8](repeating: 65, count: 20_000_000)))
        },
        File("a WebP with 20 MB of EXIF", .either, recipe: "thumbnail:20x20,webp:keep=exif") {
            let image = try RenderFixture.gradientImage(32, 32)
            let plain = try VipsCall("webpsave_buffer", ["in": .image(image), "strip": true]).bytes()
            let exif = ("EXIF", [UInt8](repeating: 0x4D, count: 20_000_000))
            let vp8 = (
                "VP8 ", Array(plain[20..<20 + (Int(plain[16]) | Int(plain[17]) << 8 | Int(plain[18]) << 16)])
            )
            return Make.webp([Make.vp8x(0x08, width: 32, height: 32), vp8, exif])
        },
        File("a GIF with 2 MB of comment", .picture) {
            gif(16, 16, comment: [UInt8](repeating: 65, count: 2_000_000))
        },
        File("a profile that is noise", .either) {
            var random = FuzzRandom(seed: 4)
            let noise = (0..<3000).map { _ in UInt8(truncatingIfNeeded: random.next()) }
            return try jpeg(Make.segment(0xE2, Make.ascii("ICC_PROFILE\0") + [1, 1] + noise))
        },
    ]

    /// Small pictures with very many parts, or with parts that are slow to read.
    static let parts: [File] = [
        File("a JPEG with 40,000 segments", .tooMany("segments, but the maximum is 4096")) {
            try jpeg(repeated(Make.segment(0xE5, [1, 2, 3]), 40_000))
        },
        File("a JPEG with 4,000 segments of each kind that is read", .either, seconds: 3) {
            let kinds = [
                (0xE1, "Exif\0\0"), (0xE1, "http://ns.adobe.com/xap/1.0/\0"), (0xE2, "ICC_PROFILE\0"),
                (0xED, "Photoshop 3.0\0"),
            ]
            return try jpeg(repeated(kinds.flatMap { Make.segment(UInt8($0), Make.ascii($1) + Make.exif(1)) }, 1000))
        },
        File("a PNG with 500 texts that inflate to 8 MB", .picture, seconds: 2) {
            let text = chunk("zTXt", Make.ascii("a\0\0") + zlib(zeros: 258 * 31_000 + 1))
            return png(16, 16, extra: repeated(text, 500))
        },
        File("a PNG with 500 packets that inflate to 8 MB", .picture, seconds: 2) {
            let packet = Make.ascii("XML:com.adobe.xmp\0\u{1}\0\0\0") + zlib(zeros: 258 * 31_000 + 1)
            return png(16, 16, extra: repeated(chunk("iTXt", packet), 500))
        },
        File("an icon with such a PNG", .picture, seconds: 2) {
            let text = chunk("zTXt", Make.ascii("a\0\0") + zlib(zeros: 258 * 31_000 + 1))
            let picture = HostileFiles.png(16, 16, extra: repeated(text, 500))
            let entry = [16, 16, 0, 0, 1, 0, 32, 0] + Make.little(picture.count, 4) + [22, 0, 0, 0]
            return [0, 0, 1, 0, 1, 0] + entry + picture
        },
        File("a PNG with 20,000 chunks", .tooMany("20000 chunks other than pixel data")) {
            png(16, 16, extra: repeated(chunk("abCd", []), 20_000))
        },
        File("a PNG with 150,000 chunks of pixels", .tooMany("150001 chunks of pixel data")) {
            png(16, 16, extra: repeated(chunk("IDAT", []), 150_000))
        },
        File("a GIF with 200,000 comments", .tooMany("blocks, but the maximum is 100000")) {
            let one = HostileFiles.gif(16, 16)
            return one[..<13] + repeated([0x21, 0xFE, 1, 97, 0], 200_000) + one[13...]
        },
        File("a TIFF of 12,000 directories", .tooMany("12000 directories")) {
            Make.tiff(width: 3, height: 2, pages: 12_000)
        },
        File("a WebP of 20,000 frames", .tooMany("20000 chunks")) {
            Make.webp([Make.vp8x(2, width: 2, height: 2)] + Array(repeating: ("ANMF", []), count: 20_000))
        },
        File("an AVIF with 20,000 boxes", .tooMany("boxes, but the maximum is 10000")) {
            Make.heif(width: 4, height: 3) + repeated(Make.box("free", []), 20_000)
        },
        File("an AVIF with 2 MB of boxes", .tooMany("200000 or more boxes")) {
            Make.heif(width: 4, height: 3) + repeated(Make.box("free", []), 250_000)
        },
        File("a HEIF with 20,000 properties", .tooMany("20000 boxes")) {
            let properties = Make.box("iprp", Make.box("ipco", repeated(Make.box("free", []), 20_000)))
            return Make.box("ftyp", Make.ascii("heic\0\0\0\0heic")) + Make.box("meta", [0, 0, 0, 0] + properties)
        },
        File("a HEIF with 20,000 items", .tooMany("20000 items with properties")) {
            let items = Make.box("ipma", [0, 0, 0, 0] + Make.big(20_000, 4) + repeated([0, 7, 1, 1], 20_000))
            let meta = Make.box("meta", [0, 0, 0, 0] + Make.box("iprp", Make.box("ipco", []) + items))
            return Make.box("ftyp", Make.ascii("heic\0\0\0\0heic")) + meta
        },
        File("a JPEG XL with 20,000 boxes", .tooMany("boxes, but the maximum is 10000")) {
            [0, 0, 0, 12] + Make.ascii("JXL ") + [13, 10, 0x87, 10] + repeated(Make.box("free", []), 20_000)
                + Make.box("jxlc", [0xFF, 0x0A, 0x41, 0x11, 0, 0, 0, 0])
        },
        File("a BMP with runs far beyond its edge", .picture, seconds: 3) {
            let sizes = [0, 0, 54 + 1024, 40, 1, 1, 1 | 8 << 16, 1, 0, 0, 0, 0, 0].flatMap { Make.little($0, 4) }
            let runs = repeated([255, 0], 4_000_000)
            return Make.ascii("BM") + sizes + [UInt8](repeating: 0, count: 1024) + runs + [0, 1]
        },
    ]

    private static let script = Make.ascii("<html><script>alert(1)</script>")

    /// Files that are something else as well; what is rendered of them is the picture alone.
    static let polyglots: [File] = [
        File("a JPEG with a page in its comment and behind it", .picture, recipe: "jpeg:keep=exif+xmp+icc") {
            try jpeg(Make.segment(0xFE, script)) + script
        },
        File("a GIF with a script in its comment and behind it", .picture, recipe: "gif") {
            gif(16, 16, comment: script) + script
        },
        File("a GIF whose screen begins a comment of a script", .either, recipe: "thumbnail:20x20,gif") {
            gif(0x2A2F, 0x0020) + Make.ascii("*/=1;") + script
        },
        File("a PNG with an archive behind it", .picture, recipe: "png") {
            png(16, 16) + Make.ascii("PK\u{3}\u{4}") + script
        },
        File("a document that begins before its JPEG", .refused([.notAnImage])) {
            try Make.ascii("%PDF-1.4\n") + jpeg()
        },
        File("a JPEG that a document follows", .picture, recipe: "jpeg") {
            try jpeg() + Make.ascii("%PDF-1.4\n") + script
        },
        File("a page that calls itself a picture", .refused([.notAnImage])) { script },
        File("two pictures, one behind the other", .picture) { try jpeg() + png(60_000, 60_000, zeros: 1) },
    ]
}
