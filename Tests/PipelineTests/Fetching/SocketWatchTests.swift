@testable import PipelineFetching
import Glibc
import Testing

@testable import Pipeline

struct SocketWatchTests {
    /// CURL_POLL_IN, CURL_POLL_OUT and CURL_POLL_REMOVE; CURL_CSELECT_IN and CURL_CSELECT_OUT are the first two again.
    private static let (reading, writing, gone): (Int32, Int32, Int32) = (1, 2, 4)

    @Test func `each socket is reported while it is watched, for what it is watched`() throws {
        let watch = try #require(SocketWatch())
        var pairs: [[Int32]] = []
        defer { for end in pairs.joined() { close(end) } }
        for _ in 0..<3 {
            var ends: [Int32] = [-1, -1]
            try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
            pairs.append(ends)
            watch.watch(ends[0], for: Self.reading)
        }
        #expect(watch.wait(milliseconds: 0).isEmpty)
        for pair in pairs { #expect(write(pair[1], "x", 1) == 1) }
        #expect(Set(watch.wait(milliseconds: 0).map(\.socket)) == Set(pairs.map { $0[0] }))

        watch.watch(pairs[0][0], for: Self.gone)
        #expect(Set(watch.wait(milliseconds: 0).map(\.socket)) == [pairs[1][0], pairs[2][0]])
        watch.watch(pairs[2][0], for: Self.writing)
        let ready = watch.wait(milliseconds: 0).map { [$0.socket, $0.bits] }
        #expect(Set(ready) == [[pairs[1][0], Self.reading], [pairs[2][0], Self.writing]])
    }

    @Test func `the other end's leaving is told as something to read`() throws {
        let watch = try #require(SocketWatch())
        var ends: [Int32] = [-1, -1]
        try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
        defer { close(ends[0]) }
        watch.watch(ends[0], for: Self.reading)
        close(ends[1])
        #expect(watch.wait(milliseconds: 0).map(\.bits) == [Self.reading])
    }
}
