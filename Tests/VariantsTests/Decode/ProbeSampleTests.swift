import Glibc
import TestSupport
import Testing
import Variants

/// `ImageHeader.probe` over the files of `samples/`.
@Suite struct ProbeSampleTests {
    static let samples = Samples.folder + "/"

    static func read(_ name: String) throws -> [UInt8] {
        try #require(ScratchFolder.bytes(at: samples + name), "samples/\(name) is missing")
    }

    @Test(arguments: 1...8) func `a quarter turn exchanges the edges of the picture as shown`(orientation: Int) {
        let header = ImageHeader(format: .jpeg, encodedWidth: 30, encodedHeight: 20, orientation: orientation)
        #expect([header.width, header.height] == (orientation >= 5 ? [20, 30] : [30, 20]))
    }

    static let originals: [(String, ImageHeader)] = [
        ("mountains-12mp.jpg", ImageHeader(format: .jpeg, encodedWidth: 4000, encodedHeight: 3000)),
        ("dusk-2mp.jpg", ImageHeader(format: .jpeg, encodedWidth: 1920, encodedHeight: 1080)),
        ("grey.jpg", ImageHeader(format: .jpeg, encodedWidth: 640, encodedHeight: 427)),
        ("exif-orientation-6.jpg", ImageHeader(format: .jpeg, encodedWidth: 800, encodedHeight: 600, orientation: 6)),
        ("exif-orientation-3.jpg", ImageHeader(format: .jpeg, encodedWidth: 800, encodedHeight: 533, orientation: 3)),
        ("cmyk.jpg", ImageHeader(format: .jpeg, encodedWidth: 800, encodedHeight: 600)),
        ("balloon-alpha.png", ImageHeader(format: .png, encodedWidth: 480, encodedHeight: 480, hasAlpha: true)),
        ("sky-16bit.png", ImageHeader(format: .png, encodedWidth: 300, encodedHeight: 200)),
        ("moon-grey-alpha.png", ImageHeader(format: .png, encodedWidth: 320, encodedHeight: 320, hasAlpha: true)),
        (
            "balloon-palette.png",
            ImageHeader(format: .png, encodedWidth: 240, encodedHeight: 240, hasAlpha: true, hasFewColors: true)
        ),
        ("dusk.webp", ImageHeader(format: .webp, encodedWidth: 960, encodedHeight: 540)),
        ("balloon-lossless.webp", ImageHeader(format: .webp, encodedWidth: 200, encodedHeight: 200, hasAlpha: true)),
        // Its encoder sends frames as differences, with alpha.
        ("balloon.webp", ImageHeader(format: .webp, encodedWidth: 240, encodedHeight: 160, pages: 12, hasAlpha: true)),
        (
            "balloon.gif",
            ImageHeader(format: .gif, encodedWidth: 240, encodedHeight: 160, pages: 12, hasFewColors: true)
        ),
        ("meadow.tiff", ImageHeader(format: .tiff, encodedWidth: 400, encodedHeight: 300)),
        ("forest.avif", ImageHeader(format: .avif, encodedWidth: 800, encodedHeight: 600)),
    ]

    @Test(arguments: originals) func `reads the header of a sample`(_ name: String, _ expected: ImageHeader) throws {
        var header = try ImageHeader.probe(Self.read("originals/" + name))
        header.heldBytes = 0
        header.transcodingObstacle = nil
        #expect(header == expected)
    }

    @Test(arguments: ["cmyk-profile.jpg", "wide-gamut-p3.jpg", "wide-gamut-adobe.jpg"])
    func `sees the profile of a sample`(_ name: String) throws {
        #expect(try ImageHeader.probe(Self.read("originals/" + name)).profileBytes > 400)
    }

    @Test func `a progressive sample has several scans`() throws {
        let header = try ImageHeader.probe(Self.read("originals/progressive.jpg"))
        #expect((3...12).contains(header.scans))
    }

    @Test(arguments: [("html-as.jpg", "HTML"), ("empty.jpg", "empty"), ("gzip26.bin", "gzip")])
    func `says what a file that is no image holds`(_ name: String, _ words: String) throws {
        let bytes = try Self.read("broken/" + name)
        let error = #expect(throws: RenderError.self) { try ImageHeader.probe(bytes) }
        #expect(error?.code == .notAnImage)
        #expect(error?.message.contains(words) == true)
    }

    @Test func `the giant header is read without trusting it`() throws {
        let header = try ImageHeader.probe(Self.read("broken/giant-header.png"))
        #expect(header.width == 60000 && header.height == 60000)
    }

    @Test func `every truncation of the smallest samples gives a header or an error`() throws {
        for name in ["night-tiny.jpg", "balloon-palette.png", "balloon-lossless.webp", "forest.avif"] {
            let bytes = try Self.read("originals/" + name)
            for length in 0...bytes.count {
                bytes.withUnsafeBytes { _ = try? ImageHeader.probe(UnsafeRawBufferPointer(rebasing: $0[..<length])) }
            }
        }
    }

    @Test func `two thousand seeded mutations of samples give a header or an error`() throws {
        var random = SplitMix64(state: 42)
        for name in ["night-tiny.jpg", "balloon-palette.png", "balloon.webp", "balloon.gif", "forest.avif"] {
            let bytes = try Self.read("originals/" + name)
            for _ in 0..<400 {
                var mutated = bytes
                for _ in 0..<8 {
                    // Mostly near the start, where headers are.
                    let end = Bool.random(using: &random) ? min(400, bytes.count) : bytes.count
                    mutated[Int.random(in: 0..<end, using: &random)] = UInt8.random(in: 0...255, using: &random)
                }
                _ = try? ImageHeader.probe(mutated)
            }
        }
    }
}
