import HTTPCaching
import Testing

@testable import ImageServer

@Suite struct RequestAdmissionTests {
    private func admit(
        _ target: String = "/health", version: (Int, Int) = (1, 1), host: String? = "h",
        fields: [HeaderField] = []
    ) throws(Problem) -> RequestAdmission {
        try RequestAdmission(
            method: "GET", target: target, version: version,
            fields: (host.map { [HeaderField("Host", $0)] } ?? []) + fields, bodyLimit: 65_536)
    }

    private func kind(_ body: () throws(Problem) -> RequestAdmission) -> Problem.Kind? {
        do throws(Problem) {
            _ = try body()
            return nil
        } catch {
            return error.kind
        }
    }

    @Test(arguments: [
        ("/a?b", "/a?b"), ("http://h/a/b?c", "/a/b?c"), ("HTTP://h:80", "/"), ("https://h?x", "/?x"),
    ])
    func `targets in origin and absolute form are taken`(_ target: String, _ expected: String) throws {
        #expect(try admit(target).request.target == expected)
    }

    @Test(arguments: ["*", "h:80", "ftp://h/a", "http://", "a/b", "/a#b", "/ä", "/a b", "/a\u{7F}"])
    func `other targets are malformed`(_ target: String) {
        #expect(kind { () throws(Problem) in try admit(target) } == .malformedRequest)
    }

    @Test func `a target has at most 8 kB`() throws {
        let longest = "/" + String(repeating: "a", count: 8191)
        #expect(try admit(longest).request.target == longest)
        #expect(kind { () throws(Problem) in try admit(longest + "a") } == .targetTooLong)
    }

    @Test func `HTTP/1.1 needs exactly one valid Host (RFC 9112 §3.2)`() throws {
        #expect(kind { () throws(Problem) in try admit(host: nil) } == .malformedRequest)
        #expect(kind { () throws(Problem) in try admit(fields: [HeaderField("host", "h")]) } == .malformedRequest)
        for host in ["a b", "a/b", "a@b", "a,b", "ä"] {
            #expect(kind { () throws(Problem) in try admit(host: host) } == .malformedRequest)
        }
        for host in ["", "h:80", "[::1]:80"] { _ = try admit(host: host) }
        _ = try admit(version: (1, 0), host: nil)
    }

    @Test func `HTTP/1.1 keeps the connection unless told otherwise, HTTP/1.0 only when asked`() throws {
        #expect(try admit().keepsAlive && !admit().announcesKeepAlive)
        #expect(try !admit(fields: [HeaderField("Connection", "foo, Close")]).keepsAlive)
        #expect(try !admit(version: (1, 0)).keepsAlive)
        let asked = try admit(version: (1, 0), fields: [HeaderField("Connection", "Keep-Alive")])
        #expect(asked.keepsAlive && asked.announcesKeepAlive)
    }

    @Test func `small bodies are read, large ones refused, awaited ones left`() throws {
        let small = try admit(fields: [HeaderField("Content-Length", "10")])
        #expect(small.readsBody && small.keepsAlive)
        #expect(try admit(fields: [HeaderField("Transfer-Encoding", "chunked")]).readsBody)
        #expect(
            kind { () throws(Problem) in try admit(fields: [HeaderField("Content-Length", "65537")]) } == .bodyTooLarge)
        let waiting = try admit(fields: [HeaderField("Content-Length", "10"), HeaderField("Expect", "100-continue")])
        #expect(!waiting.readsBody && waiting.leavesBody && !waiting.keepsAlive)
        #expect(try !admit(fields: [HeaderField("Upgrade", "h2c")]).keepsAlive)
    }
}
