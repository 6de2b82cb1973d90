import TestSupport

@testable import Variants

extension VariantsFuzzTests {
    /// Scans of a JPEG: as many as a reader that goes the way libjpeg goes.
    static let jpegTarget = FuzzTarget(
        "jpeg",
        seeds: [
            HandmadeImages.jpeg(width: 640, height: 480, scans: 3),
            HandmadeImages.jpeg(width: 8, height: 8, scans: 40, extra: HandmadeImages.segment(0xFE, [1, 2, 3])),
            HandmadeImages.jpeg(
                width: 9, height: 7,
                extra: HandmadeImages.segment(0xE1, HandmadeImages.ascii("Exif\0\0") + HandmadeImages.exif(6))
                    + HandmadeImages.segment(0xE2, HandmadeImages.ascii("ICC_PROFILE\0") + [1, 1, 9, 9, 9])),
        ] + unended, limit: 16_384
    ) { bytes in
        if bytes.suffix(2) == [0xFF, 0xD9], bytes.withUnsafeBytes({ UnterminatedJPEG.ending(ByteReader($0)) }) != nil {
            return "an ending for a file that has one"
        }
        guard bytes.starts(with: [0xFF, 0xD8, 0xFF]), let header = try? ImageHeader.probe(bytes) else { return nil }
        let scans = scans(bytes)
        return header.scans == max(1, scans) ? nil : "\(header.scans) scans where there are \(scans)"
    }

    /// Real pictures without EOI, and with scan headers that are read.
    private static let unended: [[UInt8]] = (try? SmallPictures.byFormat().first?.pictures.map { $0.dropLast(2) }) ?? []

    /// The markers as jdmarker.c of libjpeg-turbo 2.1 takes them: whatever is no marker is skipped, and a length below 2
    /// skips nothing beyond itself.
    private static func scans(_ bytes: [UInt8]) -> Int {
        var at = 2
        var scans = 0
        while scans <= JPEGDecoder.maxCountedScans {
            while at < bytes.count, bytes[at] != 0xFF { at += 1 }
            while at < bytes.count, bytes[at] == 0xFF { at += 1 }
            guard at < bytes.count else { break }
            let marker = bytes[at]
            at += 1
            if marker == 0 || marker == 1 || (0xD0...0xD8).contains(marker) { continue }
            guard marker != 0xD9, at + 1 < bytes.count else { break }
            at += max(2, Int(bytes[at]) << 8 | Int(bytes[at + 1]))
            if marker == 0xDA { scans += 1 }
        }
        return scans
    }
}
