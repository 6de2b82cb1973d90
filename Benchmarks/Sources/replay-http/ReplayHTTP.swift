import Glibc
import Synchronization
import Traces

/// Replays a request trace against an HTTP cache and checks every answer.
///
///     replay-http origin TRACE.gz COUNT              serves the objects; prints its port
///     replay-http ask TRACE.gz COUNT PORT PREFIX     sends the first COUNT requests over 8 connections
///     replay-http held TRACE.gz COUNT PORT PREFIX    requests each of these objects with `only-if-cached`
///
/// An object's path is PREFIX followed by its key; ports are on 127.0.0.1. `ask` fails unless every response is a 200
/// with the object's length and first bytes, which are its key. `held` prints how many objects the cache answers with a
/// 200, and their total bytes. The origin answers `/count` with the number of object requests so far.
@main
struct ReplayHTTP {
    static func main() {
        do throws(ReplayError) {
            try run(Array(CommandLine.arguments.dropFirst()))
        } catch {
            let message = Array("replay-http: \(error.message)\n".utf8)
            _ = write(STDERR_FILENO, message, message.count)
            exit(1)
        }
    }

    static func run(_ arguments: [String]) throws(ReplayError) {
        guard arguments.count >= 3, let count = Int(arguments[2]), count > 0 else {
            throw ReplayError("usage: replay-http origin|ask|held TRACE.gz COUNT [PORT PREFIX]")
        }
        let trace = try Trace(path: arguments[1])
        let (keys, sizes) = (Array(trace.requests.prefix(count)), trace.sizes)
        switch (arguments[0], arguments.count) {
        case ("origin", 3): try Origin(sizes: sizes).serve()
        case ("ask", 5):
            try eachKey(keys, port: arguments[3]) { connection, key throws(ReplayError) in
                let answer = try connection.get(arguments[4] + "\(key)")
                let size = sizes[Int(key)]
                guard answer.status == 200, answer.length == size, answer.start == start(of: key, size: size) else {
                    throw ReplayError("object \(key) of \(size) bytes: status \(answer.status), \(answer.length) bytes")
                }
            }
        case ("held", 5):
            let held = Atomic<Int>(0)
            let bytes = Atomic<Int>(0)
            try eachKey(Set(keys).sorted(), port: arguments[3]) { connection, key throws(ReplayError) in
                let answer = try connection.get(arguments[4] + "\(key)", fields: "Cache-Control: only-if-cached\r\n")
                guard answer.status == 200 else { return }
                held.add(1, ordering: .relaxed)
                bytes.add(answer.length, ordering: .relaxed)
            }
            print(held.load(ordering: .relaxed), bytes.load(ordering: .relaxed))
        default: throw ReplayError("`\(arguments[0])` takes other arguments")
        }
    }

    /// Calls `body` with each key in turn, on whichever of 8 connections is idle.
    static func eachKey(
        _ keys: [UInt32], port text: String, body: @escaping @Sendable (Connection, UInt32) throws(ReplayError) -> Void
    ) throws(ReplayError) {
        guard let port = UInt16(text) else { throw ReplayError("`\(text)` is not a port") }
        let work = Work(keys: keys, port: port, body: body)
        let threads = (0..<8).map { _ in startThread { work.run() } }
        for thread in threads { pthread_join(thread, nil) }
        if let failure = work.failure.withLock({ $0 }) { throw failure }
    }

    /// The first bytes of an object, which make its digest unique; zeros follow.
    static func start(of key: UInt32, size: Int) -> [UInt8] { Array("\(key) ".utf8.prefix(size)) }
}

private final class Job {
    let run: () -> Void
    init(_ run: @escaping () -> Void) { self.run = run }
}

func startThread(_ run: @escaping @Sendable () -> Void) -> pthread_t {
    var thread = pthread_t()
    let job = Unmanaged.passRetained(Job(run)).toOpaque()
    pthread_create(
        &thread, nil,
        {
            Unmanaged<Job>.fromOpaque($0!).takeRetainedValue().run(); return nil
        }, job)
    return thread
}

/// A queue of keys that threads take one by one.
final class Work: Sendable {
    let keys: [UInt32]
    let port: UInt16
    let body: @Sendable (Connection, UInt32) throws(ReplayError) -> Void
    let next = Atomic<Int>(0)
    let failure = Mutex<ReplayError?>(nil)

    init(keys: [UInt32], port: UInt16, body: @escaping @Sendable (Connection, UInt32) throws(ReplayError) -> Void) {
        (self.keys, self.port, self.body) = (keys, port, body)
    }

    func run() {
        do throws(ReplayError) {
            let connection = try Connection(port: port)
            while failure.withLock({ $0 == nil }) {
                let at = next.add(1, ordering: .relaxed).oldValue
                if at >= keys.count { break }
                try body(connection, keys[at])
            }
        } catch {
            failure.withLock { $0 = error }
        }
    }
}

/// A persistent connection to a port of this machine.
final class Connection {
    struct Response {
        var status: Int
        var length: Int
        var start: [UInt8]
    }

    private let socket: CInt
    private let host: String
    private var buffer = [UInt8](repeating: 0, count: 1 << 18)
    private var filled = 0

    init(port: UInt16) throws(ReplayError) {
        host = "127.0.0.1:\(port)"
        socket = Glibc.socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
        let isConnected = withLoopbackAddress(port: port) { connect(socket, $0, $1) == 0 }
        sendAtOnce(socket)
        if !isConnected { throw ReplayError("cannot connect to \(host): \(String(cString: strerror(errno)))") }
    }

    deinit { close(socket) }

    func get(_ path: String, fields: String = "") throws(ReplayError) -> Response {
        let request = Array("GET \(path) HTTP/1.1\r\nHost: \(host)\r\n\(fields)\r\n".utf8)
        guard send(socket, request, request.count, CInt(MSG_NOSIGNAL)) == request.count else {
            throw ReplayError("\(path): cannot send: \(String(cString: strerror(errno)))")
        }
        var end: Int?
        while end == nil {
            end = headEnd()
            if end == nil { try receive(path) }
        }
        let head = String(decoding: buffer[..<end!], as: UTF8.self).lowercased()
        let lines = head.split(separator: "\r\n")
        guard let status = lines.first?.split(separator: " ").dropFirst().first.flatMap({ Int($0) }),
            let length = lines.first(where: { $0.hasPrefix("content-length:") })?.dropFirst(15).split(separator: " ")
                .first.flatMap({ Int($0) })
        else { throw ReplayError("\(path): a response without a Content-Length: \(head)") }
        while filled < end! + min(16, length) { try receive(path) }
        let start = Array(buffer[end!..<min(filled, end! + 16)].prefix { $0 != 0 })
        var missing = length - (filled - end!)
        while missing > 0 {
            let count = recv(socket, &buffer, min(missing, buffer.count), 0)
            if count <= 0 { throw ReplayError("\(path): the response ends \(missing) bytes short") }
            missing -= count
        }
        if missing < 0 { throw ReplayError("\(path): \(-missing) bytes follow the body") }
        filled = 0
        return Response(status: status, length: length, start: start)
    }

    private func headEnd() -> Int? {
        let mark = Array("\r\n\r\n".utf8)
        guard filled >= 4 else { return nil }
        return (0...(filled - 4)).first { buffer[$0..<$0 + 4].elementsEqual(mark) }.map { $0 + 4 }
    }

    private func receive(_ path: String) throws(ReplayError) {
        let count = buffer.withUnsafeMutableBytes { recv(socket, $0.baseAddress! + filled, $0.count - filled, 0) }
        if count <= 0 { throw ReplayError("\(path): the connection closed in the middle of a response") }
        filled += count
    }
}

func withLoopbackAddress<Result>(port: UInt16, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result) -> Result {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    return withUnsafeBytes(of: &address) {
        body($0.baseAddress!.assumingMemoryBound(to: sockaddr.self), socklen_t($0.count))
    }
}

/// Disables Nagle's algorithm, so that a small write does not wait for the acknowledgement of the previous one.
func sendAtOnce(_ socket: CInt) {
    var on: CInt = 1
    setsockopt(socket, CInt(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<CInt>.size))
}

/// Serves objects by key, fresh for a day, with one thread per connection.
final class Origin: Sendable {
    private let sizes: [Int]
    private let requests = Atomic<Int>(0)
    /// As long as the longest object.
    private let zeros: [UInt8]

    init(sizes: [Int]) {
        self.sizes = sizes
        zeros = [UInt8](repeating: 0, count: sizes.max() ?? 0)
    }

    func serve() throws(ReplayError) {
        let listener = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
        guard withLoopbackAddress(port: 0, { bind(listener, $0, $1) }) == 0, listen(listener, 256) == 0 else {
            throw ReplayError("cannot listen: \(String(cString: strerror(errno)))")
        }
        var address = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        withUnsafeMutableBytes(of: &address) {
            _ = getsockname(listener, $0.baseAddress!.assumingMemoryBound(to: sockaddr.self), &length)
        }
        print(UInt16(bigEndian: address.sin_port))
        fflush(nil)
        while true {
            let client = accept(listener, nil, nil)
            guard client >= 0 else { continue }
            sendAtOnce(client)
            pthread_detach(
                startThread { [self] in
                    answer(client)
                    close(client)
                })
        }
    }

    private func answer(_ client: CInt) {
        var head: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 1 << 14)
        while true {
            let count = recv(client, &buffer, buffer.count, 0)
            if count <= 0 { return }
            head += buffer[..<count]
            guard head.suffix(4).elementsEqual("\r\n\r\n".utf8) else { continue }
            let path = head.split(separator: UInt8(ascii: " "), maxSplits: 2).dropFirst().first ?? []
            let name = String(decoding: path.dropFirst(), as: UTF8.self)
            head.removeAll(keepingCapacity: true)
            let isSent =
                if let key = UInt32(name), key < sizes.count { sendObject(key, to: client) } else {
                    sendCount(to: client)
                }
            if !isSent { return }
        }
    }

    private func sendObject(_ key: UInt32, to client: CInt) -> Bool {
        requests.add(1, ordering: .relaxed)
        let size = sizes[Int(key)]
        let start = ReplayHTTP.start(of: key, size: size)
        var answer = Array("HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nCache-Control: max-age=86400\r\n".utf8)
        answer += Array("Content-Length: \(size)\r\n\r\n".utf8) + start
        return sendAll(client, answer)
            && zeros.withUnsafeBytes { all in
                sendAll(client, UnsafeRawBufferPointer(rebasing: all[..<(size - start.count)]))
            }
    }

    private func sendCount(to client: CInt) -> Bool {
        let text = "\(requests.load(ordering: .relaxed))\n"
        return sendAll(client, Array("HTTP/1.1 200 OK\r\nContent-Length: \(text.utf8.count)\r\n\r\n\(text)".utf8))
    }

    private func sendAll(_ client: CInt, _ bytes: [UInt8]) -> Bool { bytes.withUnsafeBytes { sendAll(client, $0) } }

    private func sendAll(_ client: CInt, _ bytes: UnsafeRawBufferPointer) -> Bool {
        var sent = 0
        while sent < bytes.count {
            let count = send(client, bytes.baseAddress! + sent, bytes.count - sent, CInt(MSG_NOSIGNAL))
            if count <= 0 { return false }
            sent += count
        }
        return true
    }
}
