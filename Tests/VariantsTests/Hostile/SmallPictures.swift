@testable import Variants

/// A small picture of every format that is decoded, in each of the ways a format has to hold one.
enum SmallPictures {
    /// Pictures by format; formats that this libvips has no encoder for are left out.
    static func byFormat() throws -> [(format: String, pictures: [[UInt8]])] {
        let color = try RenderFixture.gradientImage(61, 43)
        let alpha = try RenderFixture.image(37, 29, bands: 4) { x, y in
            RenderFixture.gradient(x, y, 37, 29) + [UInt8((x * 7) & 0xFF)]
        }
        let frames = (0..<3).map { index in
            HandmadeAnimation.Frame(
                x: index * 2, width: 9, height: 7, delay: 40 * (index + 1),
                pixels: (0..<63).map { [UInt8($0 * 4), UInt8(index * 80), 9, $0 % 5 == 0 ? 0 : 255] })
        }
        let animation = HandmadeAnimation(width: 16, height: 12, frames: frames)
        func saved(
            _ saver: String, _ image: Image, _ option: (String, VipsArgument)? = nil
        ) throws -> [UInt8] {
            let (name, value) = option ?? ("strip", true)
            return try VipsCall(saver, ["in": .image(image), name: value]).bytes()
        }
        let exif = HandmadeImages.segment(0xE1, HandmadeImages.ascii("Exif\0\0") + HandmadeImages.exif(6))
        var all: [(String, [[UInt8]])] = [
            (
                "jpeg",
                [
                    try saved("jpegsave_buffer", color), try saved("jpegsave_buffer", color, ("interlace", true)),
                    try HostileFiles.jpeg(exif),
                ]
            ),
            (
                "png",
                [
                    try saved("pngsave_buffer", color), try saved("pngsave_buffer", alpha, ("interlace", true)),
                    try saved("pngsave_buffer", alpha, ("palette", true)),
                ]
            ),
            (
                "webp",
                [
                    try saved("webpsave_buffer", color), try saved("webpsave_buffer", alpha),
                    try saved("webpsave_buffer", alpha, ("lossless", true)), try animation.webp(),
                ]
            ),
            ("gif", [animation.gif]),
            (
                "tiff",
                [
                    try saved("tiffsave_buffer", color), try saved("tiffsave_buffer", alpha, ("compression", "lzw")),
                    try saved("tiffsave_buffer", color, ("compression", "jpeg")),
                ]
            ),
        ]
        let bitmaps = [HandmadeBMP(bits: 8, palette: BMPTests.gray), HandmadeBMP(bits: 32)]
        all.append(("bmp", bitmaps.map(\.file) + BMPTests.examples.suffix(2).map(\.bytes)))
        let icons = [[bitmaps[1].bitmap(isIcon: true)], [try saved("pngsave_buffer", alpha)]]
        all.append(("ico", icons.map { HandmadeBMP.icon($0) }))
        let shapes = "<g fill='#f80'><circle r='9' cx='9' cy='9'/><text y='20' style='font-size:9px'>ab</text></g>"
        all.append(
            ("svg", [SVGTests.svg("viewBox='0 0 40 30'", shapes), SVGTests.svg("width='9'", "<!-- a -->" + shapes)]))
        if VipsLibrary.has("heifsave_buffer") {
            all.append(("avif", [try saved("heifsave_buffer", color, ("compression", "av1"))]))
        }
        if VipsLibrary.has("jxlsave_buffer") {
            all.append(
                (
                    "jxl",
                    [
                        try saved("jxlsave_buffer", color), try saved("jxlsave_buffer", alpha),
                        try saved("jxlsave_buffer", alpha, ("lossless", true)),
                    ]
                ))
        }
        if VipsLibrary.has("jp2ksave_buffer") {
            all.append(
                (
                    "jp2",
                    [try saved("jp2ksave_buffer", color), try saved("jp2ksave_buffer", alpha, ("lossless", true))]
                ))
        }
        return all
    }

    static func all() throws -> [(String, [UInt8])] {
        try byFormat().flatMap { format, pictures in
            pictures.enumerated().map { ("\(format) \($0.offset + 1)", $0.element) }
        }
    }
}
