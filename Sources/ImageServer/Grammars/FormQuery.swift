import PipelineSupport

/// The parameters of a query in the form `application/x-www-form-urlencoded` (URL Standard §5.1).
package struct FormQuery: Sendable {
    private var parameters: [(name: String, value: String)] = []

    /// - Parameter target: A path with or without a query.
    init(_ target: String) {
        guard let mark = target.utf8.firstIndex(of: UInt8(ascii: "?")) else { return }
        let query = target.utf8[target.utf8.index(after: mark)...].prefix { $0 != UInt8(ascii: "#") }
        for pair in query.split(separator: UInt8(ascii: "&")) {
            let name = pair.prefix { $0 != UInt8(ascii: "=") }
            parameters.append((Self.decoded(name), Self.decoded(pair.dropFirst(name.count + 1))))
        }
    }

    /// The names of the parameters, in order.
    var names: [String] { parameters.map(\.name) }

    /// The values of a parameter, in order.
    subscript(name: String) -> [String] { parameters.filter { $0.name == name }.map(\.value) }

    /// Decodes `+` and percent-encoded bytes. A `%` without two hexadecimal digits stays, and invalid UTF-8 becomes
    /// replacement characters.
    private static func decoded(_ text: some Sequence<UInt8>) -> String {
        var bytes: [UInt8] = []
        var rest = Array(text)[...]
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "%"), rest.count >= 2, let high = hexValue(rest[rest.startIndex]),
                let low = hexValue(rest[rest.startIndex + 1])
            {
                bytes.append(high << 4 | low)
                rest = rest.dropFirst(2)
            } else {
                bytes.append(byte == UInt8(ascii: "+") ? 0x20 : byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
