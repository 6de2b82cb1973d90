import PipelineSupport

extension SourceURL {
    /// Returns whether a byte is `unreserved` (RFC 3986 §2.3), so that it never needs encoding.
    package static func isUnreserved(_ byte: UInt8) -> Bool {
        byte.isLetterOrDigit || byte == 0x2D || byte == 0x2E || byte == 0x5F || byte == 0x7E
    }

    /// Percent-encodes every octet of a path or query that a URL must not contain. Normalizing also decodes unreserved
    /// octets, writes other encodings in upper case, and turns a stray `%` into `%25` (RFC 3986 §6.2.2.1–2).
    static func encoded(_ text: String, normalizing: Bool) -> String {
        let percent: UInt8? = normalizing ? UInt8(ascii: "%") : nil
        if text.utf8.allSatisfy({ !needsEncoding($0) && $0 != percent }) { return text }
        let bytes = Array(text.utf8)
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count)
        var index = 0
        while index < bytes.count {
            let byte = bytes[index]
            index += 1
            if normalizing, byte == UInt8(ascii: "%") {
                guard index + 1 < bytes.count, let high = hexValue(bytes[index]), let low = hexValue(bytes[index + 1])
                else {
                    result += [0x25, 0x32, 0x35]
                    continue
                }
                index += 2
                let value = high << 4 | low
                if isUnreserved(value) { result.append(value) } else { result += percentEncoded(value) }
            } else if needsEncoding(byte) {
                result += percentEncoded(byte)
            } else {
                result.append(byte)
            }
        }
        return String(decoding: result, as: UTF8.self)
    }

    /// Returns whether a URL must not contain the octet unencoded.
    private static func needsEncoding(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x20, 0x22, 0x3C, 0x3E, 0x5C, 0x5E, 0x60, 0x7B, 0x7C, 0x7D: true
        default: byte >= 0x80
        }
    }

    /// Decodes a percent-encoded string. A stray `%` is kept.
    package static func percentDecoded(_ text: String) -> [UInt8] {
        let bytes = Array(text.utf8)
        var result: [UInt8] = []
        var index = 0
        while index < bytes.count {
            if bytes[index] == UInt8(ascii: "%"), index + 2 < bytes.count,
                let high = hexValue(bytes[index + 1]), let low = hexValue(bytes[index + 2])
            {
                result.append(high << 4 | low)
                index += 3
            } else {
                result.append(bytes[index])
                index += 1
            }
        }
        return result
    }

    /// Returns the path without `.` and `..` segments (RFC 3986 §5.2.4). The result never leads above the root, and is
    /// at least `/`.
    static func withoutDotSegments(_ path: String) -> String {
        // Every dot segment begins with a dot.
        let hasDots = zip(path.utf8, path.utf8.dropFirst()).contains { $0 == UInt8(ascii: "/") && $1 == 0x2E }
        if path.utf8.first == UInt8(ascii: "/"), !hasDots { return path }
        var kept: [Substring] = []
        let segments = path.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
        for (index, segment) in segments.enumerated() {
            let isLast = index == segments.count - 1
            switch segment {
            case ".":
                if isLast { kept.append("") }
            case "..":
                if !kept.isEmpty { kept.removeLast() }
                if isLast { kept.append("") }
            default:
                kept.append(segment)
            }
        }
        return "/" + kept.joined(separator: "/")
    }

    package static func percentEncoded(_ byte: UInt8) -> [UInt8] {
        let digits = Array("0123456789ABCDEF".utf8)
        return [0x25, digits[Int(byte >> 4)], digits[Int(byte & 15)]]
    }
}

extension Substring.UTF8View {
    /// Returns the index after the first occurrence of `text`, or nil if it does not occur.
    package func end(of text: String) -> Index? {
        let wanted = Array(text.utf8)
        var index = startIndex
        while index < endIndex {
            if self[index...].starts(with: wanted) { return self.index(index, offsetBy: wanted.count) }
            formIndex(after: &index)
        }
        return nil
    }
}
