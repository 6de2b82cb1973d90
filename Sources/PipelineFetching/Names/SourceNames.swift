/// The names under which records of URLs are stored (the `ignoreQuery` and `aliasOf` members of the `hosts` setting).
package struct SourceNames: Sendable {
    private let rules: [HostOrigin: HostSettings]
    /// The origins that have aliases.
    private let targets: Set<HostOrigin>

    package init(_ hosts: [HostOrigin: HostSettings] = [:]) {
        rules = hosts.filter { $0.value.alias != nil || !$0.value.ignoredQuery.isEmpty }
        targets = Set(rules.values.compactMap(\.alias))
    }

    /// Returns whether different URLs may have the same name.
    package func isShared(_ url: SourceURL) -> Bool {
        guard !rules.isEmpty, !url.host.isEmpty else { return false }
        let origin = HostOrigin(url)
        return rules[origin] != nil || targets.contains(origin)
    }

    /// Returns the names and prefixes that a purge of this prefix covers. Names that differ only in ignored parts of
    /// the query are the same name.
    package func purged(_ prefix: String) -> (names: [String], prefixes: [String]) {
        // A prefix for a complete host covers only names under that host.
        guard !prefix.hasSuffix(":"), prefix.count(where: { $0 == "/" }) > 2 else { return ([], [prefix]) }
        let name = name(prefix)
        if name == prefix { return ([], [prefix]) }
        return prefix.contains("?") ? ([name], [prefix]) : ([], [prefix, name])
    }

    /// Returns the name of a URL. The name is the URL in normalized form, without the ignored query parameters, and
    /// with the origin that `aliasOf` names, if any.
    package func name(of url: SourceURL) -> String {
        guard !rules.isEmpty, !url.host.isEmpty, let own = rules[HostOrigin(url)] else { return url.normalized }
        let ignored = own.ignoredQuery + (own.alias.flatMap { rules[$0] }?.ignoredQuery ?? [])
        let fields = url.query?.split(separator: "&", omittingEmptySubsequences: false) ?? []
        let counted = fields.filter { field in
            let name = field.prefix { $0 != "=" }
            return !ignored.contains { $0.last == "*" ? name.hasPrefix($0.dropLast()) : name == $0 }
        }
        let hasQuery = counted.count == fields.count ? url.query != nil : !counted.isEmpty
        return (own.alias?.origin ?? url.origin) + url.path + (hasQuery ? "?" + counted.joined(separator: "&") : "")
    }

    /// Returns the name under which the cache stores a URL. A name without an ignored part does not change.
    package func name(_ text: String) -> String {
        guard !rules.isEmpty, let url = try? SourceURL(text), rules[HostOrigin(url)] != nil else { return text }
        return name(of: url)
    }
}
