@testable import PipelineFetching
import Synchronization
import TestSupport
import Testing

@testable import Pipeline

/// Origins that accept and never answer, or send a byte now and then, beside one that answers.
struct SlowOriginTests {
    @Test(arguments: ["silent", "a byte at a time"])
    func `three slow origins with six loads each do not hold up another one`(how: String) async throws {
        let slow = try (0..<3).map { _ in
            try LoopbackOrigin { _ in
                how == "silent"
                    ? .hang
                    : .raw(
                        "HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\n",
                        then: [.slowly([65], milliseconds: 200)])
            }
        }
        defer { for origin in slow { origin.stop() } }
        try await withOrigin { _ in
            .response(200)
        } _: { good, transport in
            let ended = Atomic<Int>(0)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for origin in slow {
                    for number in 0..<6 {
                        let request = FetchRequest(url: try SourceURL(origin.url("/\(number)")))
                        group.addTask { @Sendable in
                            _ = try? await transport.fetch(request)
                            ended.add(1, ordering: .relaxed)
                        }
                    }
                }
                // As many as there are slots.
                try await waitWhile { slow.reduce(0) { $0 + $1.requests.count } < 16 }
                let response = try await transport.fetch(FetchRequest(url: SourceURL(good.url("/"))))
                #expect(response.status == 200 && ended.load(ordering: .relaxed) == 0)
                group.cancelAll()
            }
        }
    }

    @Test(arguments: [750, 5_000]) func `origins that drip do not hold up another one`(bytes: Int) async throws {
        // Every 50 ms: 15 and 100 kB/s.
        let slow = try (0..<12).map { number in
            try LoopbackOrigin(host: "127.1.\(number).1") { _ in
                .raw(
                    "HTTP/1.1 200 OK\r\nContent-Length: 90000000\r\n\r\n",
                    then: [.slowly([UInt8](repeating: 65, count: bytes), milliseconds: 50)])
            }
        }
        defer { for origin in slow { origin.stop() } }
        try await withOrigin {
            $0.maxConcurrentTransfers = 4
        } handler: { _ in
            .response(200)
        } _: { good, transport in
            let ended = Atomic<Int>(0)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<36 {
                    let request = FetchRequest(url: try SourceURL(slow[number % 12].url("/\(number)")))
                    group.addTask { @Sendable in
                        _ = try? await transport.fetch(request)
                        ended.add(1, ordering: .relaxed)
                    }
                }
                try await waitWhile { slow.reduce(0) { $0 + $1.requests.count } < 4 }
                let response = try await transport.fetch(FetchRequest(url: SourceURL(good.url("/"))))
                #expect(response.status == 200 && ended.load(ordering: .relaxed) == 0)
                group.cancelAll()
            }
        }
    }

    @Test func `a name that leads to a network with all it may have waits until that has room`() async throws {
        let silent = try RefusingPort(host: "127.1.0.1", listens: true)
        let honest = try LoopbackOrigin(host: "127.1.0.2", port: UInt16(silent.port)) { _ in .response(200) }
        defer { honest.stop() }
        let looked = Mutex<[String: Int]>([:])
        var hooks = TransportHooks()
        hooks.addresses = { host, _ in
            looked.withLock { $0[host, default: 0] += 1 }
            return [host == "honest.test" ? "127.1.0.2" : "127.1.0.1"]
        }
        var configuration = FetchConfiguration()
        // 32 transfers in all, and eight in one network.
        configuration.maxConcurrentTransfers = 1
        configuration.allowPrivateAddresses = .all
        (configuration.headTimeout, configuration.totalTimeout) = (.seconds(300), .seconds(300))
        let transport = CurlTransport(configuration, hooks: hooks)
        defer { transport.shutdown() }
        let fetch = { @Sendable (host: String) in
            let url = try SourceURL("http://\(host).test:\(silent.port)/")
            return try await transport.fetch(FetchRequest(url: url)).status
        }
        let holding = (0..<8).map { number in Task { try await fetch("silent\(number)") } }
        try await waitWhile { looked.withLock { $0.count } < 8 }
        let waiting = Task { try await fetch("honest") }
        try await waitWhile { looked.withLock { $0["honest.test"] } == nil || transport.waiting == 0 }
        #expect(honest.connections == 0)
        holding[3].cancel()
        #expect(try await waiting.value == 200)
        #expect(looked.withLock { $0["honest.test"] } == 2 && transport.waiting == 0)
        for task in holding { task.cancel() }
        for task in holding { _ = try? await task.value }
    }

    @Test func `at the limit the one that has been slow longest gives way to an origin without any`() async throws {
        let first = try LoopbackOrigin { _ in .hang }
        defer { first.stop() }
        let others = try (0..<32).map { try RefusingPort(host: "127.1.\($0).1", listens: true) }
        try await withOrigin {
            $0.maxConcurrentTransfers = 1
            // A transfer gives way after a quarter of this; a machine that is busy must not use up the rest.
            ($0.headTimeout, $0.totalTimeout) = (.seconds(20), .seconds(60))
        } handler: { _ in
            .response(200)
        } _: { good, transport in
            try await withThrowingTaskGroup(of: (Int, FetchError?).self) { group in
                for (number, url) in ([first.url("/")] + others.map { $0.url("/") }).enumerated() {
                    let request = FetchRequest(url: try SourceURL(url))
                    group.addTask {
                        do throws(FetchError) {
                            _ = try await transport.fetch(request)
                            return (number, nil)
                        } catch {
                            return (number, error)
                        }
                    }
                    try await waitWhile { first.requests.isEmpty }
                }
                let (number, error) = try #require(try await group.next())
                #expect(number == 0 && error?.code == .timeout, "\(String(describing: error))")
                #expect(error?.message.contains("was stopped") == true, "\(String(describing: error))")
                #expect(error.map { PipelineError($0).code } == .fetchTimedOut)
                let response = try await transport.fetch(FetchRequest(url: SourceURL(good.url("/"))))
                #expect(response.status == 200)
                group.cancelAll()
            }
        }
    }
}
