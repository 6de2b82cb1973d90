@testable import PipelineFetching
import Synchronization
import TestSupport
import Testing

@testable import Pipeline

/// A transport with names that lead where a test wants, and that connects only to loopback.
private func transport(
    allow: [String], addresses: @escaping @Sendable (String) -> [String]?,
    dialled: @escaping @Sendable (IPAddress) -> Void = { _ in }
) throws -> CurlTransport {
    var configuration = FetchConfiguration()
    configuration.allowPrivateAddresses = try AddressRule(allow)
    configuration.breaker = nil
    var hooks = TransportHooks()
    hooks.addresses = { host, _ in addresses(host) }
    hooks.dials = { address, _ in
        dialled(address)
        return AddressPolicy.classify(address) == .loopback
    }
    return CurlTransport(configuration, hooks: hooks)
}

struct AddressRuleTests {
    @Test(arguments: [
        "127.0.0.1", "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7F.1", "0177.0.0.1", "017700000001",
        "0x7f.0x0.0x0.0x1", "127.0.0.1.", "localhost", "LOCALHOST", "[::1]", "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]", "[64:ff9b:1::7f00:1]", "[2002:7f00:1::]",
        "[2001:0:7f00:1::]", "[::ffff:0:7f00:1]", "[fe80::1]", "[fec0::1]", "[fd00::1]", "[ff02::1]", "[2001:db8::1]",
        "[::]", "0", "0.0.0.0", "0x0", "10.1", "10.0.0.1", "012.0.0.1", "0xa000001", "172.16.1", "192.168.257",
        "169.254.169.254",
        "2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "100.64.0.1", "192.0.2.1", "198.18.0.1", "198.51.100.7",
        "203.0.113.9", "224.0.0.1", "240.0.0.1", "255.255.255.255", "4294967295", "192.0.0.192",
    ])
    func `no spelling of a refused address leads to a connection`(host: String) async throws {
        let transport = try transport(allow: []) { _ in
            nil
        } dialled: { address in
            Issue.record("\(address) would have been connected to")
        }
        defer { transport.shutdown() }
        let error = try await failure(transport, "http://\(host):9/")
        // Where the system has no IPv6, no socket is asked for and the host has no address.
        #expect([.refusedAddress, .unresolvable].contains(error.code), "\(error)")
        if !host.contains("[") { #expect(error.code == .refusedAddress, "\(error)") }
    }

    @Test(arguments: [
        "[::1%25lo]", "[fe80::1%25eth0]", "[::1%lo]", "256.1.1.1", "1.2.3.4.5", "0x100000000", "4294967296",
        "127.0.0.256",
        "08.1", "1..2", "foo.1", "127.0.0.1..", "①②⑦.0.0.1", "127。0。0。1", "%31%32%37.0.0.1", "localhost%2f",
        "ｌocalhost",
    ])
    func `what is no proper host is no URL at all`(host: String) {
        #expect(throws: SourceError.self) { try SourceURL("http://\(host)/") }
    }

    @Test func `among the addresses of a name only the allowed ones are connected to`() async throws {
        let inside = try LoopbackOrigin(host: "127.0.0.2") { _ in .response(200, body: Array("inside".utf8)) }
        defer { inside.stop() }
        let port = UInt16(inside.port)
        let outside = try LoopbackOrigin(host: "127.0.0.3", port: port) { _ in .response(200, body: Array("out".utf8)) }
        defer { outside.stop() }
        let transport = try transport(allow: ["127.0.0.3"]) { _ in ["127.0.0.2", "10.0.0.1", "127.0.0.3"] }
        defer { transport.shutdown() }
        let response = try await transport.fetch(FetchRequest(url: SourceURL("http://mixed.example:\(port)/")))
        #expect(response.body == Array("out".utf8))
        #expect(inside.connections == 0)
    }

    @Test func `a name that leads elsewhere at the second look-up is checked again`() async throws {
        let inside = try LoopbackOrigin(host: "127.0.0.2") { _ in .response(200) }
        defer { inside.stop() }
        let port = UInt16(inside.port)
        let outside = try LoopbackOrigin(host: "127.0.0.3", port: port) { _ in .response(200, ["Connection": "close"]) }
        defer { outside.stop() }
        let answers = Mutex([["127.0.0.3"], ["127.0.0.2"], ["127.0.0.3"]])
        let transport = try transport(allow: ["127.0.0.3"]) { _ in answers.withLock { $0.removeFirst() } }
        defer { transport.shutdown() }
        let url = "http://rebinding.example:\(port)/"
        let first = try await transport.fetch(FetchRequest(url: SourceURL(url)))
        let code = try await failure(transport, url).code
        let third = try await transport.fetch(FetchRequest(url: SourceURL(url)))
        #expect(first.status == 200 && code == .refusedAddress && third.status == 200)
        #expect(inside.connections == 0)
    }

    @Test func `a connection that one configuration may make is not lent to another`() async throws {
        try await withOrigin { _ in
            .response(200)
        } _: { origin, open in
            let response = try await open.fetch(FetchRequest(url: SourceURL(origin.url("/"))))
            #expect(response.status == 200)
            let strict = CurlTransport()
            defer { strict.shutdown() }
            let code = try await failure(strict, origin.url("/")).code
            #expect(code == .refusedAddress)
            #expect(origin.connections == 1)
        }
    }

    @Test func `a redirect may lead to a public address, which is seen before it is connected to`() async throws {
        let origin = try LoopbackOrigin { _ in .response(302, ["Location": "http://8.8.8.8/picture.jpg"]) }
        defer { origin.stop() }
        let dialled = Mutex<[String]>([])
        let transport = try transport(allow: ["127.0.0.1"]) { _ in
            nil
        } dialled: { address in
            dialled.withLock { $0.append(address.description) }
        }
        defer { transport.shutdown() }
        await #expect(throws: FetchError.self) {
            _ = try await transport.fetch(FetchRequest(url: SourceURL(origin.url("/"))))
        }
        #expect(dialled.withLock { $0 } == ["127.0.0.1", "8.8.8.8"])
    }

    @Test(arguments: [
        "http://10.0.0.1/", "http://169.254.169.254/latest/", "http://[::ffff:192.168.0.1]/", "http://0/",
    ])
    func `a redirect to a refused address is not followed, whatever its spelling`(location: String) async throws {
        let origin = try LoopbackOrigin { _ in .response(302, ["Location": location]) }
        defer { origin.stop() }
        let dialled = Mutex<[String]>([])
        let transport = try transport(allow: ["127.0.0.1"]) { _ in
            nil
        } dialled: { address in
            dialled.withLock { $0.append(address.description) }
        }
        defer { transport.shutdown() }
        let error = try await failure(transport, origin.url("/"))
        #expect([.refusedAddress, .unresolvable].contains(error.code), "\(error)")
        #expect(dialled.withLock { $0 } == ["127.0.0.1"])
    }
}
