import HTTPCaching
import TestSupport
import Testing
import Variants

@testable import ImageServer
@testable import Pipeline

/// The URLs of Netlify, Astro, IPX (Nuxt Image) and Vercel.
@Suite struct ParameterGrammarTests {
    /// The header of a picture with 600 × 400 pixels.
    private static let header = ImageHeader(format: .jpeg, encodedWidth: 600, encodedHeight: 400)

    /// Returns the recipe for a target, or the error text.
    private static func recipe<System: ParameterSystem>(
        _ system: System.Type, _ target: String, accepted: [ImageFormat] = [.avif]
    ) -> String {
        do throws(Problem) {
            let asked = try System.read(target.prefix { $0 != "?" }, FormQuery(target))
            do throws(PipelineError) { return try asked.recipe(for: header, accepted).description } catch {
                return error.message
            }
        } catch { return error.detail ?? "" }
    }

    @Test(arguments: [
        ("?url=/a.jpg", "avif"), ("?url=/a.jpg&w=300", "thumbnail:300x,avif"),
        ("?url=/a.jpg&h=300", "thumbnail:x300,avif"),
        ("?url=/a.jpg&w=300&h=200", "thumbnail:300x200,avif"),
        ("?url=/a.jpg&w=30&h=20&fit=fill", "thumbnail:30x20:stretch,avif"),
        ("?url=/a.jpg&w=30&h=20&fit=cover&position=top", "thumbnail:30x20:fill:gravity=north,avif"),
        ("?url=/a.jpg&fm=jpg&q=50", "jpeg:50"), ("?url=/a.jpg&fm=png&q=50", "png"), ("?url=/a.jpg&q=50", "avif:50"),
        ("?w=3", "the parameter `url` is missing"), ("?url=/a.jpg&w=3&w=4", "`w` is given twice"),
        ("?url=/a.jpg&blur=3", "`blur`: unknown parameter"),
        ("?url=/a.jpg&w=1e3", "`w` must be a whole number between 1 and 8192"),
        ("?url=/a.jpg&fit=crop", "`fit` must be one of contain, cover, fill"),
    ])
    func `a URL of Netlify becomes a recipe`(target: String, expected: String) {
        #expect(Self.recipe(Netlify.self, target) == expected)
    }

    @Test(arguments: [
        ("?href=/a.jpg&w=300&h=200", "thumbnail:300x,webp"),
        ("?href=/a.jpg&w=300&h=200&fit=cover", "thumbnail:300x200:fill,webp"),
        ("?href=/a.jpg&w=300&f=jpeg&q=mid&origWidth=3", "thumbnail:300x,jpeg:50"),
        ("?href=/a.jpg&q=max&f=avif", "avif:100"),
        ("?href=/a.jpg&w=120&h=120&fit=outside&f=png", "thumbnail:x120,png"),
        ("?href=/a.jpg&f=svg", "the format `svg` is possible only for an SVG, which the server passes on"),
        ("?href=/a.jpg&q=best", "`q` must be a whole number between 1 and 100"),
        ("?url=/a.jpg", "`url`: unknown parameter"),
    ])
    func `a URL of Astro becomes a recipe`(target: String, expected: String) {
        #expect(Self.recipe(Astro.self, target) == expected)
    }

    @Test(arguments: [
        ("/_/a.jpg", "original"), ("/w_200/a.jpg", "thumbnail:200x,original"),
        ("/s_200x100,f_webp,q_80/a.jpg", "thumbnail:200x100:fill,webp:80"),
        ("/s_200x100&fit_contain&b_ffffff/a.jpg", "background:ffffff,thumbnail:200x100:pad,original"),
        ("/s_200x100,fit_contain/a.jpg", "background:000000,thumbnail:200x100:pad,original"),
        ("/fit_inside,w_200,h_100/a.jpg", "thumbnail:200x100,original"),
        ("/s_90x90,fit_outside,enlarge/a.jpg", "thumbnail:x90:up,original"),
        ("/w_20,f_auto/a.jpg", "thumbnail:20x,avif"),
        ("/s_20x20,pos_left%20top/a.jpg", "thumbnail:20x20:fill:gravity=north-west,original"),
        (
            "/trim_20,w_90,rotate_90,flip,flop,blur_2,sharpen,grayscale,f_png/a.jpg",
            "trim:20,thumbnail:90x,rotate:90,flip:v,flip:h,blur:2,sharpen,grayscale,png"
        ),
        ("/kernel_cubic,w_20/a.jpg", "thumbnail:20x,original"),
        ("/animated,w_20,f_webp/a.gif", "frames:all,thumbnail:20x,webp"),
        ("/wide_20/a.jpg", "`wide_20`: unknown modifier, or invalid value"),
        ("/w_1e3/a.jpg", "`w_1e3`: unknown modifier, or invalid value"),
        ("/s_2/a.jpg", "`s_2`: unknown modifier, or invalid value"),
        ("/s_axb/a.jpg", "`s_axb`: unknown modifier, or invalid value"),
        ("/s_99999x20/a.jpg", "`s_99999x20`: unknown modifier, or invalid value"),
        ("/s_x20/a.jpg", "thumbnail:x20,original"),
        ("/enlarge_x/a.jpg", "`enlarge_x`: unknown modifier, or invalid value"),
        ("/q_0/a.jpg", "`q_0`: unknown modifier, or invalid value"),
        ("/blur_nan/a.jpg", "`blur_nan`: unknown modifier, or invalid value"),
        ("/f_exe/a.jpg", "`f_exe`: unknown modifier, or invalid value"),
        ("/w_20", "expected /MODIFIERS/SOURCE below the path, such as /w_200,f_webp/photo.jpg"),
        ("/w_20/%FF", "the source cannot be percent-decoded to UTF-8"),
    ])
    func `a URL of IPX becomes a recipe`(target: String, expected: String) {
        #expect(Self.recipe(IPX.self, target) == expected)
    }

    @Test func `sources are absolute or below the base, and share variants with other URLs`() async throws {
        let origin = try LoopbackOrigin { _ in
            .response(
                200, ["Content-Type": "image/jpeg", "Cache-Control": "max-age=60"],
                body: HitTests.Bench.sample("night-tiny.jpg"))
        }
        defer { origin.stop() }
        let base = GrammarValue(.string(origin.url("/app")))
        try await HitTests.with { site, _ in
            site.grammars = [
                "ipx": ["path": "/_ipx", "baseURL": base], "netlify": ["path": "/.netlify/images", "baseURL": base],
                "astro": ["path": "/_image", "unsigned": true], "vercel": ["path": "/_vercel/image", "widths": [30]],
            ]
        } _: { bench in
            let url = origin.url("/app/a%20b.jpg")
            let encoded = PercentText.encoded(url, keeping: "")
            let targets = [
                "/_ipx/w_30,f_webp,q_70/a%20b.jpg".replacing("%20", with: "%2520"),
                "/_ipx/w_30,f_webp,q_70/" + url.replacing("%20", with: "%2520"),
                "/.netlify/images?url=/a%2520b.jpg&w=30&q=70&fm=webp", "/_image?href=\(encoded)&w=30&q=70",
                "/_vercel/image?url=\(encoded)&w=30&q=70",
            ]
            var bodies: Set<ArraySlice<UInt8>> = []
            for target in targets {
                let response = await bench.ask(target, [HeaderField("Accept", "image/webp")])
                #expect(response.status == 200 && response["content-type"] == "image/webp", "\(target)")
                bodies.insert(response.body)
                #expect(bench.hit(target, [HeaderField("Accept", "image/webp")])?.body == Array(response.body))
            }
            #expect(bodies.count == 1 && origin.requests.map(\.target) == ["/app/a%20b.jpg"])
            for target in ["/_image?href=/a.jpg", "/_ipx/_/ftp://a/b", "/_ipx/_/..%2F..%2Fa", "/_ipx/_/%2F%2Fhost/a"] {
                let response = await bench.ask(target)
                #expect(response.status == 400 && response["content-type"] == "text/plain; charset=utf-8", "\(target)")
            }
        }
    }
}
