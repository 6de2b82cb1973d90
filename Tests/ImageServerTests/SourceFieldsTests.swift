import HTTPCaching
import PipelineFetching
import Testing
import Variants

@testable import ImageServer

@Suite struct SourceFieldsTests {
    @Test(arguments: [
        ("http://h/a/photo.jpg", "inline; filename=\"photo.webp\""),
        ("http://h/a.b.jpg?x=/y.png", "inline; filename=\"a.b.webp\""),
        ("http://h/photo", "inline; filename=\"photo.webp\""), ("http://h/", "inline; filename=\"image.webp\""),
        ("http://h", "inline; filename=\"image.webp\""), ("http://h/.htaccess", "inline; filename=\"image.webp\""),
        ("http://h/two%20words.png", "inline; filename=\"two words.webp\""),
        ("http://h/%E5%86%99%E7%9C%9F.jpg", "inline; filename=\"__.webp\"; filename*=UTF-8''%E5%86%99%E7%9C%9F.webp"),
        ("http://h/100%25.jpg", "inline; filename=\"100_.webp\"; filename*=UTF-8''100%25.webp"),
        // Characters that would end the value, the line or the folder are left out.
        ("http://h/a%22;b%0d%0aX:%20y%00.jpg", "inline; filename=\"a;bX y.webp\""),
        ("http://h/..%2F..%2Fetc%2Fpasswd", "inline; filename=\"passwd.webp\""),
        ("http://h/%E2%80%AEgpj.exe", "inline; filename=\"gpj.webp\""),
        ("http://h/%ff.jpg", "inline; filename=\"image.webp\""),
    ])
    func `the file name is the source's last part, with the extension of the format`(
        _ source: String, _ expected: String
    ) throws {
        #expect(try SourceFields.disposition(path: SourceURL(source).path, "webp") == expected)
    }

    @Test func `a long name is cut`() throws {
        let long = try SourceURL("http://h/" + String(repeating: "a", count: 4000))
        #expect(SourceFields.disposition(path: long.path, "webp").utf8.count < 150)
    }

    private func link(_ source: String, isGiven: Bool = true) -> String? {
        SourceFields.fields(of: BaseURLs.Resolved(text: source), .webp, isGiven: isGiven).first("link")
    }

    @Test func `the source is canonical, unless it has credentials or is not in the client's URL`() {
        #expect(link("https://h/a.jpg?x=1") == "<https://h/a.jpg?x=1>; rel=\"canonical\"")
        #expect(link("HTTP://H:80/a b>c") == "<http://h/a%20b%3Ec>; rel=\"canonical\"")
        #expect(link("https://user:pass@h/a.jpg") == nil)
        #expect(link("https://h/a.jpg", isGiven: false) == nil)
    }
}
