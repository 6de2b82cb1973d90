import HTTPCaching

/// Fields of a response that speak of the host it comes from, or to a proxy in front of it. On `/original` that host is
/// this server, of which an origin decides nothing.
enum HostFields {
    /// What proxies and accelerators obey, in lower case; a name that ends in `-` stands for all that begin so.
    /// `nginx.conf`, `nginx-fleet.conf` and `haproxy.cfg` in `deploy/` drop them as well.
    static let obeyedByProxies = [
        "x-accel-", "x-sendfile", "x-lighttpd-send-file", "x-litespeed-location", "x-reproxy-url", "x-reproxy-file",
        "surrogate-control", "edge-control",
    ]

    /// What browsers keep for a host, or do on its behalf.
    private static let obeyedByBrowsers = [
        "set-cookie", "set-cookie2", "clear-site-data", "strict-transport-security", "public-key-pins",
        "public-key-pins-report-only", "expect-ct", "alt-svc", "service-worker-allowed", "refresh", "nel", "report-to",
        "reporting-endpoints", "accept-ch", "critical-ch", "origin-agent-cluster", "use-as-dictionary", "set-login",
        "www-authenticate", "content-security-policy", "content-security-policy-report-only", "access-control-",
        "timing-allow-origin",
    ]

    private static let names = obeyedByProxies + obeyedByBrowsers

    /// Whether a field is one of these. `Location` is one where it does not redirect and names nothing that was made
    /// (RFC 9110 §10.2.2): only a proxy acts on it there.
    static func isOne(_ name: String, status: Int) -> Bool {
        let name = FieldLines.lowercased(name)
        if name == "location" { return status != 201 && !(300..<400).contains(status) }
        return names.contains { $0.hasSuffix("-") ? name.hasPrefix($0) : name == $0 }
    }
}
