import Glibc

/// One call of a worker as recorded in its ledger.
struct Operation: Sendable {
    enum Kind: String { case variant, original, removal, purge }

    var kind: Kind
    /// The number of the key or source of its worker; no other worker changes it.
    var number: Int
    var worker: Int
    /// The seed of the body and, for a variant, the seed of its original.
    var body = 0
    var original = 0
    /// Start of the call in nanoseconds of the monotonic clock, which all processes share.
    var begin: UInt64
    /// End of the call; nil if the worker was killed or the call threw before it was recorded: it may or may not have
    /// taken effect.
    var end: UInt64?
    /// Whether the store accepted it; always true for a completed removal or purge.
    var isDone = false
    /// The digests that a purge found for the source.
    var digests: Set<String> = []

    static func now() -> UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }
}

/// A worker's record of its calls: one line appended before each call and one after it. Killing a process does not lose
/// completed writes, so the lines need no fsync.
struct Ledger {
    private let file: Int32

    init?(path: String) {
        file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        guard file >= 0 else { return nil }
    }

    func begin(_ operation: Operation) {
        line(
            "> \(operation.kind.rawValue) \(operation.worker) \(operation.number) \(operation.body) "
                + "\(operation.original) \(operation.begin)")
    }

    func end(isDone: Bool, digests: Set<String> = []) {
        line("< \(Operation.now()) \(isDone ? 1 : 0) \(digests.joined(separator: ","))")
    }

    private func line(_ text: String) {
        let bytes = Array((text + "\n").utf8)
        _ = write(file, bytes, bytes.count)
    }

    /// Reads the operations of one ledger, in order.
    static func read(_ path: String) -> [Operation] {
        guard let file = fopen(path, "r") else { return [] }
        defer { fclose(file) }
        var text: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while case let count = fread(&buffer, 1, buffer.count, file), count > 0 { text += buffer[..<count] }
        var operations: [Operation] = []
        for line in text.split(separator: 0x0A) {
            let words = String(decoding: line, as: UTF8.self).split(separator: " ", omittingEmptySubsequences: false)
            if words[0] == ">", words.count == 7, let kind = Operation.Kind(rawValue: String(words[1])),
                let worker = Int(words[2]), let number = Int(words[3]), let body = Int(words[4]),
                let original = Int(words[5]), let begin = UInt64(words[6])
            {
                operations.append(
                    Operation(
                        kind: kind, number: number, worker: worker, body: body, original: original, begin: begin))
            } else if words[0] == "<", words.count == 4, let last = operations.indices.last {
                operations[last].end = UInt64(words[1])
                operations[last].isDone = words[2] == "1"
                operations[last].digests = Set(words[3].split(separator: ",").map(String.init))
            }
        }
        return operations
    }
}
