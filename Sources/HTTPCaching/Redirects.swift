// An original is stored under the URL that was asked for, even if redirects led elsewhere. Each redirect is a response
// with rules of its own; the stored response stands for all of them and so follows the strictest:
//
// - it lives no longer than the shortest-lived redirect. A temporary one (302, 303, 307) without freshness has no
//   lifetime, so the source is asked each time; a permanent one (301, 308) without freshness sets no limit, since it
//   says that the other URL is to be used from now on (RFC 9110 §15.4.2, §15.4.9);
// - it is not stored if one of them may not be (RFC 9111 §3), apart from lacking a lifetime;
// - it is selected by the request fields that any of them varies on (RFC 9111 §4.1).

/// The caching rules of redirects on the way to a response.
package enum Redirects {
    /// The longest lifetime that `response` may have, in seconds, ≥ 0; nil if the redirects set no limit.
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

    /// Why a response reached by these redirects may not be stored; nil if they do not forbid it.
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

    /// The request fields that a response and the redirects before it vary on; nil for `Vary: *` in any of them.
    package static func selectingFields(
        of responseFields: [HeaderField], after redirects: [StoredResponse], requestFields: [HeaderField]
    ) -> [String: String?]? {
        if redirects.isEmpty { return Variation.selectingFields(of: responseFields, requestFields: requestFields) }
        let varying = redirects.flatMap { redirect in redirect.fields.filter { FieldLines.isSameName($0.name, "vary") }
        }
        return Variation.selectingFields(of: responseFields + varying, requestFields: requestFields)
    }

    /// Whether a request selects a stored response by all the fields it was stored under, the redirects' included.
    package static func selects(_ stored: StoredResponse, requestFields: [HeaderField]) -> Bool {
        guard Variation.selects(stored, requestFields: requestFields) else { return false }
        // The fields that redirects vary on are not in the response's own `Vary`.
        let names = Variation.names(in: stored.fields) ?? []
        return stored.selecting.keys.allSatisfy {
            names.contains($0) || Variation.isAsThen($0, stored, requestFields)
        }
    }
}
