import CRedis

/// One word of a command: a name, a key or arbitrary bytes.
package struct RedisWord: Sendable, Hashable, ExpressibleByStringLiteral {
    let bytes: [UInt8]

    package init(_ bytes: [UInt8]) { self.bytes = bytes }
    package init(_ text: String) { bytes = Array(text.utf8) }
    package init(_ number: Int) { self.init(String(number)) }
    package init(stringLiteral text: String) { self.init(text) }
}

/// A server's reply to one command.
package enum RedisReply: Sendable, Hashable {
    /// A short string such as `OK`.
    case status(String)
    case bytes([UInt8])
    case integer(Int)
    case array([RedisReply])
    case null
    /// The command failed. The string begins with the kind of error.
    case error(String)

    /// Converts a hiredis reply. Returns nil if it has a RESP3 type, which this client never requests.
    init?(_ reply: OpaquePointer) {
        switch Int(credis_reply_type(reply)) {
        case credis_string: self = .bytes(Self.bytes(reply))
        case credis_status: self = .status(String(decoding: Self.bytes(reply), as: UTF8.self))
        case credis_error: self = .error(String(decoding: Self.bytes(reply).prefix(500), as: UTF8.self))
        case credis_integer: self = .integer(Int(credis_reply_integer(reply)))
        case credis_nil: self = .null
        case credis_array:
            var elements: [RedisReply] = []
            for index in 0..<credis_reply_count(reply) {
                guard let element = credis_reply_element(reply, index).flatMap(RedisReply.init) else { return nil }
                elements.append(element)
            }
            self = .array(elements)
        default: return nil
        }
    }

    private static func bytes(_ reply: OpaquePointer) -> [UInt8] {
        var count = 0
        guard let start = credis_reply_bytes(reply, &count) else { return [] }
        return Array(UnsafeRawBufferPointer(start: start, count: count))
    }

    /// The elements of an array, or nil if the reply is not an array.
    var elements: [RedisReply]? { if case .array(let elements) = self { elements } else { nil } }

    /// The text of a reply that is a byte string in valid UTF-8, or nil for any other reply.
    var text: String? { if case .bytes(let bytes) = self { String(validating: bytes, as: UTF8.self) } else { nil } }
}

extension [RedisWord] {
    /// The command in the Redis protocol, or nil if memory is exhausted.
    var formatted: [UInt8]? {
        let joined = flatMap(\.bytes)
        let lengths = map(\.bytes.count)
        return joined.withUnsafeBytes { joined -> [UInt8]? in
            // An empty buffer has no address, and words may be empty. hiredis does not read from this address.
            let start = joined.bindMemory(to: CChar.self).baseAddress ?? UnsafePointer(bitPattern: 1)
            var offset = 0
            var words: [UnsafePointer<CChar>?] = lengths.map { length in
                defer { offset += length }
                return start.map { $0 + offset }
            }
            var command: UnsafeMutablePointer<CChar>?
            let count = credis_format(&command, Int32(lengths.count), &words, lengths)
            guard count >= 0, let command else { return nil }
            defer { credis_command_free(command) }
            return [UInt8](UnsafeRawBufferPointer(start: command, count: Int(count)))
        }
    }
}
