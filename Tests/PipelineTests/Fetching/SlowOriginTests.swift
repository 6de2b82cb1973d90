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

    @Test func `when all are slow and another waits, the one that has been slow longest fails`() async throws {
        let slow = try (0..<5).map { _ in try LoopbackOrigin { _ in .hang } }
        defer { for origin in slow { origin.stop() } }
        try await withOrigin {
            $0.slots = 1
            // A transfer gives way after a quarter of this; a machine that is busy must not use up the rest.
            $0.headerSeconds = 40
        } handler: { _ in
            .response(200)
        } _: { good, transport in
            try await withThrowingTaskGroup(of: (Int, FetchError?).self) { group in
                for (number, origin) in slow.enumerated() {
                    let request = FetchRequest(url: try SourceURL(origin.url("/")))
                    group.addTask {
                        do throws(FetchError) {
                            _ = try await transport.fetch(request)
                            return (number, nil)
                        } catch {
                            return (number, error)
                        }
                    }
                    try await waitWhile { origin.requests.isEmpty }
                }
                let response = try await transport.fetch(FetchRequest(url: SourceURL(good.url("/"))))
                #expect(response.status == 200)
                let (first, error) = try #require(try await group.next())
                #expect(first == 0 && error?.code == .timeout, "\(String(describing: error))")
                #expect(error?.message.contains("gave way") == true, "\(String(describing: error))")
                #expect(error.map { PipelineError($0).code } == .fetchTimedOut)
                group.cancelAll()
            }
        }
    }
}
