import PipelineSupport

struct MessageError: Error, Hashable {
    let problem: String
    init(_ problem: String) { self.problem = problem }
}

/// Encodes and decodes messages between the pipeline and its workers. A message is a sequence of fields: little-endian
/// integers, and strings and lists that are preceded by their length.
///
/// A message names each field once, in a function that both writes and reads the field. Writing appends a field and
/// never fails. Reading replaces the value with the value from untrusted bytes, and checks all bounds.
struct MessageCoder {
    /// The bytes that have not been read yet. nil while writing.
    private var rest: ArraySlice<UInt8>?
    /// The bytes written so far.
    private(set) var bytes: [UInt8] = []

    /// Starts to write a message.
    init() {
        var magic = WorkerProtocol.magic
        // Writing never fails.
        try? integer(&magic)
    }

    /// Starts to read a message.
    init(reading bytes: [UInt8]) throws(MessageError) {
        rest = bytes[...]
        var magic: UInt32 = 0
        try integer(&magic)
        try require(magic == WorkerProtocol.magic, "another protocol")
    }

    /// Throws if bytes are left after the last field.
    func finish() throws(MessageError) {
        if let rest, !rest.isEmpty { throw MessageError("it has \(rest.count) extra bytes") }
    }

    /// While reading, throws unless the condition is true.
    func require(_ condition: Bool, _ problem: @autoclosure () -> String) throws(MessageError) {
        if rest != nil, !condition { throw MessageError(problem()) }
    }

    /// Returns the next bytes. Returns nil while writing.
    private mutating func take(_ count: Int) throws(MessageError) -> ArraySlice<UInt8>? {
        guard let left = rest else { return nil }
        guard count <= left.count else { throw MessageError("it ends early") }
        rest = left.dropFirst(count)
        return left.prefix(count)
    }

    mutating func integer<Value: FixedWidthInteger>(_ value: inout Value) throws(MessageError) {
        if let bytes = try take(Value.bitWidth / 8) {
            value = bytes.reversed().reduce(0) { $0 << 8 | Value(truncatingIfNeeded: $1) }
        } else {
            withUnsafeBytes(of: value.littleEndian) { bytes.append(contentsOf: $0) }
        }
    }

    /// Encodes a count as a signed 64-bit integer.
    mutating func count(
        _ what: String, _ value: inout Int, _ range: ClosedRange<Int> = WorkerProtocol.byteRange
    ) throws(MessageError) {
        var number = Int64(value)
        try integer(&number)
        try require(range.contains(Int(number)), "\(what) of \(number)")
        value = Int(number)
    }

    mutating func flag(_ value: inout Bool) throws(MessageError) {
        var number: UInt8 = value ? 1 : 0
        try integer(&number)
        try require(number <= 1, "a flag of \(number)")
        value = number == 1
    }

    /// Encodes a finite number that is not negative.
    mutating func amount(_ what: String, _ value: inout Double) throws(MessageError) {
        var bits = value.bitPattern
        try integer(&bits)
        value = Double(bitPattern: bits)
        try require(value.isFinite && value >= 0, "\(what) of \(value)")
    }

    /// Encodes a duration of at most 10⁹ seconds.
    mutating func span(_ what: String, _ value: inout Duration) throws(MessageError) {
        var seconds = min(value.inSeconds, 1e9)
        try amount(what, &seconds)
        value = .seconds(min(seconds, 1e9))
    }

    /// Encodes a UTF-8 string of at most `limit` bytes. `limit` must be at most 65,535. Longer strings are truncated
    /// when they are written.
    mutating func text(_ what: String, _ value: inout String, limit: Int) throws(MessageError) {
        var end = value.utf8.index(value.startIndex, offsetBy: limit, limitedBy: value.endIndex) ?? value.endIndex
        while end.samePosition(in: value.unicodeScalars) == nil { end = value.utf8.index(before: end) }
        var count = UInt16(value[..<end].utf8.count)
        try integer(&count)
        try require(count <= limit, "\(what) of \(count) bytes")
        guard let utf8 = try take(Int(count)) else {
            bytes += value[..<end].utf8
            return
        }
        guard let text = String(validating: utf8, as: UTF8.self) else { throw MessageError("\(what) that is not text") }
        value = text
    }

    /// Encodes the raw value of an enumeration.
    mutating func choice<Value: RawRepresentable<String>>(
        _ what: String, _ value: inout Value
    ) throws(MessageError) {
        var name = value.rawValue
        try text(what, &name, limit: 64)
        guard let known = Value(rawValue: name) else { throw MessageError("an unknown \(what)") }
        value = known
    }

    /// - Parameter blank: a placeholder that `code` fills when a message is read.
    mutating func list<Element>(
        _ what: String, _ elements: inout [Element], _ range: ClosedRange<Int>, blank: Element,
        _ code: (inout Element, inout MessageCoder) throws(MessageError) -> Void
    ) throws(MessageError) {
        var number = elements.count
        try count("a number of " + what, &number, range)
        if rest != nil { elements = Array(repeating: blank, count: number) }
        for index in elements.indices { try code(&elements[index], &self) }
    }
}

/// A message or a part of a message.
protocol WorkerMessage {
    /// Creates an empty message, which `code` fills.
    init()
    mutating func code(_ coder: inout MessageCoder) throws(MessageError)
}

extension WorkerMessage {
    var bytes: [UInt8] {
        var (copy, coder) = (self, MessageCoder())
        // Writing never fails.
        try? copy.code(&coder)
        return coder.bytes
    }

    init(_ bytes: [UInt8]) throws(MessageError) {
        self.init()
        var coder = try MessageCoder(reading: bytes)
        try code(&coder)
        try coder.finish()
    }
}
