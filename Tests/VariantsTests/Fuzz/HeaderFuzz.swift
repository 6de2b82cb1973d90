import TestSupport

@testable import Variants

extension VariantsFuzzTests {
    /// Format and header of pictures: what is found is within what the pipeline counts with, twice the same.
    static let headerTarget = FuzzTarget(
        "header", seeds: HandmadeImages.all,
        words: [
            "RIFF", "WEBP", "VP8X", "VP8L", "VP8 ", "ANMF", "EXIF", "ICCP", "GIF89a", "IHDR", "IDAT", "acTL", "fcTL",
            "fdAT", "iCCP",
            "eXIf", "tRNS", "ftyp", "avif", "mif1", "meta", "iprp", "ipco", "ispe", "ipma", "pitm", "irot", "auxC",
            "colr", "prof", "Exif\0\0", "ICC_PROFILE\0", "MM\0*", "II*\0", "<svg", "<!DOCTYPE", "<!ENTITY", "viewBox",
            "&a;", "jxlc", "jxlp", "jp2h", "jp2c", "cdef", "pclr", "cICP", "gAMA",
            "cHRM",
            "nclx", "clli", "iref", "auxl", "prem", "imir", "clap",
            "\u{0}\u{0}\u{0}\u{1}",
        ], limit: 16_384
    ) { bytes in
        do throws(RenderError) {
            let header = try ImageHeader.probe(bytes)
            let edges = 1...(1 << 24)
            guard edges.contains(header.width), edges.contains(header.height) else { return "a size of \(header)" }
            guard (1...8).contains(header.orientation) else { return "an orientation of \(header.orientation)" }
            guard header.pages >= 1, header.scans >= 1, header.profileBytes >= 0 else { return "counts of \(header)" }
            let details = ImageDetails.read(bytes, header)
            let (latitude, longitude) = (details.exif?.latitude, details.exif?.longitude)
            guard (-90...90).contains(latitude ?? 0), (-180...180).contains(longitude ?? 0),
                (latitude == nil) == (longitude == nil)
            else { return "a position of \(latitude ?? 0), \(longitude ?? 0)" }
            bytes.withUnsafeBytes { buffer in
                let file = ByteReader(buffer)
                let color = PNGDecoder.color(file, hasProfile: false)
                _ = color?.profile(isGray: false)
                _ = (HEIFHeader.file(file), HEIFHeader.file(file, with: .alpha), HEIFHeader.Alpha(file)?.canBeEnlarged)
                _ = (ICCProfile.intent(file, for: "RGB "), HEIFHeader.Matrix(file)?.unmixed(file))
            }
            guard ImageDetails.read(bytes, header) == details else { return "other details the second time" }
            return try ImageHeader.probe(bytes) == header ? nil : "another header the second time"
        } catch {
            let codes: [RenderError.Code] = [.notAnImage, .unsupportedFormat, .undecodable, .overLimit]
            return codes.contains(error.code) && !error.message.isEmpty ? nil : "an error of \(error.code)"
        }
    }
}
