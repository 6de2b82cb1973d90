import Synchronization

/// An origin on loopback that violates HTTP in a different way at each path, and behaves correctly at all other paths.
///
/// The origin counts the requests for each path, so a response can depend on the number of previous requests.
public final class HostileOrigin: Sendable {
    /// The misbehavior at the path `/` + name.
    public enum Misbehavior: String, CaseIterable, Sendable, CustomStringConvertible {
        case slowHead, endlessFields, silentAfterConnect, closesAtOnce, closesInHead, resetsBeforeHead
        case slowBody, trickle, endlessChunks, endlessBody, endlessChunkExtension, endlessTrailers
        case hugeLength, gzipBomb, lengthTooLong, lengthTooShort, chunkCutOff, resetsInBody
        case twoLengths, listOfLengths, negativeLength, overflowingLength, spacedLength, lengthAndChunks
        case unknownCoding, badChunk, overflowingChunk, chunkWithoutEnd
        case noHTTP, oldHTTP, badStatus, longStatus, hugeField, manyFields, malformedFields, lineWithoutColon,
            zeroInField
        case interimFlood, interims, unaskedPart, switchesProtocols, unaskedNotModified
        case redirectLoop, redirectMaze, redirectToFile, redirectWithEndlessBody
        case flapping, tooManyRequests, breaksOnce, changesWhileBroken, changesTags

        public var description: String { rawValue }
    }

    private let origin: LoopbackOrigin
    private let counts: Counts

    private final class Counts: Sendable {
        private let counts = Mutex<[String: Int]>([:])
        /// Counts a name and returns how often it was counted before.
        func next(_ name: String) -> Int {
            counts.withLock { counts in
                defer { counts[name, default: 0] += 1 }
                return counts[name, default: 0]
            }
        }
    }

    /// Starts listening.
    ///
    /// - Parameter good: The body of correct responses, for example a JPEG.
    public init(good: [UInt8]) throws(OriginError) {
        let counts = Counts()
        self.counts = counts
        origin = try LoopbackOrigin { request in
            let name = String(request.path.dropFirst().prefix { $0 != "/" })
            guard let misbehavior = Misbehavior(rawValue: name) else { return Self.whole(good) }
            return Self.reply(misbehavior, request, count: counts.next(name), good: good)
        }
    }

    /// Returns the URL of a misbehavior.
    public func url(_ misbehavior: Misbehavior) -> String { origin.url("/" + misbehavior.rawValue) }

    /// Returns a URL at which the origin behaves correctly. Each name is a different source.
    public func goodURL(_ name: String) -> String { origin.url("/good-" + name) }

    /// The requests received so far.
    public var requests: [OriginRequest] { origin.requests }

    /// Closes every connection and waits for all threads.
    public func stop() { origin.stop() }

    /// A gzip file of about 60 kB that decompresses to ten million zeros.
    public static let bomb: [UInt8] = {
        // An RFC 1952 header, then one block with fixed Huffman codes (RFC 1951 §3.2.6): a zero byte and copies of it.
        var bits = BitWriter(bytes: [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 255])
        bits.append(0b011, count: 3)  // last block, fixed codes
        bits.append(0b0000_1100, count: 8)  // literal 0, whose code 00110000 is packed starting with its highest bit
        for _ in 0..<38_760 {
            bits.append(0b1010_0011, count: 8)  // length 258, code 11000101
            bits.append(0, count: 5)  // distance 1
        }
        bits.append(0, count: 7)  // end of block
        bits.flush()
        return bits.bytes + [UInt8](repeating: 0, count: 8)
    }()

    private struct BitWriter {
        var bytes: [UInt8]
        private var held: UInt32 = 0
        private var count: UInt32 = 0

        init(bytes: [UInt8]) { self.bytes = bytes }

        mutating func append(_ value: UInt32, count added: UInt32) {
            held |= value << count
            count += added
            while count >= 8 {
                bytes.append(UInt8(truncatingIfNeeded: held))
                held >>= 8
                count -= 8
            }
        }

        mutating func flush() { if count > 0 { append(0, count: 8 - count) } }
    }
}

extension HostileOrigin {
    private static let ok = "HTTP/1.1 200 OK\r\nContent-Type: image/jpeg\r\nCache-Control: max-age=600\r\n"
    private static let chunked = ok + "Transfer-Encoding: chunked\r\n\r\n"
    private static let block = [UInt8](repeating: 0x41, count: 4096)

    private static func whole(_ body: [UInt8], _ extra: KeyValuePairs<String, String> = [:]) -> OriginReply {
        .response(
            200, Array(extra) + [("Content-Type", "image/jpeg"), ("Cache-Control", "max-age=600")], body: body)
    }

    /// Returns a 200 response. The connection closes after the first half of the body.
    private static func half(_ body: [UInt8], tag: String) -> OriginReply {
        let head = ok + "Content-Length: \(body.count)\r\nETag: \(tag)\r\nAccept-Ranges: bytes\r\n\r\n"
        return .raw(head, then: [.bytes(Array(body.prefix(body.count / 2)))])
    }

    /// Returns the part of a body that `Range: bytes=N-` requests.
    private static func rest(_ body: [UInt8], _ request: OriginRequest, tag: String) -> OriginReply {
        let first = min(body.count, Int(request["range"]?.filter(\.isNumber) ?? "") ?? 0)
        return .response(
            206,
            [
                "Content-Type": "image/jpeg", "Cache-Control": "max-age=600", "ETag": tag,
                "Content-Range": "bytes \(first)-\(body.count - 1)/\(body.count)",
            ], body: Array(body[first...]))
    }

    private static func reply(
        _ misbehavior: Misbehavior, _ request: OriginRequest, count: Int, good: [UInt8]
    ) -> OriginReply {
        switch misbehavior {
        case .slowHead: .raw("H", then: [.slowly([0x54], milliseconds: 1000)])
        case .endlessFields: .raw(ok, then: [.endless(Array("X-More: and more\r\n".utf8))])
        case .silentAfterConnect: .hang
        case .closesAtOnce: .close
        case .closesInHead: .raw(ok + "X-Cut: he")
        case .resetsBeforeHead: OriginReply(parts: [.reset], keepsAlive: false)
        case .slowBody: .raw(ok + "Content-Length: 9000\r\n\r\n", then: [.slowly([0x41], milliseconds: 1000)])
        case .trickle: .raw(ok + "Content-Length: 9000000\r\n\r\n", then: [.slowly(block, milliseconds: 50)])
        case .endlessChunks:
            .raw(chunked, then: [.endless(Array("1000\r\n".utf8) + block + Array("\r\n".utf8))])
        case .endlessBody: .raw(ok + "\r\n", then: [.endless(block)])
        case .endlessChunkExtension: .raw(chunked + "5;a=", then: [.slowly(block, milliseconds: 10)])
        case .endlessTrailers: .raw(chunked + "1\r\na\r\n0\r\n", then: [.endless(Array("X-Late: 1\r\n".utf8))])
        case .hugeLength: .raw(ok + "Content-Length: 10000000000\r\n\r\n", then: [.hang])
        case .gzipBomb: whole(bomb, ["Content-Encoding": "gzip"])
        case .lengthTooLong: .raw(ok + "Content-Length: 100\r\n\r\nabc")
        case .lengthTooShort: .raw(ok + "Content-Length: 3\r\n\r\nabcHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx")
        case .chunkCutOff: .raw(chunked + "5\r\nab")
        case .resetsInBody: .raw(ok + "Content-Length: 90000\r\n\r\n", then: [.bytes(block), .reset])
        case .twoLengths: .raw(ok + "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd")
        case .listOfLengths: .raw(ok + "Content-Length: 3, 4\r\n\r\nabcd")
        case .negativeLength: .raw(ok + "Content-Length: -3\r\n\r\nabc")
        case .overflowingLength: .raw(ok + "Content-Length: 18446744073709551619\r\n\r\nabc")
        case .spacedLength: .raw(ok + "Content-Length : 3\r\n\r\nabc")
        case .lengthAndChunks: .raw(ok + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n")
        case .unknownCoding: .raw(ok + "Transfer-Encoding: gzip, chunked\r\n\r\n1\r\na\r\n0\r\n\r\n")
        case .badChunk: .raw(chunked + "zz\r\nabc\r\n0\r\n\r\n")
        case .overflowingChunk: .raw(chunked + "FFFFFFFFFFFFFFFFFF\r\nabc\r\n0\r\n\r\n")
        case .chunkWithoutEnd: .raw(chunked + "3\r\nabcdef\r\n0\r\n\r\n")
        case .noHTTP: .raw("hello there, this is not HTTP\r\n")
        case .oldHTTP: .raw("<html>what HTTP/0.9 would answer</html>")
        case .badStatus: .raw("HTTP/1.1 abc OK\r\nContent-Length: 1\r\n\r\na")
        case .longStatus: .raw("HTTP/1.1 2000 OK\r\nContent-Length: 1\r\n\r\na")
        case .hugeField:
            .raw(
                ok + "X-Huge: ", then: [.bytes([UInt8](repeating: 0x61, count: 2_000_000)), .bytes([13, 10, 13, 10])])
        case .manyFields:
            .raw(ok + String(repeating: "a: b\r\n", count: 1001) + "Content-Length: 3\r\n\r\nabc")
        case .malformedFields:
            .raw(
                ok + ": no name\r\nX Space: 1\r\nX-Fine: a\u{1}b\r\n folded\r\n\u{7}: bell\r\n"
                    + "Content-Length: 3\r\n\r\nabc", keepsAlive: true)
        case .lineWithoutColon: .raw(ok + "no colon here\r\nContent-Length: 3\r\n\r\nabc")
        case .zeroInField: .raw(ok + "X-Zero: a\0b\r\nContent-Length: 3\r\n\r\nabc")
        case .interimFlood: OriginReply(parts: [.endless(Array("HTTP/1.1 103 x\r\n\r\n".utf8))], keepsAlive: false)
        case .interims:
            .raw(
                String(repeating: "HTTP/1.1 102 Processing\r\nX-Interim: 1\r\n\r\n", count: 20) + ok
                    + "Content-Length: 3\r\n\r\nabc", keepsAlive: true)
        case .unaskedPart: .raw("HTTP/1.1 206 Part\r\nContent-Range: bytes 0-0/9\r\nContent-Length: 1\r\n\r\na")
        case .switchesProtocols: .raw("HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nwhatever")
        case .unaskedNotModified: .response(304, ["ETag": "\"a\"", "Cache-Control": "max-age=600"])
        case .redirectLoop: .response(302, ["Location": request.target.hasSuffix("?a") ? "?b" : "?a"])
        case .redirectMaze: .response(302, ["Location": "/redirectMaze/\(count)"])
        case .redirectToFile: .response(302, ["Location": "file:///etc/passwd"])
        case .redirectWithEndlessBody: .raw("HTTP/1.1 302 Away\r\nLocation: /good\r\n\r\n", then: [.endless(block)])
        case .flapping: count % 2 == 0 ? .response(503) : whole(good)
        case .tooManyRequests: count % 2 == 0 ? .response(429, ["Retry-After": "0"]) : whole(good)
        case .breaksOnce:
            request["range"] != nil && request["if-range"] == "\"same\""
                ? rest(good, request, tag: "\"same\"") : half(good, tag: "\"same\"")
        case .changesWhileBroken:
            // Responds to a range request with a range of a different version, which If-Range forbids. Later, sends the
            // complete body.
            request["range"] != nil
                ? rest(good, request, tag: "\"other\"") : count == 0 ? half(good, tag: "\"one\"") : whole(good)
        case .changesTags: half(good, tag: "\"\(count)\"")
        }
    }
}
