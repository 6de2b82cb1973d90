import Testing

@testable import Variants

/// Tests which parts of a style sheet are kept. `Tests/Page/svg_test.py` tests the result in a browser.
@Suite struct SafeCSSTests {
    private static func safe(_ css: String) -> String { String(decoding: SafeCSS.text(Array(css.utf8)), as: UTF8.self) }

    @Test(arguments: [
        ".a>.b:not(.c):nth-child(2n+1){fill:#f00;stroke:rgb(1 2 3/50%)}", "fill:url(#g);filter:url(#a-b_c.d)",
        "background:linear-gradient(red,blue);transform:rotate(3deg) translateX(calc(1px + var(--x, 2px)))",
        "@media (min-width:9px){.a{fill:red}}@keyframes k{from{opacity:0}to{opacity:1}}",
        "fill:URL(#g)", "cursor:url(data:image/png;base64,iVBORw0KGgo=),auto", ".a::before{content:\"url(http://x)\"}",
        "a{fill:red", ".é{fill:red}", "a{content:\"\\\"(\"}", "color:#CD853F icc-color(a, 0.1)",
    ]) func `a harmless style sheet stays as it is`(css: String) {
        #expect(Self.safe(css) == css.replacing("URL(", with: "url("))
        #expect(Self.safe("/**/" + css).hasPrefix("/**/"))
    }

    @Test(arguments: [
        ("a{fill:url(http://x/#g) red}", "a{fill:  red}"), ("fill:url( '#g' )", "fill:url(#g)"),
        ("fill:url(\"#a b\")", "fill:url(\"#a b\")"), ("fill:u\\72l(//x)", "fill:none"),
        ("fill:\\75\\52 L( http://x )", "fill:none"), ("fill:url(http://x\\) url(#g)", "fill:none"),
        ("fill:url(#a\"b)", "fill:none"), ("fill:url(#a b)", "fill:none"), ("fill:url(", "fill:none"),
        ("fill:url(#a", "fill:url(#a)"), ("src:url('a') format('x')", "src:  format('x')"),
        ("fill:url('#a' x)", "fill:none"), ("fill:url('a\nb') red", "fill:none"),
        ("background:image-set('http://x' 1x, url(#b) 2x) red", "background:  red"),
        ("x:-webkit-cross-fade(url(a),url(b),5%)", "x:none"), ("x:src(var(--u))", "x:none"),
        ("x:url(data:image/svg+xml,<svg/>)", "x:none"), ("x:url(data:text/html,a)", "x:none"),
        ("x:url(' DATA:image/PNG;base64,\\\nAA==')", "x:url(data:image/png;base64,AA==)"),
        ("x:url(data:image/jpg,a)", "x:url(data:image/jpeg,a)"),
        ("@import url(x);a{}", " a{}"), ("@import 'a;b' screen;a{}", " a{}"), ("@\\69mport\"x\";a{}", " a{}"),
        ("@namespace url(x);a{}", " a{}"), ("@x{a{b:c}}d{}", " d{}"), ("a{@x y}b{}", "a{ }b{}"),
        ("@media print{@import 'x';a{}}", "@media print{ a{}}"), ("a{@x {b:(});c:d} e:f}", "a{  e:f}"),
        ("/@x;* \"*/ }a{b:url(c)}\"", "/ * \"*/ }a{b:url(c)}\""), ("a/**/.b(", "a/**/.none"),
        ("a{b:c\\", "a{b:c\\"), ("\\\nurl(x)", "\\\nnone"), ("'a\nurl(x)", "'a\nnone"), ("@", "@"),
        ("u/**/rl(a)", "u/**/none"),
    ]) func `what may load something goes`(css: String, expected: String) {
        #expect(Self.safe(css) == expected)
        #expect(Self.safe(expected) == expected)
    }

    @Test func `a style sheet of random tokens becomes one that stays as it is, and never loads`() {
        var numbers = SplitMix64(state: 5)
        let tokens = [
            "url(", "http://x", "#a", ")", "(", "'", "\"", "\\", "\n", "/*", "*/", "/", "*", "@import ", "@media ", "{",
            "}", ";",
            "u", "rl(", "image-set(", "rgb(", "data:image/png,", " ", "a", "\\75 ", "[", "]", "<", "é", "!", "\r",
        ]
        for _ in 0..<20_000 {
            let css = (0..<Int.random(in: 1...14, using: &numbers)).map { _ in tokens.randomElement(using: &numbers)! }
                .joined()
            let once = Self.safe(css)
            #expect(Self.safe(once) == once, "\(css.debugDescription)")
        }
    }
}
