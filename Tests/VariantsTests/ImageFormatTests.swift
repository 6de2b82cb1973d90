import Testing

@testable import Variants

@Suite struct ImageFormatTests {
    /// Names are part of variant keys, media types are stored, and workers get formats by their position in this list.
    @Test func `names, media types and file extensions stay what caches and workers know`() {
        let formats = ImageFormat.allCases.map { format in
            "\(format.rawValue) \(format.mediaType) \(format.fileExtensions.joined(separator: ","))"
        }
        #expect(
            formats == [
                "jpeg image/jpeg jpg,jpeg,jpe,jfif", "png image/png png", "webp image/webp webp", "gif image/gif gif",
                "avif image/avif avif", "heif image/heic heic,heif", "tiff image/tiff tiff,tif", "jxl image/jxl jxl",
                "bmp image/bmp bmp,dib", "ico image/vnd.microsoft.icon ico,cur",
                "svg image/svg+xml svg", "jp2 image/jp2 jp2,j2k,j2c,jpc,jpx,jpf",
            ])
        for format in ImageFormat.allCases {
            #expect(ImageFormat(rawValue: format.rawValue) == format && "\(format)" == format.rawValue)
            #expect(ImageFormat(fileExtension: format.fileExtension) == format)
        }
        #expect(ImageFormat(rawValue: "psd") == nil && ImageFormat(rawValue: "JPEG") == nil)
        #expect(ImageFormat(fileExtension: "tif") == .tiff && ImageFormat(fileExtension: "") == nil)
    }

    @Test func `all formats but JPEG XL, SVG and JPEG 2000 are read by default, and five in workers only`() {
        #expect(ImageFormat.decodable == [.jpeg, .png, .webp, .gif, .avif, .heif, .tiff, .jxl, .bmp, .ico, .svg, .jp2])
        #expect(ImageFormat.decodedByDefault == [.jpeg, .png, .webp, .gif, .avif, .heif, .tiff, .bmp, .ico])
        #expect(ImageFormat.decodedInWorkersOnly == [.avif, .heif, .jxl, .svg, .jp2])
        #expect(ImageFormat.svg.encoder == nil)
    }

    @Test func `JPEG holds no alpha, GIF no profile, and only GIF and WebP move`() {
        let formats = ImageFormat.allCases
        #expect(formats.filter { !$0.holdsAlpha } == [.jpeg])
        #expect(formats.filter { $0.alpha == .binary } == [.gif])
        #expect(formats.filter { !$0.holdsProfile } == [.gif, .svg])
        #expect(formats.filter { $0.holdsFrames } == [.webp, .gif])
    }

    @Test func `no two formats recognise the same file`() throws {
        for file in HandmadeImages.all {
            let known = file.withUnsafeBytes { bytes in
                Catalog.decoders.filter { $0.recognizes(ByteReader(bytes)) }.map { $0.format }
            }
            #expect(try known == [ImageHeader.probe(file).format])
        }
    }
}
