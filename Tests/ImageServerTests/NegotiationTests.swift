import Testing
import Variants

@testable import ImageServer

@Suite struct NegotiationTests {
    @Test(
        arguments: [
            (nil, nil), ("", nil), ("*/*", nil), ("image/*", nil), ("image/webp", .webp), ("IMAGE/WebP;Q=0.1", .webp),
            ("image/avif,image/webp;q=0.9,*/*;q=0.8", .avif), ("image/avif;q=0.5, image/webp", .webp),
            ("image/webp;q=0", nil), ("image/webp;q=0.000, image/avif;q=0", nil), ("image/webp;q=0.001", .webp),
            ("image/webp;q=2", nil), ("image/webp;q=0.1234", nil), ("image/webp;q=", nil), ("image/webp;q=1.001", nil),
            ("image/avif;q=0.9,image/webp;q=0.9", .webp), ("text/html , image/webp ; q=0.3", .webp),
            ("image/webp;x=y;q=0.5", .webp), ("webp", nil), ("image/jpeg, image/png", nil), ("image/jxl", nil),
            ("image/tiff", nil),
        ] as [(String?, ImageFormat?)])
    func `the best offered format that the client accepts is produced (RFC 9110 §12.5.1)`(
        _ accept: String?, _ expected: ImageFormat?
    ) {
        #expect(Negotiation.formats(accept: accept, among: [.webp, .avif]).first == expected)
    }

    @Test func `only what the setting names is offered, in its order where weights are equal`() {
        let accept = "image/jxl, image/avif;q=0.9, image/webp"
        #expect(Negotiation.formats(accept: accept, among: [.jxl, .webp]) == [.jxl, .webp])
        #expect(Negotiation.formats(accept: accept, among: [.webp, .jxl]) == [.webp, .jxl])
        #expect(Negotiation.formats(accept: accept, among: [.avif, .webp, .jxl]) == [.webp, .jxl, .avif])
        #expect(Negotiation.formats(accept: accept, among: [.webp]) == [.webp])
        #expect(Negotiation.formats(accept: accept, among: []).isEmpty)
    }
}
