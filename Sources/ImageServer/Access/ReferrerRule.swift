import HTTPCaching
import Pipeline
package import PipelineSupport

/// The pages that may show pictures from this server: the `server.referrers` setting. It keeps other sites from using
/// the server's bandwidth. Browsers send the page's URL or origin in `Referer` (RFC 9110 §10.1.3). Other clients can
/// send any value.
package struct ReferrerRule: Sendable {
    /// The allowed pages, or nil if every page is allowed. If not nil, the server's own pages are also allowed, and so
    /// are requests without `Referer`, for example if a person opens the URL directly.
    private let patterns: [HostPattern]?

    /// - Throws: if a pattern is malformed or has a path. A pattern with a path would refuse every page, because
    ///   browsers send other sites only the page's origin (W3C Referrer Policy §3.7).
    package init(_ texts: [String]?) throws(InvalidSetting) {
        guard let texts else {
            patterns = nil
            return
        }
        var patterns: [HostPattern] = []
        for text in texts {
            do { patterns.append(try HostPattern(text)) } catch { throw InvalidSetting(error.message) }
            if let remedy = patterns.last?.withoutPath {
                throw InvalidSetting(
                    "`\(text)` contains a path, which would refuse every page, because browsers send only the origin of a "
                        + "page to other sites; write `\(remedy)`")
            }
        }
        self.patterns = patterns
    }

    /// - Throws: a `Problem` with status 403 if the page is not allowed.
    func check(_ fields: [HeaderField]) throws(Problem) {
        guard !admits(fields) else { return }
        throw Problem(.referrerRefused, "the site of the page is not in `server.referrers`")
    }

    func admits(_ fields: [HeaderField]) -> Bool {
        guard let patterns else { return true }
        let pages = fields.values(of: "referer")
        if pages.allSatisfy(\.isEmpty) { return true }
        guard pages.count == 1, let page = try? SourceURL(pages[0]) else { return false }
        // An empty policy would allow every page.
        if !patterns.isEmpty, HostPolicy(allow: patterns).refusal(of: page) == nil { return true }
        // The server's own page, under whichever host name the client used.
        let own = fields.values(of: "host").first.flatMap { try? SourceURL("\(page.scheme)://\($0)/") }
        return own.map { $0.host == page.host && $0.port == page.port } == true
    }
}
