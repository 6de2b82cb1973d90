import HTTPCaching

/// Where a request comes from, for what only operators see, and for a server without keys, which serves its own machine
/// alone.
extension Site {
    /// Whether the client has the admin token, is on this machine, or came by the address for operators.
    func isOperator(_ request: ServerRequest) -> Bool {
        request.isAdministrative || settings.adminToken?.isIn(request.fields) == true
            || isOnThisMachine(request) && (request.isForThisMachine || !settings.signature.servesThisMachine)
    }

    /// Whether the client is on this machine. A proxy on it passes on anybody's requests, and says so.
    func isOnThisMachine(_ request: ServerRequest) -> Bool {
        guard let client = request.client, client == "::1" || client.hasPrefix("127.") else { return false }
        let passed = ["forwarded", "x-forwarded-for", "x-real-ip", "via"]
        return !request.fields.contains { field in passed.contains { FieldLines.isSameName($0, field.name) } }
    }

    /// What a server without keys checks in place of signatures: that no other machine asks, and no page of another site
    /// that a browser on this one shows.
    ///
    /// - Throws: `Problem`: 403.
    func admit(_ request: ServerRequest) throws(Problem) {
        guard settings.signature.servesThisMachine, SignedPath(request.target) != nil else { return }
        guard isOnThisMachine(request) else {
            throw Problem(
                .badSignature,
                "this server has no keys, so it serves clients on its own machine alone, and none that a proxy passes on"
            )
        }
        guard request.isForThisMachine else {
            throw Problem(
                .badSignature,
                "this server has no keys, so it is asked for as `localhost` or by a loopback address such as 127.0.0.1, and "
                    + "by no other name")
        }
        guard RouteName(request.target) != .original || !request.isNavigationFromAnotherSite else {
            throw Problem(
                .badSignature,
                "this server has no keys, so pages of other sites can show pictures of it, but not open originals in a window "
                    + "or frame")
        }
    }
}

extension ServerRequest {
    /// Whether `Host` is a loopback address, or the name of one. A page elsewhere may have pointed a name of its own at
    /// this machine's address (DNS rebinding), and then reads what is answered by that name.
    var isForThisMachine: Bool {
        guard let host = combined("host") else { return true }
        let name = host.hasPrefix("[") ? host.prefix { $0 != "]" } + "]" : host.prefix { $0 != ":" }
        if FieldLines.isSameName(String(name), "localhost") || name == "[::1]" { return true }
        // Not a name that begins like an address.
        let parts = name.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 4 && parts[0] == "127" && parts.allSatisfy { UInt8($0) != nil }
    }

    /// Whether a browser asks for a document, or for a frame of one, because a page of another site says so (Fetch Metadata
    /// Request Headers §2).
    var isNavigationFromAnotherSite: Bool {
        combined("sec-fetch-site") == "cross-site" && combined("sec-fetch-mode") == "navigate"
    }
}
