import PipelineSupport

/// The location of a Redis server: `redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE]`, or `rediss://…` for TLS.
///
/// User and password are percent-decoded. An IPv6 address must be in brackets. The port defaults to 6379, and the
/// database to 0. The password never appears in descriptions or errors.
package struct RedisURL: Sendable, Hashable, CustomStringConvertible {
    package let isTLS: Bool
    /// The host, without the brackets of an IPv6 address.
    package let host: String
    package let port: Int
    package let database: Int
    /// The user. It is empty if the URL names no user, which means Redis' default user.
    package private(set) var user: String
    /// The password, or nil if the URL has no credentials.
    package private(set) var password: String?

    /// An error in a URL. It contains no part of the URL, because any part may contain the password if its `/` or `@`
    /// is not encoded.
    package enum Problem: Error, Sendable, Hashable, CustomStringConvertible {
        case scheme, credentials, encoding, host, port, database, rest

        package var description: String {
            let form = "redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE]"
            return switch self {
            case .scheme: "the URL of the Redis server must begin with redis:// or, for TLS, rediss:// (\(form))"
            case .credentials:
                """
                the credentials in the URL of the Redis server are incomplete: write USER:PASSWORD@, or :PASSWORD@ for \
                the default user
                """
            case .encoding:
                """
                user and password in the URL of the Redis server must be percent-encoded UTF-8: % is %25, @ is %40, \
                : is %3A, / is %2F
                """
            case .host:
                """
                the URL of the Redis server has no valid host: write a name, an IPv4 address or an IPv6 address in \
                brackets, and percent-encode /, @ and : in the password (\(form))
                """
            case .port:
                """
                the port in the URL of the Redis server is not a number from 1 to 65535; if the password contains /, @ \
                or :, write %2F, %40 or %3A
                """
            case .database:
                """
                the database in the URL of the Redis server is not a number such as 0; if the password contains / or \
                @, write %2F or %40
                """
            case .rest:
                """
                the URL of the Redis server must not contain ? or #; if they are part of the password, write %3F or \
                %23
                """
            }
        }
    }

    package init(_ text: String) throws(Problem) {
        let parts = Self.split(text[...], at: "://")
        guard let rest = parts.after, ["redis", "rediss"].contains(parts.before.lowercased()) else { throw .scheme }
        isTLS = parts.before.count == 6
        guard !rest.contains(where: { $0 == "?" || $0 == "#" }) else { throw .rest }
        let (authority, path) = Self.split(rest, at: "/")
        if let path, !path.isEmpty {
            guard let number = Self.number(path, 0...Int(Int32.max)) else { throw .database }
            database = number
        } else {
            database = 0
        }
        var location = authority
        if let end = authority.lastIndex(of: "@") {
            location = authority[authority.index(after: end)...]
            let (user, password) = Self.split(authority[..<end], at: ":")
            guard let password, !password.isEmpty else { throw .credentials }
            guard let user = Self.decoded(user), let password = Self.decoded(password) else { throw .encoding }
            (self.user, self.password) = (user, password)
        } else {
            (user, password) = ("", nil)
        }
        let host: Substring
        var port: Substring?
        if location.first == "[" {
            guard let end = location.lastIndex(of: "]") else { throw .host }
            host = location[..<end].dropFirst()
            let after = location[end...].dropFirst()
            guard host.contains(":"), host.allSatisfy({ $0.isHexDigit || $0 == ":" || $0 == "." }),
                after.isEmpty || after.first == ":"
            else { throw .host }
            port = after.isEmpty ? nil : after.dropFirst()
        } else {
            (host, port) = Self.split(location, at: ":")
            guard !host.isEmpty,
                host.allSatisfy({ $0.isASCII && ($0.isLetter || $0.isNumber || "-._".contains($0)) })
            else { throw .host }
        }
        self.host = String(host)
        guard let number = port.map({ Self.number($0, 1...65535) }) ?? 6379 else { throw .port }
        self.port = number
    }

    /// Takes the user and the password from another URL of the same server if this URL has none.
    package mutating func takeCredentials(of other: RedisURL) {
        guard password == nil, other.authority == authority, other.isTLS == isTLS else { return }
        (user, password) = (other.user, other.password)
    }

    package var description: String {
        "\(isTLS ? "rediss" : "redis")://\(authority)\(database == 0 ? "" : "/\(database)")"
    }

    /// `HOST:PORT`, with brackets around an IPv6 address.
    var authority: String { "\(host.contains(":") ? "[\(host)]" : host):\(port)" }

    private static func split(_ text: Substring, at mark: String) -> (before: Substring, after: Substring?) {
        guard let range = text.firstRange(of: mark) else { return (text, nil) }
        return (text[..<range.lowerBound], text[range.upperBound...])
    }

    private static func number(_ text: Substring, _ range: ClosedRange<Int>) -> Int? {
        guard text.utf8.allSatisfy(\.isDigit), let number = Int(text), range.contains(number)
        else { return nil }
        return number
    }

    private static func decoded(_ text: Substring) -> String? {
        percentDecoded(text).flatMap { String(validating: $0, as: UTF8.self) }
    }
}
