/// The `Cache-Control` of variants, in place of the one that the server derives from the origin's fields.
public struct ClientFreshness: Sendable, Hashable {
    /// The directives of one `Cache-Control`.
    public struct Rule: Sendable, Hashable {
        /// Seconds for which a variant is reused without asking the server.
        public var maxAge: Int
        /// Seconds after these in which it is reused while the server is asked (RFC 5861 §3); default 0.
        public var staleWhileRevalidate = 0
        /// Whether browsers keep it even when the user reloads the page (RFC 8246 §2); default false.
        public var isImmutable = false

        public init(maxAge: Int) { self.maxAge = maxAge }
    }

    /// For variants without a rule of their preset's; default nil: what follows from the origin's fields.
    public var rule: Rule?
    /// For variants of one preset (`@name`, followed by `RecipeRules.suffixes` at most), by its name.
    public var presets: [String: Rule] = [:]

    public init() {}

    /// A `Cache-Control` in place of the one that follows from the origin; nil for none.
    func control(preset: String?) -> String? {
        guard let rule = preset.flatMap({ presets[$0] }) ?? rule else { return nil }
        let grace = rule.staleWhileRevalidate > 0 ? ", stale-while-revalidate=\(rule.staleWhileRevalidate)" : ""
        return "max-age=\(rule.maxAge)" + (rule.isImmutable ? ", immutable" : "") + grace
    }
}
