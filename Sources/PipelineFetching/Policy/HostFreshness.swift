package import HTTPCaching

/// An operator's settings for the freshness of responses from one origin (the `hosts` setting). They change a response
/// before HTTP's caching rules are applied.
package struct HostFreshness: Sendable, Hashable {
    /// A `Cache-Control` directive.
    package enum Directive: String, Sendable, Hashable, CaseIterable {
        case noStore = "no-store"
        case `private`
        case noCache = "no-cache"
    }

    /// The minimum freshness of a 200 response or an intermediate redirect, in seconds after its arrival. Defaults to
    /// nil.
    package var atLeast: Int?
    /// The maximum freshness of a response, in seconds after its arrival. It takes precedence over `atLeast`. Defaults
    /// to nil.
    package var atMost: Int?
    /// The directives to ignore. A directive that names header fields still applies to those fields.
    package var ignored: Set<Directive> = []

    package init() {}

    /// Returns the header fields without the ignored directives.
    package func fields(_ fields: [HeaderField], _ caching: CachingConfiguration) -> [HeaderField] {
        let names = ["cache-control"] + caching.targetedFields
        return fields.compactMap { field in
            guard names.contains(where: { FieldLines.isSameName($0, field.name) }) else { return field }
            let kept = FieldLines.members(of: field.value).filter { member in
                let name = FieldLines.lowercased(FieldLines.beforeParameters(member))
                return Directive(rawValue: name).map { !ignored.contains($0) } ?? true
            }
            return kept.isEmpty ? nil : HeaderField(field.name, kept.joined(separator: ", "))
        }
    }

    /// Applies the settings to a response that has just arrived or was just freshened.
    package func apply(to response: inout StoredResponse, isOnTheWay: Bool = false, _ caching: CachingConfiguration) {
        response.fields = fields(response.fields, caching)
        // Lifetimes are counted from when the origin generated the response.
        let age = Age.current(of: response, now: response.responseTime)
        let lifetime = Freshness.lifetime(of: response, configuration: caching).seconds
        if let atLeast, isOnTheWay || response.isOK, lifetime < Double(atLeast) + age {
            response.assignedLifetime = Double(atLeast) + age
        }
        if let atMost { response.lifetimeLimit = min(response.lifetimeLimit ?? .infinity, Double(atMost) + age) }
    }
}
