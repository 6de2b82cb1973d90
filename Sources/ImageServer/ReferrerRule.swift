import HTTPCaching
public import Pipeline

/// The setting `server.referrers`: the pages that may show pictures of this server, so that others do not use its traffic.
/// Browsers name the page, or its origin, in `Referer` (RFC 9110 §10.1.3); other clients name what they like.
public enum ReferrerRule: Sendable, Hashable {
    /// Any page, the default.
    case all
    /// Pages that a pattern admits, the server's own pages, and requests without `Referer`, as when a person opens the
    /// address itself. To other sites browsers send only a page's origin (W3C Referrer Policy §3.7), so a pattern with a
    /// path admits no page.
    case list([HostPattern])

    /// - Throws: `Problem`: 403 for another page.
    func check(_ fields: [HeaderField]) throws(Problem) {
        guard !admits(fields) else { return }
        throw Problem(.referrerRefused, "`server.referrers` names the pages that may")
    }

    func admits(_ fields: [HeaderField]) -> Bool {
        guard case .list(let patterns) = self else { return true }
        let pages = fields.values(of: "referer")
        if pages.allSatisfy(\.isEmpty) { return true }
        guard pages.count == 1, let page = try? SourceURL(pages[0]) else { return false }
        if HostPolicy(allow: patterns).refusal(of: page) == nil { return true }
        // The server's own page, by whatever name the client knows the server.
        let own = fields.values(of: "host").first.flatMap { try? SourceURL("\(page.scheme)://\($0)/") }
        return own.map { $0.host == page.host && $0.port == page.port } == true
    }
}
