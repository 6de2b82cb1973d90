// An original is stored under the requested URL even if the response came from a redirect target. Each redirect is a
// response with its own caching rules. The stored response represents all of them and follows the strictest rules:
//
// - The lifetime is limited by the redirect with the shortest lifetime. A temporary redirect (302, 303, 307) without
//   freshness information has no lifetime, so the source is requested each time. A permanent redirect (301, 308)
//   without freshness information sets no limit, because clients should use the new URL from now on (RFC 9110 §15.4.2,
//   §15.4.9).
// - The response is not stored if any of the redirects may not be stored (RFC 9111 §3), except for lack of a lifetime.
// - The response is selected by the request fields that any of the redirects varies on (RFC 9111 §4.1).

/// Applies the caching rules of the redirects that led to a response.
package enum Redirects {
    /// Returns the maximum lifetime of `response` in seconds (≥ 0). Returns nil if the redirects set no limit.
    package static func lifetimeLimit(
        of response: StoredResponse, after redirects: [StoredResponse],
        configuration: CachingConfiguration = CachingConfiguration()
    ) -> Double? {
        let arrival = response.responseTime
        var shortest: Double?
        for redirect in redirects {
            let isPermanent = redirect.status == 301 || redirect.status == 308
            let lifetime = Freshness.lifetime(of: redirect, configuration: configuration)
            let isChecked = GoverningDirectives(fields: redirect.fields, configuration: configuration).control
                .forbidsReuse
            if isPermanent, lifetime.basis == .none, !isChecked { continue }
            let left = isChecked ? 0 : max(0, lifetime.seconds - Age.current(of: redirect, now: arrival))
            shortest = min(shortest ?? left, left)
        }
        guard let shortest else { return nil }
        return shortest == 0 ? 0 : Age.current(of: response, now: arrival) + shortest
    }

    /// Returns the reason why the redirects forbid storing the final response, or nil if they permit it.
    package static func refusal(
        _ redirects: [StoredResponse], requestFields: [HeaderField],
        configuration: CachingConfiguration = CachingConfiguration()
    ) -> Storability.Refusal? {
        for redirect in redirects {
            switch Storability.refusal(response: redirect, requestFields: requestFields, configuration: configuration) {
            case .noLifetime, .status, nil: continue
            case let refusal: return refusal
            }
        }
        return nil
    }

    /// Returns the request fields that a response and the redirects before it vary on, or nil if any of them has
    /// `Vary: *`.
    package static func selectingFields(
        of responseFields: [HeaderField], after redirects: [StoredResponse], requestFields: [HeaderField]
    ) -> [String: String?]? {
        if redirects.isEmpty { return Variation.selectingFields(of: responseFields, requestFields: requestFields) }
        let varying = redirects.flatMap { redirect in redirect.fields.filter { FieldLines.isSameName($0.name, "vary") }
        }
        return Variation.selectingFields(of: responseFields + varying, requestFields: requestFields)
    }

    /// Whether a request selects a stored response. All request fields that were stored with the response are compared,
    /// including the fields that redirects vary on.
    package static func selects(_ stored: StoredResponse, requestFields: [HeaderField]) -> Bool {
        guard Variation.selects(stored, requestFields: requestFields) else { return false }
        // The fields that redirects vary on are not in the `Vary` of the response itself.
        let names = Variation.names(in: stored.fields) ?? []
        return stored.selecting.keys.allSatisfy {
            names.contains($0) || Variation.isAsThen($0, stored, requestFields)
        }
    }
}
