/// Which addresses beyond public ones may be connected to (setting `allowPrivateAddresses`).
public enum AddressRule: Sendable, Hashable {
    /// Public addresses only, the default: a URL from outside must not reach this host or its network.
    case none
    /// Every address.
    case all
    /// Public addresses and these.
    case list([Entry])

    /// A block of addresses, with or without one port.
    public struct Entry: Sendable, Hashable, CustomStringConvertible {
        package let block: AddressBlock
        /// The only port allowed; nil for every port.
        package let port: Int?

        /// Parses `127.0.0.1`, `10.0.0.0/8`, `127.0.0.1:8080`, `10.0.0.0/8:8080`, `::1`, `fd00::/8`, `[::1]:8080`,
        /// `[fd00::/8]:8080`; nil if malformed.
        public init?(_ text: String) {
            var blockText = Substring(text)
            var portText: Substring?
            if text.hasPrefix("["), let end = text.lastIndex(of: "]") {
                blockText = text[text.index(after: text.startIndex)..<end]
                let rest = text[text.index(after: end)...]
                if rest.hasPrefix(":") {
                    portText = rest.dropFirst()
                } else if rest.hasPrefix("/") {
                    blockText += rest
                } else if !rest.isEmpty {
                    return nil
                }
            } else if text.contains("."), let colon = text.lastIndex(of: ":"), !text.contains("::") {
                blockText = text[..<colon]
                portText = text[text.index(after: colon)...]
            }
            guard let block = AddressBlock(String(blockText)) else { return nil }
            self.block = block
            guard let portText else {
                port = nil
                return
            }
            guard portText.utf8.allSatisfy(SourceURL.isDigit), let given = Int(portText), (1...65_535).contains(given)
            else { return nil }
            port = given
        }

        public var description: String { port.map { "[\(block)]:\($0)" } ?? "\(block)" }
    }
}
