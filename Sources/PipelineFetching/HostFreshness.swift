package import HTTPCaching

/// How long responses of one origin are used, by the operator's word instead of the origin's (`hosts`: freshness). HTTP's
/// rules work on what this makes of a response, and know nothing of it.
public struct HostFreshness: Sendable, Hashable {
    /// A directive of `Cache-Control`.
    public enum Directive: String, Sendable, Hashable, CaseIterable {
        case noStore = "no-store"
        case `private`
        case noCache = "no-cache"
    }

    /// Seconds from its arrival for which a 200, or a redirect on the way, is fresh at least; default nil.
    public var atLeast: Int?
    /// Seconds from its arrival for which a response is fresh at most, whatever `atLeast` says; default nil.
    public var atMost: Int?
    /// Directives that count as absent, unless they name fields: those they are about stay so.
    public var ignored: Set<Directive> = []

    public init() {}

    /// The fields without the directives to ignore.
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

    /// Changes a response that has just arrived, or was just freshened.
    package func apply(to response: inout StoredResponse, isOnTheWay: Bool = false, _ caching: CachingConfiguration) {
        response.fields = fields(response.fields, caching)
        // Lifetimes count from when the origin made the response.
        let age = Age.current(of: response, now: response.responseTime)
        let lifetime = Freshness.lifetime(of: response, configuration: caching).seconds
        if let atLeast, isOnTheWay || response.isOK, lifetime < Double(atLeast) + age {
            response.assignedLifetime = Double(atLeast) + age
        }
        if let atMost { response.lifetimeLimit = min(response.lifetimeLimit ?? .infinity, Double(atMost) + age) }
    }
}
