import PipelineFetching
import PipelineSupport

/// A pattern of `remotePatterns` or `localPatterns` in a manifest of Next.js. The build of the application has converted
/// the globs to regular expressions.
struct NextPattern: Sendable {
    private var scheme: String?
    private var port: String?
    private var search: String?
    private var host: Expression?
    private var path: Expression?

    init(domain: String) { host = Expression(literal: domain.lowercased()) }

    /// Returns nil if the value is not such a pattern.
    init?(remote value: JSONValue) {
        self.init(value)
        guard host != nil else { return nil }
    }

    /// Returns nil if the value is not such a pattern.
    init?(local value: JSONValue) { self.init(value) }

    private init?(_ value: JSONValue) {
        guard case .object(let members) = value else { return nil }
        for member in members where member.value != .null {
            guard case .string(let text) = member.value else { return nil }
            switch member.name {
            case "protocol": scheme = text.hasSuffix(":") ? String(text.dropLast()) : text
            case "port": port = text
            case "search": search = text
            case "hostname":
                guard let expression = Expression(text) else { return nil }
                host = expression
            case "pathname":
                guard let expression = Expression(text) else { return nil }
                path = expression
            default: return nil
            }
        }
    }

    /// Whether the pattern covers a path.
    ///
    /// - Parameter query: The query, beginning with `?`. Empty if the URL has no query.
    func matches(path given: String, search query: String) -> Bool {
        search.map { $0 == query } ?? true && path.map { $0.matches(given) } ?? true
    }

    func matches(_ url: SourceURL) -> Bool {
        let usual = url.scheme == "https" ? 443 : 80
        let number = url.port == usual ? "" : String(url.port)
        return scheme.map { $0 == url.scheme } ?? true && port.map { $0 == number } ?? true
            && host.map { $0.matches(url.host) } ?? true
            && matches(path: url.path, search: url.query.map { "?" + $0 } ?? "")
    }

    /// A regular expression from a manifest. The time for a match grows with the length of the text to the power of
    /// the number of wildcards that may cover the same characters, so a longer text does not match.
    private struct Expression: Sendable {
        private let source: String
        /// The maximum length of a text, in bytes.
        private let maxLength: Int

        init(literal text: String) {
            source = "^" + text.map { $0.isLetter || $0.isNumber ? String($0) : "\\" + String($0) }.joined() + "$"
            maxLength = 3_072
        }

        /// Returns nil if the expression is malformed, has more than three wildcards that may cover the same characters, or
        /// repeats anything else.
        init?(_ source: String) {
            let paths = source.ranges(of: ".)*?").count
            let names = source.split(separator: "\\/").map { $0.ranges(of: "[^/]*?").count }.max() ?? 0
            let rest = [".)*?", "[^/]*?", "\\*", "\\+", "\\{", ".{1,2}"].reduce(source) { $0.replacing($1, with: "") }
            guard paths + names <= 3, source.utf8.count <= 2_048, !rest.contains(where: "*+{".contains),
                (try? Regex(source)) != nil
            else { return nil }
            self.source = source
            maxLength = [3_072, 3_072, 1_024, 64][paths + names]
        }

        func matches(_ text: String) -> Bool {
            guard text.utf8.count <= maxLength, let regex = try? Regex(source) else { return false }
            return (try? regex.matchingSemantics(.unicodeScalar).firstMatch(in: text)) != nil
        }
    }
}
