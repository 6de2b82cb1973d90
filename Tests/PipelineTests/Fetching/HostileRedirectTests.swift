@testable import PipelineFetching
import Synchronization
import TestSupport
import Testing

@testable import Pipeline

/// Redirects to addresses that must not be reached, in a network of their own where a server listens at each of them:
/// were the rule to fail, its request counter would tell, and nothing would leave the machine.
@Suite(.enabled(if: LoneNetwork.isPermitted))
struct HostileRedirectTests {
    private static let planted = [
        "169.254.169.254", "10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "198.18.0.1", "192.0.2.1", "8.8.8.8",
    ]

    /// An origin at 127.0.0.1 that redirects to `location(port)`, and a server at every planted address.
    private func requestsInside(
        allow: (_ origin: Int) -> [String], _ location: (_ inside: Int) -> String
    ) async throws -> (inside: Int, code: FetchError.Code?) {
        let network = try #require(LoneNetwork(addresses: Self.planted))
        let inside = try network.origin(host: "0.0.0.0") { _ in .response(200, body: Array("secret".utf8)) }
        defer { inside.stop() }
        let target = location(inside.port)
        let origin = try network.origin { _ in .response(302, ["Location": target]) }
        defer { origin.stop() }
        var configuration = FetchConfiguration()
        configuration.allowPrivateAddresses = try AddressRule(allow(origin.port))
        configuration.breaker = nil
        var hooks = TransportHooks()
        // Asked on the thread that opens the sockets, before the first of them.
        hooks.dials = { _, _ in network.enter() }
        let transport = CurlTransport(configuration, hooks: hooks)
        defer { transport.shutdown() }
        let request = FetchRequest(url: try SourceURL(origin.url("/")))
        var code: FetchError.Code?
        do throws(FetchError) {
            _ = try await transport.fetch(request)
        } catch {
            code = error.code
        }
        #expect(origin.requests.count == 1)
        return (inside.requests.count, code)
    }

    @Test(arguments: [
        "169.254.169.254", "0xa9fea9fe", "2852039166", "0251.0376.0251.0376", "169.254.43518", "10.0.0.1", "10.1",
        "172.16.0.1", "192.168.1.1", "192.168.257", "100.64.0.1", "198.18.0.1", "192.0.2.1", "127.0.0.1", "127.1",
        "0.0.0.0", "0", "localhost", "[::ffff:169.254.169.254]", "[::ffff:a00:1]", "[::169.254.169.254]",
        "[64:ff9b::a9fe:a9fe]", "[2002:a9fe:a9fe::]", "user@169.254.169.254", "169.254.169.254.",
    ])
    func `a redirect into the network reaches no host`(host: String) async throws {
        let (inside, code) = try await requestsInside {
            ["127.0.0.1:\($0)"]
        } _: {
            "http://\(host):\($0)/latest"
        }
        #expect(inside == 0)
        // Where the system has no IPv6, no socket is asked for and the host has no address.
        #expect(
            code == .refusedAddress || code == .badRedirect || (host.hasPrefix("[") && code == .unresolvable),
            "\(String(describing: code))")
    }

    @Test(arguments: [("8.8.8.8", []), ("10.0.0.1", ["10.0.0.0/8"])] as [(String, [String])])
    func `a redirect to an address that is allowed arrives`(host: String, allowed: [String]) async throws {
        let (inside, code) = try await requestsInside {
            ["127.0.0.1:\($0)"] + allowed
        } _: {
            "http://\(host):\($0)/latest"
        }
        #expect(inside == 1 && code == nil)
    }

    @Test func `a name whose addresses change after the first answer is refused at the second`() async throws {
        let network = try #require(LoneNetwork(addresses: Self.planted))
        let inside = try network.origin(host: "0.0.0.0") { request in
            request.path == "/a" ? .response(302, ["Location": "/b", "Connection": "close"]) : .response(200)
        }
        defer { inside.stop() }
        var configuration = FetchConfiguration()
        configuration.breaker = nil
        let asked = Mutex(0)
        var hooks = TransportHooks()
        hooks.dials = { _, _ in network.enter() }
        hooks.addresses = { _, _ in
            asked.withLock { count in
                count += 1
                return [count == 1 ? "8.8.8.8" : "169.254.169.254"]
            }
        }
        let transport = CurlTransport(configuration, hooks: hooks)
        defer { transport.shutdown() }
        let code = try await failure(transport, "http://rebinding.example:\(inside.port)/a").code
        #expect(code == .refusedAddress)
        #expect(inside.requests.map(\.path) == ["/a"])
    }
}
