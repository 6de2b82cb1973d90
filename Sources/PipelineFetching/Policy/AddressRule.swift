public import PipelineSupport

/// Specifies which addresses beyond public addresses may be connected to: `FetchConfiguration.allowPrivateAddresses`,
/// or the setting with that name.
///
/// ```swift
/// var configuration = PipelineConfiguration()
/// configuration.fetch.allowPrivateAddresses = try AddressRule(["127.0.0.1:8080", "10.0.0.0/8"])
/// ```
public struct AddressRule: Sendable, Hashable {
    /// Allows only public addresses. This is the default, so that a URL from a client cannot reach this host or its
    /// network.
    public static let publicOnly = AddressRule(isAll: false)
    /// Allows every address.
    public static let all = AddressRule(isAll: true)

    let isAll: Bool
    private(set) var entries: [Entry] = []

    private init(isAll: Bool) { self.isAll = isAll }

    /// Allows public addresses and the given ones, such as `127.0.0.1`, `10.0.0.0/8`, `127.0.0.1:8080`,
    /// `10.0.0.0/8:8080`, `::1`, `fd00::/8`, `[::1]:8080` or `[fd00::/8]:8080`. An entry without a port allows every
    /// port.
    ///
    /// - Throws: `InvalidSetting` if an entry is malformed. The error names the first such entry.
    public init(_ texts: [String]) throws(InvalidSetting) {
        isAll = false
        for text in texts {
            guard let entry = Entry(text) else {
                throw InvalidSetting("`\(text)` is not an address or CIDR block with an optional port")
            }
            entries.append(entry)
        }
    }

    /// The entries as strings.
    package var texts: [String] { entries.map(\.description) }

    /// A block of addresses, optionally with one port.
    struct Entry: Sendable, Hashable, CustomStringConvertible {
        let block: AddressBlock
        /// The only allowed port, or nil if every port is allowed.
        let port: Int?

        /// Parses an entry. Returns nil if it is malformed.
        init?(_ text: String) {
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
            guard portText.utf8.allSatisfy(\.isDigit), let given = Int(portText), (1...65_535).contains(given)
            else { return nil }
            port = given
        }

        var description: String { port.map { "[\(block)]:\($0)" } ?? "\(block)" }
    }
}
