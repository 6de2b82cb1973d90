import ImageServerNIO
import Testing

@Suite struct ListenAddressTests {
    @Test(arguments: [
        ("127.0.0.1:8080", "127.0.0.1", 8080), ("[::1]:0", "::1", 0), ("localhost:65535", "localhost", 65_535),
    ])
    func `host and port are read`(_ text: String, _ host: String, _ port: Int) {
        #expect(ListenAddress(text) == ListenAddress(host: host, port: port))
        #expect(ListenAddress(text)?.description == text)
    }

    @Test(arguments: ["", "8080", ":8080", "h:", "h:65536", "h:-1", "::1:80", "[::1]", "h:8o", "a b:1", "http://h:1"])
    func `what is no address is refused`(_ text: String) { #expect(ListenAddress(text) == nil) }
}
