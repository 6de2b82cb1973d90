/// One field line as received: the name as written, the value without surrounding whitespace.
public struct HeaderField: Sendable, Hashable {
    /// As written by the sender.
    public var name: String
    /// Without surrounding whitespace.
    public var value: String
    public init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }
}

/// A response kept for reuse, without its body (RFC 9111 §3).
public struct StoredResponse: Sendable, Hashable {
    /// 100…999.
    public var status: Int
    /// End-to-end fields in the order received, repeats kept.
    public var fields: [HeaderField]
    /// Unix seconds when the request was sent (RFC 9111 §4.2.3).
    public var requestTime: Double
    /// Unix seconds when the head of the response arrived.
    public var responseTime: Double
    /// The request fields that `Vary` selects on: lower-case name and combined value, nil for an absent field.
    public var selecting: [String: String?]
    /// A freshness lifetime in seconds that overrides the fields: a remembered failure's, or one set by the caller.
    public var assignedLifetime: Double?
    /// Seconds that the freshness lifetime never exceeds, whatever gives it, because the redirects on the way limit it.
    public var lifetimeLimit: Double?
    /// Whether a soft purge has made it stale: it answers as if within `stale-while-revalidate`, until it is validated.
    public var isSoftPurged: Bool
    /// Whether a purge of it may have been missed: it answers to nothing, whatever the policy, until it is validated, but
    /// stands in for an origin that fails as other stale responses do.
    public var isInDoubt: Bool

    /// Whether the body is the resource's: a 200, or a 203, which is a 200 that a proxy has changed (RFC 9110 §15.3.4).
    package var isOK: Bool { status == 200 || status == 203 }

    public init(
        status: Int, fields: [HeaderField], requestTime: Double, responseTime: Double,
        selecting: [String: String?] = [:], assignedLifetime: Double? = nil, lifetimeLimit: Double? = nil,
        isSoftPurged: Bool = false, isInDoubt: Bool = false
    ) {
        self.status = status
        self.fields = fields
        self.requestTime = requestTime
        self.responseTime = responseTime
        self.selecting = selecting
        self.assignedLifetime = assignedLifetime
        self.lifetimeLimit = lifetimeLimit
        self.isSoftPurged = isSoftPurged
        self.isInDoubt = isInDoubt
    }
}
