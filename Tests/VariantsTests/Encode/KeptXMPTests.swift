import Testing

@testable import Variants

@Suite struct KeptXMPTests {
    private static func packet(_ body: String, prefix: String = "tiff") -> [UInt8] {
        Array("<x:xmpmeta xmlns:\(prefix)='http://ns.adobe.com/tiff/1.0/' xmlns:o=\"urn:o\">\(body)</x:xmpmeta>".utf8)
    }

    @Test(arguments: [
        ("<a tiff:Orientation=\"6\" tiff:Make=\"6\"/>", "<a tiff:Orientation=\"1\" tiff:Make=\"6\"/>", "tiff"),
        ("<a tiff:Orientation = '8'/>", "<a tiff:Orientation = '1'/>", "tiff"),
        ("<tiff:Orientation>3</tiff:Orientation>", "<tiff:Orientation>1</tiff:Orientation>", "tiff"),
        ("<t:Orientation>\n 3 </t:Orientation>", "<t:Orientation>\n 1 </t:Orientation>", "t"),
        (
            "<a o:Orientation=\"6\" tiff:Orientations=\"6\"/>", "<a o:Orientation=\"6\" tiff:Orientations=\"6\"/>",
            "tiff"
        ),
        ("<a tiff:Orientation=\"upright\"/>", "<a tiff:Orientation=\"upright\"/>", "tiff"),
        ("<a tiff:Orientation=", "<a tiff:Orientation=", "tiff"),
    ]) func `the orientation says upright, in every form it is written in`(from: String, to: String, prefix: String) {
        #expect(KeptBlobs.xmp(Self.packet(from, prefix: prefix), isUpright: true) == Self.packet(to, prefix: prefix))
        let cut = Self.packet(from, prefix: prefix)
        for length in 0..<cut.count { _ = KeptBlobs.xmp(Array(cut[..<length]), isUpright: true) }
    }

    @Test func `kept XMP of a turned picture says upright, of one left as stored what it said`() async throws {
        let plain = try RenderFixture.jpeg(RenderFixture.gradientImage(60, 40))
        var kept = KeptBlobs()
        kept.xmp = Self.packet("<a tiff:Orientation=\"6\"/>")
        let bytes = kept.inserted(intoJPEG: plain)
        for format in [ImageFormat.jpeg, .png, .webp, .avif, .gif, .jxl, .tiff] {
            for (recipe, number) in [("thumbnail:30", "1"), ("orient:off,thumbnail:30", "6")] {
                let output = ResolvedOutput(format: format, keep: .xmp)
                let job = RenderFixture.job(bytes, .jpeg, 60, 40, try Recipe(recipe), output)
                let text = String(decoding: try await RenderFixture.renderer.render(job).bytes, as: UTF8.self)
                #expect(text.contains("tiff:Orientation=\"\(number)\""), "\(format) \(recipe)")
            }
        }
    }
}
