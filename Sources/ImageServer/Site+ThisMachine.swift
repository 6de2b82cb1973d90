import HTTPCaching

/// Checks where a request comes from. Some responses are only for operators, and a server without keys serves only its
/// own machine.
extension Site {
    /// Whether the client sent the admin token, is on this machine, or used the operators' address.
    func isOperator(_ request: ServerRequest) -> Bool {
        if rules.adminToken?.isIn(request.fields) == true { return true }
        guard settings.signature.servesThisMachine else { return request.isAdministrative || isOnThisMachine(request) }
        return isOnThisMachine(request) && request.isForThisMachine
    }

    /// Whether the client is on this machine. A request that a proxy forwards does not count, because its client may be
    /// on another machine. It is recognized by the header fields that proxies add.
    func isOnThisMachine(_ request: ServerRequest) -> Bool {
        guard let client = request.client, client == "::1" || client.hasPrefix("127.") else { return false }
        let passed = ["forwarded", "x-forwarded-for", "x-real-ip", "via"]
        return !request.fields.contains { field in passed.contains { FieldLines.isSameName($0, field.name) } }
    }

    /// If the server has no keys, checks that the client is on this machine. This check replaces the signature.
    ///
    /// - Throws: a `Problem` with status 403 if the check fails.
    func admit(_ request: ServerRequest) throws(Problem) {
        guard settings.signature.servesThisMachine else { return }
        guard isOnThisMachine(request) else {
            throw Problem(
                .badSignature,
                "this server has no keys, so it serves only direct connections from its own machine, and no requests through a proxy; set `keysFile` to serve other clients"
            )
        }
        guard request.isForThisMachine else {
            throw Problem(
                .badSignature,
                "this server has no keys, so the host in the URL must be `localhost` or a loopback address such as 127.0.0.1, "
                    + "not another name")
        }
    }

    /// Responds on behalf of a server without keys. Pages of other sites receive a 403. If there is a token, clients
    /// without it receive a 401, except on `/health`.
    func guarded(
        _ request: ServerRequest, _ answer: (ServerRequest) async -> ServerResponse
    ) async -> ServerResponse {
        guard settings.signature.servesThisMachine else { return await answer(request) }
        var request = request
        var response: ServerResponse
        do throws(Problem) {
            if let redirect = try redirect(ifNeeded: &request) {
                response = redirect
            } else {
                response = await answer(request)
            }
        } catch {
            response = self.answer(to: error, request, source: nil, variesByAccept: false)
        }
        return closing.applied(to: response)
    }

    /// Checks a request to a server without keys, and removes its token.
    ///
    /// - Returns: A redirect if a browser sent the token in the URL, and nil otherwise.
    /// - Throws: a `Problem` with status 403 or 401 if the request is refused.
    func redirect(ifNeeded request: inout ServerRequest) throws(Problem) -> ServerResponse? {
        guard settings.signature.servesThisMachine else { return nil }
        let cors = rules.crossOrigin
        guard !request.isFromAnotherSite || cors == .all || cors.selected(request.combined("origin")) != nil else {
            throw Problem(
                .badSignature,
                "this server has no keys, so it does not answer requests from pages of other sites; paste the address into the address bar, "
                    + "or use keys so that pages can show the pictures (docs/signing.md)")
        }
        return try admitToken(of: &request)
    }

    /// The header fields that protect the responses of a server without keys from other sites and clients.
    var closing: ClosingFields {
        ClosingFields(
            isNeeded: settings.signature.servesThisMachine, isPrivate: accessTokenInForce != nil,
            namesPolicy: rules.crossOrigin == .none)
    }

    /// Whether a server without keys may send a picture from memory, according to the request's header fields and the
    /// client's address. If false, `respond(to:onInterim:)` decides.
    func admitsHit(_ fields: [HeaderField], _ client: String?) -> Bool {
        var request = ServerRequest(target: "/", fields: fields)
        request.client = client
        guard isOnThisMachine(request), request.isForThisMachine, !request.isFromAnotherSite else { return false }
        return accessTokenInForce.map { fields.contains(where: $0.isCarried) } ?? true
    }

    /// Removes the token from a request, so that it reaches neither the logs nor an origin.
    ///
    /// - Returns: A redirect if a browser sent the token in the URL, and nil otherwise.
    /// - Throws: a `Problem` with status 401 if the request needs a token and has none.
    private func admitToken(of request: inout ServerRequest) throws(Problem) -> ServerResponse? {
        guard let token = accessTokenInForce, Operation.Name(RequestTarget(request.target)) != .health else {
            return nil
        }
        let given = AccessToken.split(request.target)
        if let given { request.target = given.target }
        let isGiven = given.map { token.matches($0.token) } == true
        guard
            isGiven || request.fields.contains(where: token.isCarried)
                || request.isAdministrative
                    && [.ready, .metrics].contains(Operation.Name(RequestTarget(request.target)))
                || rules.adminToken?.isIn(request.fields) == true
        else {
            throw Problem(
                .unauthorized,
                "open the address that the server printed at startup, or send its token as `Authorization: Bearer TOKEN`"
            )
        }
        request.fields.removeAll(where: token.isCarried)
        // A redirect to a path that begins with two slashes would lead to another host.
        guard isGiven, settings.route(of: RequestTarget(request.target)) != nil,
            request.target == "/" || request.combined("sec-fetch-mode") == "navigate"
        else { return nil }
        return token.redirect(to: settings.mountPoint + request.target, request, now: now())
    }
}

/// Header fields for browsers and caches in the responses of a server without keys.
struct ClosingFields: Sendable {
    let isNeeded: Bool
    /// Whether the response required a token. A shared cache must not send it to a client without the token.
    let isPrivate: Bool
    /// Whether the response must be blocked for pages of other origins even in browsers that do not send
    /// `Sec-Fetch-Site`.
    let namesPolicy: Bool

    func applied(to answer: ServerResponse) -> ServerResponse {
        guard isNeeded else { return answer }
        var answer = answer
        if isPrivate, let index = answer.fields.firstIndex(where: { FieldLines.isSameName("cache-control", $0.name) }),
            !VariantAnswer.forbidsSharing(answer.fields[index].value)
        {
            answer.fields[index].value = "private, " + answer.fields[index].value
        }
        let policy = HeaderField("Cross-Origin-Resource-Policy", "same-origin")
        if namesPolicy, !answer.fields.contains(policy) { answer.fields.append(policy) }
        return answer
    }
}

extension ServerRequest {
    /// Whether `Host` is a loopback address or a name for one. A malicious site may point its own name at this
    /// machine's address (DNS rebinding) and could then read responses under that name.
    var isForThisMachine: Bool {
        guard let host = combined("host") else { return true }
        let name = host.hasPrefix("[") ? host.prefix { $0 != "]" } + "]" : host.prefix { $0 != ":" }
        if FieldLines.isSameName(String(name), "localhost") || name == "[::1]" { return true }
        // Rejects names that begin like an address.
        let parts = name.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 4 && parts[0] == "127" && parts.allSatisfy { UInt8($0) != nil }
    }

    /// Whether a page of another site made a browser send the request (Fetch Metadata Request Headers §2.3).
    var isFromAnotherSite: Bool { combined("sec-fetch-site") == "cross-site" }
}
