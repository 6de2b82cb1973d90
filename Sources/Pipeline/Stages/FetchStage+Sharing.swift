import HTTPCaching
import PipelineCaching
import PipelineFetching

/// Decides which requests can share a fetch.
extension FetchStage {
    /// Returns the coalescing key: everything known before the fetch that can make the responses to two requests
    /// differ. Excludes fields that no stored response varies on, because they may be unique to each client.
    ///
    /// - Parameter found: the response of a local transport, if it has already been queried.
    func key(_ finding: CacheFinding, _ admitted: AdmittedRequest, found: FetchedResponse? = nil) -> String {
        let request = admitted.request
        if let found {
            // If a file has changed between two reads, the reads are not shared.
            return "local\n\(admitted.source)\n\(found.fields.first("etag") ?? "")\n\(request.storage.rawValue)"
        }
        // A request made after a purge must not join a request made before it. Processes on the same folder share the
        // count.
        let mark = tiers.folder == nil ? finding.marks.memory : finding.marks.near
        // The URL is not part of the key. With a source ID, the caller declares that all URLs with this ID are
        // equivalent.
        var parts = [
            admitted.source, admitted.policy.rawValue, String(request.storage.rawValue),
            String(mark.rawValue),
        ]
        // A failure at one mirror does not imply a failure at the others.
        if admitted.isOneOfMany { parts.append(admitted.url.origin) }
        if let digest = finding.missingBody { parts.append("body \(digest)") }
        if finding.forward == .request { parts.append("request") }
        if !admitted.followsRedirects { parts.append("redirects") }
        if !finding.isStored, let limit = request.maxRedirects { parts.append("redirects \(limit)") }
        if CacheControl(fields: request.fields).has("no-store") { parts.append("no-store") }
        parts += request.fields.values(of: "authorization")
        if finding.record == nil { parts += admitted.conditions.map { "\($0.name.lowercased()): \($0.value)" } }
        // After a 304, the body of a picture can stay in the store, but a raw response needs it.
        if !finding.records.isEmpty, admitted.purpose == .original { parts.append("whole") }
        let names = Set(finding.records.flatMap { $0.response.selecting.keys })
        // No field contains a line feed.
        return parts.joined(separator: "\n") + selectionText(names.sorted(), admitted)
    }

    private func selectionText(_ names: [String], _ admitted: AdmittedRequest) -> String {
        if names.isEmpty { return "" }
        let vary = names.map { HeaderField("Vary", $0) }
        let values = Variation.selectingFields(of: vary, requestFields: admitted.request.fields) ?? [:]
        return values.sorted { $0.key < $1.key }.map { name, value in
            "\n" + name + (value.map { ": " + $0 } ?? "")
        }.joined()
    }

    private func selects(_ original: Original, _ admitted: AdmittedRequest) -> Bool {
        Redirects.selects(original.record.response, requestFields: admitted.request.fields)
    }

    /// Returns the key for requests with equal values in the fields that a response varies on. Returns nil if the
    /// response may not be stored, or if these requests do not differ in those fields.
    func narrowed(_ key: String, by original: Original, _ admitted: AdmittedRequest) -> String? {
        if original.refusedURL != nil { return key + "\nurl " + admitted.url.normalized }
        guard original.mayStore, !selects(original, admitted) else { return nil }
        return key + selectionText(original.record.response.selecting.keys.sorted(), admitted)
    }

    /// The statuses that may depend on the client, whatever the origin says about caching (RFC 9110 §15.5, RFC 6585
    /// §4).
    static let personalStatuses: Set<Int> = [401, 403, 407, 429]

    /// Returns the response that another request received, for use by this request, or nil if the response does not
    /// answer this request.
    func shared(_ original: Original, with admitted: AdmittedRequest) -> Original? {
        guard answers(original, admitted) else { return nil }
        var mine = original
        mine.isCollapsed = !original.isLocal
        mine.received = nil
        return mine
    }

    private func answers(_ original: Original, _ admitted: AdmittedRequest) -> Bool {
        if original.isLocal { return true }
        if let url = original.refusedURL { return url == admitted.url.normalized }
        let response = original.record.response
        let asksAlike = original.requestFields == admitted.request.fields
        let isError = admitted.purpose == .image && (try? check(original, admitted)) == nil
        // An error response is shared with all requests waiting for an image. Exceptions are responses that the origin
        // marks as private, and responses that may depend on the client (401, 403, 407, 429) if the request fields
        // differ.
        let isCommonError = isError && (asksAlike || !Self.personalStatuses.contains(response.status))
        guard original.mayStore else {
            return isCommonError && ["status", "conditional", "no-lifetime", "type"].contains(original.refusal)
        }
        guard selects(original, admitted) else { return false }
        // Requests with equal fields would receive equal responses. A response that the origin has just confirmed is
        // confirmed for every request that selects it. Other responses must be reusable without validation (RFC 9111
        // §4).
        return asksAlike || isCommonError || original.outcome == .revalidated
            || Reuse.decision(
                stored: response, now: now(), policy: .protocol, configuration: caching,
                directives: admitted.directives) == .fresh
    }
}
