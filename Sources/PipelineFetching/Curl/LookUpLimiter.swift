/// Limits the number of abandoned name look-ups.
///
/// libcurl starts a thread for each look-up. The thread and a few descriptors remain until the C library also gives up,
/// which takes 10 s with one name server and 30 s with three (resolv.conf(5)).
///
/// Used only on the loop's thread.
final class LookUpLimiter {
    /// The maximum number of abandoned look-ups that may still be in progress.
    static let limit = 256
    /// The maximum number of abandoned look-ups per domain.
    static let domainLimit = 32
    private static let seconds = 30.0

    private var givenUp: [(domain: Substring, until: Double)] = []

    /// Returns why a look-up of the host may not begin now, or nil if it may.
    func refusal(of host: String, now: Double) -> String? {
        givenUp.removeAll { $0.until <= now }
        guard givenUp.count >= Self.domainLimit else { return nil }
        let domain = Self.domain(of: host)
        let count = givenUp.count(where: { $0.domain == domain })
        guard count >= Self.domainLimit || givenUp.count >= Self.limit else { return nil }
        return """
            \(count) look-ups of names in `\(domain)`, and \(givenUp.count) in total, got no answer in the last 30 s; check \
            the name server of the domain
            """
    }

    /// Records that a look-up was abandoned.
    func giveUp(_ host: String, now: Double) { givenUp.append((Self.domain(of: host), now + Self.seconds)) }

    /// Returns the last two labels of a name.
    private static func domain(of host: String) -> Substring {
        let labels = host.split(separator: ".").suffix(2)
        guard let first = labels.first, let last = labels.last else { return host[...] }
        return host[first.startIndex..<last.endIndex]
    }
}
