import ImageServerNIO
import Testing

@Suite struct ListenAddressTests {
    @Test(arguments: [
        ("127.0.0.1:8080", "127.0.0.1", 8080), ("[::1]:0", "::1", 0), ("localhost:65535", "localhost", 65_535),
        ("*:8080", "*", 8080),
    ])
    func `host and port are read`(_ text: String, _ host: String, _ port: Int) {
        #expect(ListenAddress(text) == .tcp(host: host, port: port))
        #expect(ListenAddress(text)?.description == text)
    }

    @Test func `a Unix socket and a passed socket are addresses too`() {
        #expect(ListenAddress("unix:/run/a:b.sock") == .unix(path: "/run/a:b.sock"))
        #expect(ListenAddress("fd:3") == .descriptor(3))
        for text in ["unix:/run/a.sock", "fd:3"] { #expect(ListenAddress(text)?.description == text) }
        #expect(ListenAddress("unix:" + String(repeating: "a", count: 108)) == nil)
    }

    @Test(arguments: [
        "unix:", "unix:a\0b", "fd:2", "fd:x", "fd:", "", "8080", ":8080", "h:", "h:65536", "h:-1", "::1:80", "[::1]",
        "h:8o", "a b:1", "http://h:1",
    ])
    func `what is no address is refused`(_ text: String) { #expect(ListenAddress(text) == nil) }
}
