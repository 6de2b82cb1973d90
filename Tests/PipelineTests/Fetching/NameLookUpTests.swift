@testable import PipelineFetching
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Pipeline

/// Name servers in a network of their own that never answer.
private final class SilentNameServers: Sendable {
    private let sockets: [Int32]

    /// Listens where this machine has its name servers.
    init?(_ network: LoneNetwork) {
        let sockets = network.run {
            Self.addresses.map { text in
                let descriptor = socket(AF_INET, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
                var address = sockaddr_in()
                address.sin_family = sa_family_t(AF_INET)
                address.sin_port = UInt16(53).bigEndian
                inet_pton(AF_INET, text, &address.sin_addr)
                return withUnsafePointer(to: &address) { pointer in
                    pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                        bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0 ? descriptor : -1
                    }
                }
            }
        }
        guard let sockets, sockets.allSatisfy({ $0 >= 0 }) else { return nil }
        self.sockets = sockets
    }

    deinit { for socket in sockets { close(socket) } }

    /// Reads all questions that have come; whether there was any.
    func wereAsked() -> Bool {
        var (buffer, wereAsked) = ([UInt8](repeating: 0, count: 512), false)
        for socket in sockets {
            while recv(socket, &buffer, buffer.count, Int32(MSG_DONTWAIT)) > 0 { wereAsked = true }
        }
        return wereAsked
    }

    /// The IPv4 addresses of /etc/resolv.conf (resolv.conf(5)).
    static let addresses: [String] = {
        guard let file = fopen("/etc/resolv.conf", "r") else { return ["127.0.0.1"] }
        defer { fclose(file) }
        var (text, buffer) = ("", [CChar](repeating: 0, count: 512))
        while fgets(&buffer, 512, file) != nil {
            text += String(decoding: buffer.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
        }
        let words = text.split(separator: "\n").map { $0.split { $0 == " " || $0 == "\t" } }
        let named = words.filter { $0.count > 1 && $0[0] == "nameserver" }.map { String($0[1]) }
        return named.isEmpty ? ["127.0.0.1"] : named.filter { !$0.contains(":") }
    }()
}

@Suite(.enabled(if: LoneNetwork.isPermitted && !SilentNameServers.addresses.isEmpty))
struct NameLookUpTests {
    /// Runs `body` with silent name servers, a transport that asks them, and a request to an origin without a name.
    private func withSilentNames(
        _ body: (SilentNameServers, CurlTransport, FetchRequest) async throws -> Void
    ) async throws {
        let network = try #require(LoneNetwork(addresses: SilentNameServers.addresses))
        let servers = try #require(SilentNameServers(network))
        let origin = try network.origin { _ in .response(200) }
        defer { origin.stop() }
        var configuration = FetchConfiguration()
        configuration.allowPrivateAddresses = .all
        configuration.breaker = nil
        configuration.connectTimeout = .seconds(0.5)
        var hooks = TransportHooks()
        // Called on the thread that starts look-ups, before the first of them.
        hooks.addresses = { _, _ in network.enter() ? nil : ["127.0.0.1"] }
        let transport = CurlTransport(configuration, hooks: hooks)
        defer { transport.shutdown() }
        try await body(servers, transport, FetchRequest(url: try SourceURL(origin.url("/"))))
    }

    @Test func `look-ups without an answer are bounded, in all and for each domain`() {
        let lookUps = LookUpLimiter()
        for number in 0..<LookUpLimiter.domainLimit {
            #expect(lookUps.refusal(of: "\(number).silent.example", now: 0) == nil)
            lookUps.giveUp("\(number).silent.example", now: 0)
        }
        #expect(lookUps.refusal(of: "new.silent.example", now: 1)?.contains("`silent.example`") == true)
        #expect(lookUps.refusal(of: "pictures.example", now: 1) == nil)
        #expect(lookUps.refusal(of: "new.silent.example", now: 31) == nil)
        for number in 0..<LookUpLimiter.limit { lookUps.giveUp("a.host\(number).example", now: 31) }
        #expect(lookUps.refusal(of: "pictures.example", now: 32) != nil)
        #expect(lookUps.refusal(of: "pictures.example", now: 62) == nil)
    }

    // The C library gives up after ten seconds and more.

    @Test func `a look-up that gets no answer ends its own fetch in time and holds up no other`() async throws {
        try await withSilentNames { servers, transport, good in
            let began = ContinuousClock.now
            let isDone = Atomic(false)
            let asking = Task {
                defer { isDone.store(true, ordering: .releasing) }
                return try await failure(transport, "http://pictures.invalid/a.jpg")
            }
            var slowest = Duration.zero
            repeat {
                let start = ContinuousClock.now
                let response = try await transport.fetch(good)
                #expect(response.status == 200)
                slowest = max(slowest, start.duration(to: .now))
            } while !isDone.load(ordering: .acquiring)
            let error = try await asking.value
            #expect(error.code == .connectTimeout)
            #expect(servers.wereAsked())
            #expect(slowest < .seconds(6) && began.duration(to: .now) < .seconds(6))
        }
    }

    @Test func `a fetch that is cancelled during its look-up holds up no other`() async throws {
        try await withSilentNames { servers, transport, good in
            let leaving = Task { try await failure(transport, "http://pictures.invalid/a.jpg") }
            try await waitWhile { !servers.wereAsked() }
            leaving.cancel()
            let start = ContinuousClock.now
            let response = try await transport.fetch(good)
            #expect(response.status == 200 && start.duration(to: .now) < .seconds(6))
            let error = try await leaving.value
            #expect(error.code == .cancelled)
        }
    }
}
