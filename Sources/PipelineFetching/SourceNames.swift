/// The names under which records of URLs are stored (setting `hosts`: `ignoreQuery`, `aliasOf`).
package struct SourceNames: Sendable {
    private let rules: [HostOrigin: HostSettings]
    /// The origins that others are aliases of.
    private let targets: Set<HostOrigin>

    package init(_ hosts: [HostOrigin: HostSettings] = [:]) {
        rules = hosts.filter { $0.value.alias != nil || !$0.value.ignoredQuery.isEmpty }
        targets = Set(rules.values.compactMap(\.alias))
    }

    /// Whether other URLs may have the same name.
    package func isShared(_ url: SourceURL) -> Bool {
        guard !rules.isEmpty, !url.host.isEmpty else { return false }
        let origin = HostOrigin(url)
        return rules[origin] != nil || targets.contains(origin)
    }

    /// The names that a purge of all that begin so is about: of those that begin with a part of the query that does not count,
    /// one.
    package func purged(_ prefix: String) -> (names: [String], prefixes: [String]) {
        // Of a host: its names alone.
        guard !prefix.hasSuffix(":"), prefix.count(where: { $0 == "/" }) > 2 else { return ([], [prefix]) }
        let name = name(prefix)
        if name == prefix { return ([], [prefix]) }
        return prefix.contains("?") ? ([name], [prefix]) : ([], [prefix, name])
    }

    /// The URL in normal form, without what does not count, at the origin that it is an alias of.
    package func name(of url: SourceURL) -> String {
        guard !rules.isEmpty, !url.host.isEmpty, let own = rules[HostOrigin(url)] else { return url.normalised }
        let ignored = own.ignoredQuery + (own.alias.flatMap { rules[$0] }?.ignoredQuery ?? [])
        let fields = url.query?.split(separator: "&", omittingEmptySubsequences: false) ?? []
        let counted = fields.filter { field in
            let name = field.prefix { $0 != "=" }
            return !ignored.contains { $0.last == "*" ? name.hasPrefix($0.dropLast()) : name == $0 }
        }
        let hasQuery = counted.count == fields.count ? url.query != nil : !counted.isEmpty
        return (own.alias?.origin ?? url.origin) + url.path + (hasQuery ? "?" + counted.joined(separator: "&") : "")
    }

    /// The same of a name in which nothing is left out; other names stay as they are.
    package func name(_ text: String) -> String {
        guard !rules.isEmpty, let url = try? SourceURL(text), rules[HostOrigin(url)] != nil else { return text }
        return name(of: url)
    }
}
