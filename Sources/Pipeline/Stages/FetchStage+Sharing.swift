import HTTPCaching
import PipelineCaching
import PipelineFetching

/// Which requests one fetch answers.
extension FetchStage {
    /// The coalescing key: everything that makes two requests' answers differ, as far as it is known before asking.
    /// Fields that no stored response varies on are left out, as they may be unique to each client.
    ///
    /// - Parameter found: what a local transport has answered already.
    func key(_ finding: CacheFinding, _ admitted: AdmittedRequest, found: FetchedResponse? = nil) -> String {
        let request = admitted.request
        if let found {
            // Two reads of a file that has changed in between are not shared.
            return "local\n\(admitted.source)\n\(found.fields.first("etag") ?? "")\n\(request.storage.rawValue)"
        }
        // A request made after a purge does not join one made before it. Processes on one folder share the count.
        let generation = tiers.folder == nil ? finding.marks.originals : finding.marks.near.rawValue
        // Not the URL: by giving a source ID, the caller declares all of its URLs to be one.
        var parts = [
            admitted.source, admitted.policy.rawValue, String(request.storage.rawValue),
            String(generation),
        ]
        // What fails at one of several origins says nothing of the others.
        if admitted.isOneOfMany { parts.append(admitted.url.origin) }
        if let digest = finding.missingBody { parts.append("body \(digest)") }
        if finding.forward == .request { parts.append("request") }
        if !admitted.followsRedirects { parts.append("redirects") }
        if CacheControl(fields: request.fields).has("no-store") { parts.append("no-store") }
        parts += request.fields.values(of: "authorization")
        if finding.record == nil { parts += admitted.conditions.map { "\($0.name.lowercased()): \($0.value)" } }
        // After a 304 a picture's body can stay in the store; a raw response needs it.
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

    /// The key for requests with equal values of the fields that a response turned out to vary on; nil if the response
    /// may not be stored, or does vary on none in which these requests differ.
    func narrowed(_ key: String, by original: Original, _ admitted: AdmittedRequest) -> String? {
        if original.refusedURL != nil { return key + "\nurl " + admitted.url.normalised }
        guard original.mayStore, !selects(original, admitted) else { return nil }
        return key + selectionText(original.record.response.selecting.keys.sorted(), admitted)
    }

    /// Statuses that may depend on the requester, whatever the origin says about caching (RFC 9110 §15.5, RFC 6585 §4).
    static let personalStatuses: Set<Int> = [401, 403, 407, 429]

    /// The response that another request got, as the answer to this one; nil if it does not answer it.
    func shared(_ original: Original, with admitted: AdmittedRequest) -> Original? {
        guard answers(original, admitted) else { return nil }
        var mine = original
        if !admitted.transport.isLocal { mine.isCollapsed = true }
        mine.received = nil
        return mine
    }

    private func answers(_ original: Original, _ admitted: AdmittedRequest) -> Bool {
        if admitted.transport.isLocal { return true }
        if let url = original.refusedURL { return url == admitted.url.normalised }
        let response = original.record.response
        let asksAlike = original.requestFields == admitted.request.fields
        let isError = admitted.purpose == .image && (try? check(original, admitted)) == nil
        // An error response is shared with all waiters for an image, unless the origin marks it private, or it may
        // depend on the requester (401, 403, 407, 429) and the request fields differ.
        let isCommonError = isError && (asksAlike || !Self.personalStatuses.contains(response.status))
        guard original.mayStore else {
            return isCommonError && ["status", "conditional", "no-lifetime", "type"].contains(original.refusal)
        }
        guard selects(original, admitted) else { return false }
        // Requests with equal fields would get equal answers, and a response that the origin has just confirmed is
        // confirmed for every request that selects it. Other responses must be reusable as they are (RFC 9111 §4).
        return asksAlike || isCommonError || original.outcome == .revalidated
            || Reuse.decision(
                stored: response, now: now(), policy: .protocol, configuration: caching,
                directives: admitted.directives) == .fresh
    }

    /// What other processes will find of an original once it is stored; nil if they cannot use it. A response that
    /// needs revalidation is not shared: waiters would revalidate it one after another.
    func stored(_ original: Original) -> Tiers.Shared? {
        let record = original.record
        guard original.mayStore, !original.isStale,
            Reuse.decision(stored: record.response, now: now(), policy: .protocol, configuration: caching) == .fresh
        else { return nil }
        return .record(source: record.source, record.digest, hasBody: original.body != nil)
    }
}
