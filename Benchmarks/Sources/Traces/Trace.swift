import Glibc

/// The error for a trace that cannot be read or replayed.
public struct ReplayError: Error {
    /// The failure, its input, and the expected value.
    public var message: String
    public init(_ message: String) { self.message = message }
}

/// A request trace in memory: keys in request order, and the size and cost of each. `Replay` documents the file format.
public struct Trace {
    public var requests: [UInt32] = []
    /// Bytes, by key.
    public var sizes: [Int] = []
    /// Milliseconds to recreate the object, by key.
    public var milliseconds: [Int] = []

    public var footprint: Int { sizes.reduce(0, +) }
    public var requestedBytes: Int { requests.reduce(0) { $0 + sizes[Int($1)] } }
    public var requestedMilliseconds: Int { requests.reduce(0) { $0 + milliseconds[Int($1)] } }

    public init() {}

    /// Decompresses a file with `gzip -dc` and parses it.
    public init(path: String) throws(ReplayError) {
        guard access(path, R_OK) == 0 else {
            throw ReplayError("cannot read \(path): \(String(cString: strerror(errno)))")
        }
        let quoted = path.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''")
        guard let pipe = popen("exec gzip -dc < '\(quoted)'", "r") else { throw ReplayError("cannot start gzip") }
        var numbers: [Int] = []
        var number: Int?
        var failure: ReplayError?
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while failure == nil {
            let count = fread(&buffer, 1, buffer.count, pipe)
            if count == 0 { break }
            for byte in buffer[..<count] where failure == nil {
                switch byte {
                case UInt8(ascii: "0")...UInt8(ascii: "9"):
                    let (tens, isTooLarge) = (number ?? 0).multipliedReportingOverflow(by: 10)
                    if isTooLarge || tens > Int.max - 9 { failure = problem("a number is too large") }
                    number = failure == nil ? tens + Int(byte - UInt8(ascii: "0")) : nil
                case UInt8(ascii: " "), UInt8(ascii: "\n"):
                    if let number { numbers.append(number) }
                    number = nil
                    if byte == UInt8(ascii: "\n") {
                        failure = add(numbers)
                        numbers.removeAll(keepingCapacity: true)
                    }
                default: failure = problem("byte \(byte) is not part of a number")
                }
            }
        }
        if let number { numbers.append(number) }
        if failure == nil, !numbers.isEmpty { failure = add(numbers) }
        let status = pclose(pipe)
        if let failure { throw failure }
        if status != 0 { throw ReplayError("gzip failed on \(path)") }
        if requests.isEmpty { throw ReplayError("\(path) holds no request") }
    }

    private func problem(_ text: String) -> ReplayError { ReplayError("line \(requests.count + 1): \(text)") }

    private mutating func add(_ line: [Int]) -> ReplayError? {
        switch line.count {
        case 1 where line[0] < sizes.count: break
        case 3 where line[0] == sizes.count && line[0] < Int(UInt32.max):
            sizes.append(line[1])
            milliseconds.append(line[2])
        case 3 where line[0] < sizes.count: break
        default: return problem("expected `KEY SIZE MS` for key \(sizes.count), or a key below it")
        }
        requests.append(UInt32(line[0]))
        return nil
    }
}
