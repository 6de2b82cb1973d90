/// Writes the fields of a message between pipeline and worker: little-endian integers, and texts after their length.
struct MessageWriter {
    private(set) var bytes: [UInt8] = []

    mutating func integer<Value: FixedWidthInteger>(_ value: Value) {
        withUnsafeBytes(of: value.littleEndian) { bytes.append(contentsOf: $0) }
    }

    /// A count; signed, 64 bits.
    mutating func count(_ value: Int) { integer(Int64(value)) }

    mutating func flag(_ value: Bool) { integer(UInt8(value ? 1 : 0)) }

    mutating func double(_ value: Double) { integer(value.bitPattern) }

    /// UTF-8 after its length, truncated to 65,535 bytes.
    mutating func text(_ value: String) {
        let utf8 = Array(value.utf8.prefix(Int(UInt16.max)))
        integer(UInt16(utf8.count))
        bytes += utf8
    }
}

struct MessageError: Error, Hashable {
    let problem: String
    init(_ problem: String) { self.problem = problem }
}

/// Reads what `MessageWriter` writes, from untrusted bytes: every read is checked.
struct MessageReader {
    private var rest: ArraySlice<UInt8>

    init(_ bytes: [UInt8]) { rest = bytes[...] }

    private mutating func take(_ count: Int) throws(MessageError) -> ArraySlice<UInt8> {
        guard count <= rest.count else { throw MessageError("it ends early") }
        defer { rest = rest.dropFirst(count) }
        return rest.prefix(count)
    }

    mutating func integer<Value: FixedWidthInteger>(_ type: Value.Type) throws(MessageError) -> Value {
        let bytes = try take(Value.bitWidth / 8)
        var value = Value.zero
        for byte in bytes.reversed() { value = value << 8 | Value(truncatingIfNeeded: byte) }
        return value
    }

    mutating func count(_ what: String, _ range: ClosedRange<Int>) throws(MessageError) -> Int {
        let value = Int(try integer(Int64.self))
        guard range.contains(value) else { throw MessageError("\(what) of \(value)") }
        return value
    }

    mutating func flag() throws(MessageError) -> Bool {
        let value = try integer(UInt8.self)
        guard value <= 1 else { throw MessageError("a flag of \(value)") }
        return value == 1
    }

    /// A finite number that is not negative.
    mutating func amount(_ what: String) throws(MessageError) -> Double {
        let value = Double(bitPattern: try integer(UInt64.self))
        guard value.isFinite, value >= 0 else { throw MessageError("\(what) of \(value)") }
        return value
    }

    /// Text of at most `limit` bytes; invalid UTF-8 becomes replacement characters.
    mutating func text(_ what: String, limit: Int) throws(MessageError) -> String {
        let count = Int(try integer(UInt16.self))
        guard count <= limit else { throw MessageError("\(what) of \(count) bytes") }
        return String(decoding: try take(count), as: UTF8.self)
    }

    /// One of the values an enumeration knows, by name.
    mutating func choice<Value: RawRepresentable>(
        _ what: String, _ type: Value.Type
    ) throws(MessageError) -> Value where Value.RawValue == String {
        let name = try text(what, limit: 64)
        guard let value = Value(rawValue: name) else { throw MessageError("an unknown \(what)") }
        return value
    }

    func finish() throws(MessageError) {
        if !rest.isEmpty { throw MessageError("it has \(rest.count) extra bytes") }
    }
}
