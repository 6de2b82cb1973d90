/// The names under which records of URLs are stored (setting `hosts`: `ignoreQuery`, `aliasOf`).
package struct SourceNames: Sendable {
    private let rules: [HostOrigin: HostSettings]

    package init(_ hosts: [HostOrigin: HostSettings] = [:]) {
        rules = hosts.filter { $0.value.alias != nil || !$0.value.ignoredQuery.isEmpty }
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
